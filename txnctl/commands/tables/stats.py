"""`txnctl tables stats`: counts of a table, and the transactions that hold keys."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TABLE as TABLE_NAME
from txnctl.cli.watch import draw_until_interrupted, is_watched, watches
from txnctl.fields.owner import alive, other_user, process_state, users
from txnctl.fields.table import TABLE
from txnctl.output.column import Column
from txnctl.output.field import fields_of
from txnctl.output.human import duration, plural
from txnctl.output.screen import heading, next_command, section
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.table.report import TableHolder, TableStats
    from txnctl.cli.context import Context
    from txnctl.cli.watch import Screenful

STATS = fields_of(
    "storage.table.report:TableStats",
    {
        **TABLE,
        "held_intents": "Those of the write intents that are of open transactions.",
        "ongoing_txn_count": "The open transactions that have write intents in it.",
        "holders": (
            "The first 20 of these, the oldest first: txnId, intents, priority, ageMs, owner, ownerState, lastUser, "
            "lastUserState."
        ),
    },
)

_HOLDERS: tuple[Column[TableHolder], ...] = (
    Column("TXN", "id", lambda holder: holder.txn_id),
    Column("INTENTS", "integer", lambda holder: holder.intents),
    Column("PRIORITY", "text", lambda holder: holder.facts.priority),
    Column("AGE", "duration", lambda holder: holder.facts.age_ms),
    Column("OWNER", "list", lambda holder: holder.facts.owner),
    Column("ALIVE", "text", lambda holder: alive(holder.facts)),
    Column("LAST USER", "list", lambda holder: other_user(holder.facts), rank=1),
)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl transactions begin",
    "txnctl tables put accounts B1 90 --txn 0:2",
)


@argument("table", type=TABLE_NAME, help="The table.")
@watches
@reads_store
@output(STATS, name_field="table")
@example("txnctl tables stats accounts", setup=_SETUP)
@example("txnctl tables stats accounts -o json", setup=_SETUP)
def stats(context: Context, table: str, watch: float | None) -> None:
    """Show the counts of a table, and the transactions that hold keys.

    A write intent is a value of a transaction that is open, or has ended and left the value to be finalised: the next
    write to the key finalises an intent, and `store gc` all intents. The open transactions that hold keys are listed,
    the oldest first; `tables intents` has the keys.
    """
    if is_watched(context, watch):
        draw_until_interrupted(
            context, watch or 0, lambda: _screenful(context, context.store.table(table).stats())
        )
    context.show(context.store.table(table).stats(), table=lambda row: _report(context, row))


def _report(context: Context, row: TableStats) -> Iterator[str]:
    counts = row.counts
    yield heading(context, counts.table, plural(counts.keys, "key"), counts.as_of_at_ms)
    yield f"  rows        {counts.rows:,} stored, created {rfc3339(counts.created_at_ms)}"
    yield f"  versions    {plural(counts.versions, 'older one')}, kept for {duration(counts.retention_ms)}"
    yield f"  intents     {_intents(row)}"
    yield from _holders(context, row)
    if counts.intents:
        command = line("tables intents", counts.table) if row.holders else line("store gc")
        yield ""
        yield next_command(context, command)


def _screenful(context: Context, stats: TableStats) -> Screenful:
    """A holder whose process does not work keeps the keys until somebody ends the transaction."""
    from txnctl.cli.watch import Screenful
    from txnctl.output.escape import printable_row

    row = printable_row(stats)
    idle = [holder for holder in row.holders if process_state(holder.facts) != "alive"]
    problems = [
        f"{holder.txn_id} {context.style(process_state(holder.facts), 'bold', 'yellow')} holds "
        f"{plural(holder.intents, 'key')} for {duration(holder.facts.age_ms)}, {users(holder.facts)}"
        for holder in idle
    ]
    return Screenful(problems, _report(context, row))


def _intents(row: TableStats) -> str:
    """The number of write intents, of open and of ended transactions."""
    held, waiting = row.held_intents, row.counts.intents - row.held_intents
    parts = []
    if held:
        parts.append(f"{held:,} held by {plural(row.ongoing_txn_count, 'open transaction')}")
    if waiting:
        parts.append(f"{waiting:,} left by ended ones, to be finalised")
    return f"{row.counts.intents:,}" + (f": {', '.join(parts)}" if parts else "")


def _holders(context: Context, row: TableStats) -> Iterator[str]:
    """A line for each open transaction that holds keys, and how many more there are."""
    if not row.holders:
        return
    table = context.table_of(row.holders, _HOLDERS, indent=2)
    yield ""
    yield from section(context, table)
    more = row.ongoing_txn_count - len(row.holders)
    if more:
        yield f"  and {more:,} more"
