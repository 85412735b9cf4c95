"""`txnctl transactions explain`: the state of a transaction, the blocked subscriptions, and advice."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TXN_ID
from txnctl.fields.holder import then, waiting
from txnctl.fields.owner import beside_the_lock
from txnctl.fields.transaction import FIELDS
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import next_command, section
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

EXPLAINED = (
    *FIELDS,
    Field(
        "evidence",
        "map",
        "What proves that its owner lives: state, lockHeld (the proof), sameHost, sameBoot, processRunning and "
        "pidReused; null once it has ended.",
    ),
    Field(
        "blocks",
        "list",
        "Topic by topic: place (1 holds maxReadPosition), first, holdsFrom, holdsThrough, frees, unblocks by "
        "subscription, ifEnded, blockedNext, freesWhereSkipped (what subscriptions with onOpen skip hold behind it).",
    ),
    Field(
        "pending",
        "list",
        "By subscription: how many messages go to nobody until it ends, as it has acknowledged them.",
    ),
    Field("advice", "text", "nothing, reap, continue, wait, look-at-first, leave, or end."),
    Field(
        "safeToEnd",
        "boolean",
        "true: its time is over or its process gone; false: somebody may go on; null: unknown.",
    ),
    Field("because", "text", "Why that is the advice."),
    Field("command", "text", "The command to type next; null if there is nothing to do."),
)

_BLOCKS = (
    Field("name", "id", "Topic.", heading="HOLDS BACK"),
    Field("holdsFrom", "position", "From.", heading="FROM"),
    Field("place", "integer", "Place.", heading="#"),
    Field("frees", "integer", "Frees."),
    Field("waiting", "text", "Subscriptions.", heading="WAITING"),
    Field("then", "text", "Then."),
)

_SETUP = (
    "txnctl topics create orders",
    "txnctl transactions begin --label job=loader",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@argument(
    "txn",
    type=TXN_ID,
    required=False,
    help="The transaction; the first digits of its number do where they name one. [env: TXNCTL_TXN]",
)
@reads_store
@output(EXPLAINED, name_field="txnId")
@example("txnctl transactions explain 0:1", setup=_SETUP)
@example("txnctl transactions explain 0:1 -o json", setup=_SETUP)
def explain(context: Context, txn: TxnID | None) -> None:
    """Explain a transaction: the state of the owner, blocked messages, and advice.

    Shows the facts of the transaction; the evidence that the owning process lives or is dead; topics, subscriptions
    and tables touched; the messages blocked on each topic and subscription, and the next blocking transaction; and a
    piece of advice with the command to type.
    """
    from txnctl.cli.current_transaction import named_or_current
    from txnctl.commands.transactions.id_prefix import found_by_prefix

    explained = found_by_prefix(context, named_or_current(txn), context.store.reports.explain_transaction)
    row = to_json(explained, spell)
    context.show(row, table=lambda shown: _report(context, shown))


def _report(context: Context, row: Row) -> Iterator[str]:
    from txnctl.commands.transactions.layout import told

    yield from told(context, row)
    for line in beside_the_lock(row):
        yield f"  {line}"
    yield from _held(context, row)
    yield ""
    yield from _wrapped(context, f"Advice: {row['because']}", hanging=8)
    if row["command"] is not None:
        yield next_command(context, row["command"])


def _held(context: Context, row: Row) -> Iterator[str]:
    """Blocked topics and subscriptions."""
    cells = [
        {**link, "waiting": waiting(link["unblocks"]) or None, "then": then(link)} for link in row["blocks"]
    ]
    if cells:
        table = context.table_of(cells, _BLOCKS, indent=2)
        yield ""
        yield from section(context, table)
    if row["pending"]:
        yield ""
    for pending in row["pending"]:
        go = "goes" if pending["messages"] == 1 else "go"
        what = plural(pending["messages"], "message")
        yield f"  {what} of {pending['name']} {go} to nobody on {pending['subscription']} until it ends"
    if row["state"] == "OPEN" and any(part["kind"] == "table" and part["keys"] for part in row["parts"]):
        from storage.reports.advice import next_write

        yield ""
        yield from _wrapped(context, next_write(row["priority"]), indent=2)


def _wrapped(context: Context, text: str, indent: int = 0, hanging: int = 0) -> list[str]:
    """The text in lines of the screen's width."""
    from textwrap import wrap

    before, width = " " * indent, context.out.width()
    if width is None:
        return [before + text]
    return wrap(text, max(40, width), initial_indent=before, subsequent_indent=before + " " * hanging)
