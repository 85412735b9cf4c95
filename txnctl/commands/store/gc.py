"""`txnctl store gc`: free unused records, pages and files."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, changes_store, example, option, output
from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

COLLECTED = (
    Field("readersFreed", "integer", "Slots of the reader table that dead processes had."),
    Field("deletedTopics", "integer", "Deleted topics of which something was left."),
    Field("deletedTables", "integer", "Deleted tables of which something was left."),
    Field("purgeSteps", "integer", "Commits that removed it; null in a dry run."),
    Field(
        "intentsFinalized", "integer", "Write intents of ended transactions that became values, or nothing."
    ),
    Field("versionsRemoved", "integer", "Versions of table rows that were older than what is kept."),
    Field("tombstonesRemoved", "integer", "Keys deleted so long ago that nothing needs to know of them."),
    Field("outcomesRemoved", "integer", "Ended transactions whose outcome nothing names any more."),
    Field("stagedWrites", "integer", "Writes by Spark that were never ended, whose staged files went."),
    Field("tableWindowStart", "text", "The time from which on tables can be read (--at)."),
    Field(
        "clocksDisagree",
        "boolean",
        "Whether the wall clock was moved: then nothing is removed for its age.",
    ),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)


@option(
    "--trust-clock",
    is_flag=True,
    help="Remove old versions although the wall clock was moved: it was looked at, and is right.",
)
@changes_store()
@administrative
@output(COLLECTED, name_field="purgeSteps")
@example("txnctl store gc --dry-run")
@example("txnctl store gc --reason 'topics delete was killed'")
def gc(context: Context, trust_clock: bool) -> None:
    """Free unused records, pages and files.

    Removes the rest of a `topics delete` or `tables delete` that was killed; reader slots of dead processes, whose
    pages are not reused until then; write intents of transactions that have ended; versions of table rows older than
    `store config table-retention` says; and files staged in the store's directory by Spark writes that were killed a
    day ago or longer. Safe at any time, and worth a line in cron where tables are written much.

    Where the wall clock and the time since the start of the machine have drifted apart, nothing is removed for age,
    until you confirm the wall clock with --trust-clock.

    A dry run shows the numbers of the real run, as long as no write happens in between.
    """
    how = {"trust_clock": True} if trust_clock else {}
    row = to_json(
        context.store.maintenance.collect_garbage(dry_run=context.dry_run, reason=context.reason, **how)
    )
    row["stagedWrites"] = 0 if row["clocksDisagree"] and not trust_clock else _staged_writes(context)
    context.show({**dict.fromkeys([field.name for field in COLLECTED]), **row}, table=_collected)


def _staged_writes(context: Context) -> int:
    """Remove staged files of old Spark writes; return the number of writes. Nothing is loaded where none ever were."""
    import os
    from importlib.util import find_spec

    place = os.path.join(os.path.abspath(context.store.path), "staging")
    if not os.path.isdir(place) or find_spec("pyarrow") is None:
        return 0
    from txnctl.spark.sink.staging import Staging

    now_ms = context.store.connection.clock.wall_ms()
    return len(Staging.at(place).collect(now_ms, dry_run=context.dry_run))


def _collected(row: Row) -> Iterator[str]:
    if row["dryRun"]:
        yield from ("DRY RUN: nothing was changed.", "")
    would = "Would free" if row["dryRun"] else "Freed"
    slots, topics = plural(row["readersFreed"], "reader slot"), plural(row["deletedTopics"], "deleted topic")
    if row["deletedTables"]:
        topics += f" and {plural(row['deletedTables'], 'deleted table')}"
    steps = "" if row["purgeSteps"] is None else f", in {plural(row['purgeSteps'], 'step')}"
    remove = "remove" if row["dryRun"] else "removed"
    yield f"{would} {slots} of dead processes; {remove} what {topics} left{steps}."
    would = "Would finalise" if row["dryRun"] else "Finalised"
    versions, keys = (
        plural(row["versionsRemoved"], "old version"),
        plural(row["tombstonesRemoved"], "deleted key"),
    )
    yield (
        f"{would} {plural(row['intentsFinalized'], 'write intent')}; {remove} {versions} and {keys} of tables, "
        f"which can be read from {row['tableWindowStart']} on."
    )
    if row["outcomesRemoved"]:
        forget = "Would forget" if row["dryRun"] else "Forgot"
        yield f"{forget} the outcome of {plural(row['outcomesRemoved'], 'transaction')} that nothing names any more."
    if row["stagedWrites"]:
        yield f"{remove.capitalize()} what {plural(row['stagedWrites'], 'write')} by Spark had staged."
    if row["clocksDisagree"]:
        yield "The wall clock was moved: nothing was removed for its age."
        yield "If it is right now: txnctl store gc --trust-clock"
