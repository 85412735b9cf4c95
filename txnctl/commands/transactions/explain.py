"""`txnctl transactions explain`: the state of a transaction, the blocked subscriptions, and advice."""

from __future__ import annotations

from storage.values.txn_state import TransactionState
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TXN_ID
from txnctl.fields.holder import then, waiting
from txnctl.fields.owner import beside_the_lock
from txnctl.fields.transaction import DETAILS_HELP
from txnctl.output.column import Column
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import next_command, section
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.explain import BlockedTopic, Explanation
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

EXPLAINED = fields_of(
    "storage.reports.explain:Explanation",
    {
        **DETAILS_HELP,
        "evidence": (
            "Whether the owner lives: state, lockHeld (the proof), sameHost, sameBoot, processRunning and pidReused; "
            "null once the transaction has ended."
        ),
        "blocks": (
            "Topic by topic: place (1 holds maxReadPosition), first, holdsFrom, holdsThrough, frees, unblocks by "
            "subscription, ifEnded, blockedNext, freesWhereSkipped (messages that subscriptions with onOpen skip hold "
            "behind the transaction)."
        ),
        "pending": (
            "By subscription: the number of messages acknowledged in the transaction, for nobody until its end."
        ),
        "advice": "nothing, reap, continue, wait, look-at-first, leave, or end.",
        "quiet_consumers": "Consumers of these subscriptions that hold messages and acknowledge none.",
        "choices": (
            "The ways out of an open transaction: choice (continue, look, wait, abort), means, and the command."
        ),
        "safe_to_end": "true: the deadline is over or the process gone; false: somebody may go on; null: unknown.",
        "because": "The reason of the advice.",
        "action": "The command to type next; null if there is nothing to do.",
    },
)

_BLOCKS: tuple[Column[BlockedTopic], ...] = (
    Column("HOLDS BACK", "id", lambda link: link.name),
    Column("FROM", "position", lambda link: link.holds_from),
    Column("#", "integer", lambda link: link.place),
    Column("FREES", "integer", lambda link: link.frees),
    Column("WAITING", "text", lambda link: waiting(link.unblocks) or None),
    Column("THEN", "text", then),
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
    and tables touched; the messages blocked on each topic and subscription, and the next blocking transaction; a piece
    of advice with the command to type; and the ways out: continue or look at the process, wait for the deadline, or
    abort the transaction, each with the command and the consequence.
    """
    from txnctl.cli.current_transaction import named_or_current
    from txnctl.commands.transactions.id_prefix import found_by_prefix

    explained = found_by_prefix(context, named_or_current(txn), context.store.reports.explain_transaction)
    context.show(explained, table=lambda shown: report(context, shown))


def report(context: Context, explained: Explanation) -> Iterator[str]:
    """The explanation for people."""
    from txnctl.commands.transactions.layout import told

    yield from told(context, explained.details)
    for line in beside_the_lock(explained):
        yield f"  {line}"
    yield from _held(context, explained)
    yield ""
    yield f"Advice: {explained.advice.because}"
    for choice in explained.choices:
        yield f"  {choice.choice:<8}  {spell(choice.means)}"
    if explained.advice.action is not None:
        yield next_command(context, spell(explained.advice.action))


def _held(context: Context, explained: Explanation) -> Iterator[str]:
    """Blocked topics and subscriptions."""
    from storage.reports.quiet_findings import sentence
    from storage.reports.transactions import TablePartRow

    if explained.blocks:
        yield ""
        yield from section(context, context.table_of(explained.blocks, _BLOCKS, indent=2))
    if explained.pending:
        yield ""
    for pending in explained.pending:
        go = "goes" if pending.messages == 1 else "go"
        what = plural(pending.messages, "message")
        yield f"  {what} of {pending.name} {go} to nobody on {pending.subscription} until it ends"
    for quiet in explained.quiet_consumers:
        yield f"  {sentence(quiet)}: its end alone does not help that one"
    row, parts = explained.details.row, explained.details.parts
    has_keys = any(isinstance(part, TablePartRow) and part.keys for part in parts)
    if row.state is TransactionState.OPEN and has_keys:
        from storage.reports.advice import next_write

        yield ""
        yield f"  {next_write(row.priority)}"
