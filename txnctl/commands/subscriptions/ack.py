"""`txnctl subscriptions ack`: acknowledge messages from outside a consumer."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    changes_store,
    example,
    forcible,
    option,
    output,
)
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC, TXN_ID
from txnctl.commands.subscriptions.message_id import MESSAGE_ID
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of
from txnctl.output.field import fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.admin.acknowledgements import Acknowledged
    from storage.values.position import MessageId
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
)

ACKNOWLEDGED = fields_of(
    "storage.admin.acknowledgements:Acknowledged",
    {
        **NAMES,
        "acknowledged": "Messages acknowledged by this; null for a cumulative one.",
        "txn_id": "The transaction in which they are pending; null if it is done for good.",
        "mark_delete_position": "Everything up to here is acknowledged.",
        "transactions_aborted": "Open transactions that --force aborted, with all that they did.",
        "dry_run": DRY_RUN["dry_run"]._replace(heading=""),
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument(
    "message_ids",
    metavar="MESSAGE_ID...",
    type=MESSAGE_ID,
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

    Inside a transaction the acknowledgement is pending: the messages are held back until the transaction ends,
    acknowledged by a commit, redelivered after an abort. A message acknowledged before, or pending in any transaction,
    is a conflict (exit code 4). Outside a transaction, acknowledging again changes nothing. A message pending in a
    transaction is a conflict, unless --force aborts that transaction first, with its effects on every topic; the audit
    trail keeps --reason.
    """
    row = context.store.admin.acknowledgements.acknowledge_messages(
        topic, subscription, list(message_ids), cumulative=cumulative, txn=txn, force=context.force,
        dry_run=context.dry_run, reason=context.reason,
    )  # fmt: skip
    if row.transactions_aborted:
        verb = "would abort" if row.dry_run else "aborted"
        aborted = ", ".join([str(txn) for txn in row.transactions_aborted])
        context.warn(f"{verb} {aborted}, with all that it did, here and elsewhere")
    context.show(row, table=lambda shown: _acknowledged(shown, str(message_ids[0])))


def _acknowledged(row: Acknowledged, message_id: str) -> str:
    what = f"everything up to {message_id}"
    if row.acknowledged is not None:
        what = plural(row.acknowledged, "message")
    before = "DRY RUN: nothing was changed.\n\n" if row.dry_run else ""
    if row.txn_id is not None:
        return f"{before}Pending in {row.txn_id}: the acknowledgement of {what} of {name_of(row)}."
    verb = "Would acknowledge" if row.dry_run else "Acknowledged"
    return f"{before}{verb} {what} of {name_of(row)}; markDeletePosition {row.mark_delete_position}."
