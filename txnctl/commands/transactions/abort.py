"""`txnctl transactions abort`: abort a transaction, or show the effects of an abort."""

from __future__ import annotations

import click

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, option, output
from txnctl.cli.value_types import TXN_ID
from txnctl.output.field import Field
from txnctl.output.human import duration
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import Store
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

ABORTED = (
    Field("txnId", "id", "The transaction's id."),
    Field("dryRun", "boolean", "Whether nothing was changed."),
    Field("already", "boolean", "Whether it had been aborted before: nothing was changed."),
    Field("stateBefore", "text", "OPEN, or ABORTED if it had been aborted before."),
    Field("version", "integer", "The version that was, or would be, aborted: for `--if-version`."),
    Field("idleMs", "duration", "Time since its last use."),
    Field("deadlineInMs", "duration", "Time until its deadline, negative after it."),
    Field("owner", "text", "Who began it: user@host:pid (program)."),
    Field(
        "ownerState", "text", "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it."
    ),
    Field("refused", "text", "Of a dry run: why it is refused without --force; null if it is not."),
    Field("fence", "boolean", "Whether the producers of its messages lose their sessions too."),
    Field(
        "effects",
        "list",
        "For each topic, subscription and table that it touched, what the abort changes there; with --fence, each "
        "producer whose session is ended.",
    ),
    Field("endedAt", "time", "When it was aborted; null in a dry run."),
    Field("endedMs", "timeMs", "The same as an integer."),
    Field("endedBy", "text", "Who aborted it; null in a dry run."),
    Field("reason", "text", "Why it was aborted: asked, timed-out, owner-dead and so on; null in a dry run."),
    Field("reasonText", "text", "What was said with --reason."),
)
_ENDED = ("endedAt", "endedMs", "endedBy", "reason", "reasonText")


@argument(
    "txn",
    type=TXN_ID,
    required=False,
    help="The transaction, its id in full: 0:42, (0,42) or 42. [env: TXNCTL_TXN]",
)
@option(
    "--if-version",
    type=click.IntRange(1),
    metavar="N",
    help="Only if it is still at this version: the one that was looked at.",
)
@option(
    "--fence",
    is_flag=True,
    help="End the sessions of the producers of its messages too: they must connect anew.",
)
@changes_store()
@administrative
@forcible("Abort it although its owner is alive and used it within the last 60 seconds.")
@output(ABORTED, name_field="txnId")
@example("txnctl transactions abort 0:1 --dry-run", setup="txnctl transactions begin")
@example(
    "txnctl transactions abort 0:1 --if-version 1 --reason 'stuck since the deploy'",
    setup="txnctl transactions begin",
)
def abort(context: Context, txn: TxnID | None, if_version: int | None, fence: bool) -> None:
    """Abort any transaction: messages, acknowledgements and writes are dropped.

    The messages never appear at READ_COMMITTED, acknowledged messages are delivered again, keys of tables are
    released, and messages behind the transaction become visible. --dry-run shows these effects, with the numbers of
    the real abort.

    The command refuses (exit code 9) while the owning process is alive and used the transaction within the last 60
    seconds; --force overrides that. A transaction named by TXNCTL_TXN is your own, and its owner is not checked.
    Repeating an abort succeeds and prints time, reason and author of the first abort, with the same --if-version too.
    A detached transaction has no process to ask for: one that was used within the last 60 seconds is aborted with a
    warning.

    With --fence, connected producers with messages in the transaction lose the session and publish nothing more
    without connecting anew. Fencing the owner of a topic raises the topic epoch, and the next waiting producer gets
    the topic. The remaining producers stay.
    """
    from txnctl.cli.current_transaction import named_or_current

    txn_id = named_or_current(txn)
    row = to_json(
        context.store.admin.transactions.abort_transaction(
            txn_id,
            reason=context.reason,
            if_version=if_version,
            force=context.force or txn is None,
            dry_run=context.dry_run,
            fence=fence,
        )
    )
    _complete(context.store, row)
    context.show(row, table=lambda shown: _report(context, shown))


def _complete(store: Store, row: Row) -> None:
    """Add time, reason and author of the end."""
    ended = (
        {} if row["dryRun"] and not row["already"] else to_json(store.reports.show_transaction(row["txnId"]))
    )
    for name in _ENDED:
        row[name] = ended.get(name)


def _report(context: Context, row: Row) -> Iterator[str]:
    if row["already"]:
        why = f", {row['reason']}" if row["reason"] else ""
        text = f": {row['reasonText']}" if row["reasonText"] else ""
        when = f" at {row['endedAt']} by {row['endedBy']}{why}{text}" if row["endedAt"] else ""
        yield f"{row['txnId']} was aborted already{when}. Nothing was changed."
        return
    yield from dry_run_heading(context, row["dryRun"])
    yield f"{'Abort' if row['dryRun'] else 'Aborted'} {row['txnId']} ({_state(row)})"
    yield from _aligned([*_effects(row), *_warnings(row)])
    advice = _advice(row, context.force)
    if advice:
        yield ""
        yield from _content(row) if row["dryRun"] else ()
        yield advice


def _state(row: Row) -> str:
    """`OPEN, version 18, idle 46m58s; owner anna@db-2:48211 is alive, deadline in 12m48s`."""
    owner = f"owner {row['owner']} is {row['ownerState']}"
    if row["ownerState"] == "detached":
        owner = f"detached, begun by {row['owner']}"
    left = row["deadlineInMs"]
    until = f"deadline in {duration(left)}" if left > 0 else f"overdue {duration(-left)}"
    return f"{row['stateBefore']}, version {row['version']}, idle {duration(row['idleMs'])}; {owner}, {until}"


def _warnings(row: Row) -> Iterator[tuple[str, int | None, str, str]]:
    """Warnings against the abort."""
    from storage.limits import ACTIVE_OWNER_MS

    if row["refused"] is not None:
        yield "refused", None, "", f"without --force: {row['refused']}"
    elif row["ownerState"] == "detached" and row["idleMs"] < ACTIVE_OWNER_MS:
        is_at_work = "may be" if row["dryRun"] else "may have been"
        yield "careful", None, "", f"used {duration(row['idleMs'])} ago: somebody {is_at_work} at work in it"


def _effects(row: Row) -> Iterator[tuple[str, int | None, str, str]]:
    """Lines of the report: verb, number, noun, place."""
    topics = [effect for effect in row["effects"] if effect["kind"] == "topic"]
    if not row["effects"]:
        yield "changes", None, "", "nothing: it has touched no topic, no subscription and no table"
    for effect in topics:
        where = f"{effect['name']} {effect['firstPosition']}"
        if effect["lastPosition"] != effect["firstPosition"]:
            where += f"..{effect['lastPosition']}"
        yield "discards", effect["messages"], _messages(effect), where
    for effect in row["effects"]:
        if effect["kind"] == "subscription":
            where = f"{effect['name']} to subscription {effect['subscription']}"
            if effect["cumulative"] is not None:
                where += f" (through {effect['cumulative']})"
            yield "redelivers", effect["messages"], _messages(effect), where
    for effect in row["effects"]:
        if effect["kind"] == "table":
            noun = "write intent" if effect["intents"] == 1 else "write intents"
            yield "releases", effect["intents"], noun, effect["table"]
    producers = [effect for effect in row["effects"] if effect["kind"] == "producer"]
    for effect in producers:
        yield "fences", None, "", _fenced(effect)
    if row["fence"] and not producers:
        yield "fences", None, "", "nobody: no producer of its messages is connected"
    for effect in topics:
        yield from _released(effect)


def _fenced(effect: Row) -> str:
    """`loader (Exclusive, anna@db-2:48211) on orders, epoch 7 -> 8; aborts 0:9 too`."""
    text = f"{effect['producerName']} ({effect['accessMode']}, {str(effect['owner']).partition(' (')[0]}) "
    text += f"on {effect['name']}"
    if effect["topicEpochBefore"] != effect["topicEpochAfter"]:
        text += f", epoch {effect['topicEpochBefore']} -> {effect['topicEpochAfter']}"
    if effect["transactionsAborted"]:
        text += f"; aborts {', '.join([str(aborted) for aborted in effect['transactionsAborted']])} too"
    return text


def _released(effect: Row) -> Iterator[tuple[str, int | None, str, str]]:
    """The messages of a topic that the abort unblocks, and the messages that stay blocked."""
    topic, before, after = effect["name"], effect["maxReadPositionBefore"], effect["maxReadPositionAfter"]
    if before != after:
        yield "moves", None, "", f"{topic} maxReadPosition {before} -> {after}"
    remaining = 0
    for name, change in effect["unblocks"].items():
        remaining = max(remaining, change["blockedAfter"])
        freed = change["blockedBefore"] - change["blockedAfter"]
        if freed:
            seen = f"{name} {change['visibleBefore']:,} -> {change['visibleAfter']:,} visible"
            yield "unblocks", freed, f"of {change['blockedBefore']:,}", seen
    following = effect["blockedNext"]
    if following is not None:
        yield "then", remaining, "stay blocked", f"behind {following['txnId']} ({_who(following)})"


def _who(blocker: Row) -> str:
    name = " ".join([f"{key}={value}" for key, value in blocker["labels"].items()])
    owner = name or str(blocker["owner"]).partition(" (")[0]
    return f"{owner}, {blocker['ownerState']}, active {duration(blocker['idleMs'])} ago"


def _messages(effect: Row) -> str:
    return "message" if effect["messages"] == 1 else "messages"


def _aligned(lines: list[tuple[str, int | None, str, str]]) -> Iterator[str]:
    numbers = max([len(f"{number:,}") for _, number, _, _ in lines if number is not None], default=0)
    nouns = max([len(noun) for _, _, noun, _ in lines], default=0)
    previous = None
    for what, number, noun, where in lines:
        label, previous = ("" if what == previous else what), what
        if number is None:
            yield f"  {label:11}  {where}"
        else:
            yield f"  {label:11}  {number:>{numbers},} {noun:{nouns}}   {where}"


def _content(row: Row) -> Iterator[str]:
    """Commands that show the content to be dropped."""
    for effect in row["effects"]:
        if effect["kind"] == "topic":
            first = f"--from {effect['firstPosition']} -n {effect['messages']}"
            yield f"See: txnctl topics peek {effect['name']} --isolation-level read-uncommitted {first}"
        elif effect["kind"] == "table":
            yield f"See: txnctl tables intents {effect['table']}"


def _advice(row: Row, force: bool) -> str | None:
    if row["dryRun"]:
        needs_force = row["refused"] or (force and row["ownerState"] in ("alive", "stopped"))
        options = f"{' --fence' if row['fence'] else ''}{' --force' if needs_force else ''}"
        return f'Run: txnctl transactions abort {row["txnId"]} --if-version {row["version"]}{options} --reason "..."'
    for effect in row["effects"]:
        blocked = effect["kind"] == "topic" and any(
            change["blockedAfter"] for change in effect["unblocks"].values()
        )
        if blocked and effect["blockedNext"] is not None:
            return f"Next: txnctl transactions explain {effect['blockedNext']['txnId']}"
    return None
