"""`txnctl subscriptions ack`, `nack` and `pending`: acknowledging from outside a consumer."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    changes_store,
    example,
    forcible,
    option,
    output,
    reads_store,
)
from txnctl.cli.value_types import DURATION, SUBSCRIPTION, TOPIC, TXN_ID, Grammar
from txnctl.fields.subscription import NAMES
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from storage.values.position import MessageId
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

    Row = dict[str, Any]

_DELAY_S = 60.0

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
)


class MessageIdGrammar(Grammar):
    """`L:E` or `L:E:B`."""

    name = "message id"
    expected = "ledger:entry or ledger:entry:batchIndex, such as 12:4471 or 12:4471:3"

    def read(self, text: str) -> MessageId:
        """The id, as the engine reads it."""
        from storage.values.position import MessageId

        return MessageId.parse(text)


_MESSAGE_ID = MessageIdGrammar()

ACKNOWLEDGED = (
    *NAMES,
    Field("acknowledged", "integer", "Messages acknowledged by this; null for a cumulative one."),
    Field("txnId", "id", "The transaction in which they are pending; null if it is done for good."),
    Field("markDeletePosition", "position", "Everything up to here is acknowledged."),
    Field("transactionsAborted", "list", "Open transactions that --force aborted, with all that they did."),
    Field("dryRun", "boolean", "Whether nothing was changed.", heading=""),
)

GIVEN_BACK = (
    *NAMES,
    Field("givenBack", "integer", "Messages that will be handed out again."),
    Field("dryRun", "boolean", "Whether nothing was changed.", heading=""),
)

PENDING = (
    Field("messageId", "id", "The entry, or for a cumulative one the last message.", heading="MESSAGE ID"),
    Field("kind", "text", "individual, or cumulative: everything up to here."),
    Field("messages", "integer", "Messages of the entry; null for a cumulative one."),
    Field("txnId", "id", "The open transaction.", heading="TXN"),
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument(
    "message_ids",
    metavar="MESSAGE_ID...",
    type=_MESSAGE_ID,
    nargs=-1,
    required=True,
    help="The messages; L:E of a batch means all of it.",
)
@option(
    "--cumulative", is_flag=True, help="Acknowledge everything up to and including the one message given."
)
@option(
    "--txn",
    type=TXN_ID,
    envvar="TXNCTL_TXN",
    help="Leave it pending until this transaction ends. [env: TXNCTL_TXN]",
)
@changes_store()
@administrative
@forcible("Abort the transaction in which one of them is pending.")
@output(ACKNOWLEDGED, name_field="subscription")
@example("txnctl subscriptions ack orders billing 1:0 1:1", setup=_SETUP)
@example("txnctl subscriptions ack orders billing 1:1 --cumulative", setup=_SETUP)
@example("txnctl subscriptions ack orders billing 1:0 --force --dry-run", setup=_SETUP)
def ack(
    context: Context,
    topic: str,
    subscription: str,
    message_ids: Sequence[MessageId],
    cumulative: bool,
    txn: TxnID | None,
) -> None:
    """Acknowledge messages, plainly or in a transaction.

    In a transaction it is pending: the messages go to nobody until it ends, are acknowledged if it commits, and are
    handed out again if it aborts; a message acknowledged before, or pending anywhere, is a conflict (exit code 4).
    Plainly, acknowledging again changes nothing, and a message pending in a transaction is a conflict too, unless
    --force aborts that one first, with all that it did on other topics too; --reason goes with it into the audit trail.
    """
    row = context.store.admin.acknowledgements.acknowledge_messages(
        topic, subscription, list(message_ids), cumulative=cumulative, txn=txn, force=context.force,
        dry_run=context.dry_run, reason=context.reason,
    )  # fmt: skip
    if row["transactionsAborted"]:
        verb = "would abort" if row["dryRun"] else "aborted"
        context.warn(
            f"{verb} {', '.join(row['transactionsAborted'])}, with all that it did, here and elsewhere"
        )
    context.show(row, table=lambda shown: _acknowledged(shown, str(message_ids[0])))


def _acknowledged(row: Row, message_id: str) -> str:
    from txnctl.fields.subscription import name_of
    from txnctl.output.human import plural

    what = f"everything up to {message_id}"
    if row["acknowledged"] is not None:
        what = plural(row["acknowledged"], "message")
    before = "DRY RUN: nothing was changed.\n\n" if row["dryRun"] else ""
    if row["txnId"] is not None:
        return f"{before}Pending in {row['txnId']}: the acknowledgement of {what} of {name_of(row)}."
    verb = "Would acknowledge" if row["dryRun"] else "Acknowledged"
    return f"{before}{verb} {what} of {name_of(row)}; markDeletePosition {row['markDeletePosition']}."


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument(
    "message_ids",
    metavar="MESSAGE_ID...",
    type=_MESSAGE_ID,
    nargs=-1,
    required=True,
    help="The messages; L:E of a batch means all of it.",
)
@option("--delay", type=DURATION, default=_DELAY_S, help="Hand them out again after this long. [default: 1m]")
@changes_store()
@administrative
@output(GIVEN_BACK, name_field="subscription")
@example("txnctl subscriptions nack orders billing 1:0 --dry-run", setup=_SETUP)
@example(
    "txnctl subscriptions nack orders billing 1:0 --delay 30s --reason 'the printer is out'", setup=_SETUP
)
def nack(
    context: Context, topic: str, subscription: str, message_ids: Sequence[MessageId], delay: float
) -> None:
    """Give messages back, to be handed out again later.

    It concerns messages that were handed out and are not acknowledged. Their redelivery count is raised when they
    are handed out again; after the subscription's maximum they go to the dead-letter topic.
    """
    row = context.store.admin.acknowledgements.negative_acknowledge_messages(
        topic, subscription, list(message_ids), delay=delay, dry_run=context.dry_run, reason=context.reason
    )
    context.show(row, table=lambda shown: _given_back(shown, delay))


def _given_back(row: Row, delay: float) -> str:
    before = "DRY RUN: nothing was changed.\n\n" if row["dryRun"] and row["givenBack"] else ""
    return before + _what_was_given_back(row, delay)


def _what_was_given_back(row: Row, delay: float) -> str:
    from txnctl.fields.subscription import name_of
    from txnctl.output.human import duration, plural

    if not row["givenBack"]:
        return f"None of these messages is in flight on {name_of(row)}. Nothing was changed."
    again = f"to be handed out again in {duration(int(delay * 1000))}" if delay else "to be handed out again"
    verb = "Would give back" if row["dryRun"] else "Gave back"
    return f"{verb} {plural(row['givenBack'], 'message')} of {name_of(row)}, {again}."


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@reads_store
@output(PENDING, name_field="messageId")
@example("txnctl subscriptions pending orders billing", setup=_SETUP)
def pending(context: Context, topic: str, subscription: str) -> None:
    """List the acknowledgements that wait for their transaction.

    These messages go to nobody until that transaction is committed (they are acknowledged) or aborted (they are
    handed out again).
    """
    rows = context.store.reports.list_pending_acknowledgements(topic, subscription)
    if not rows and context.output == "table":
        context.note(f"nothing is pending on {subscription} of {topic}")
    context.show_list(rows)
