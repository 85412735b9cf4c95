"""Acknowledgements of a subscription that are pending until their transaction ends."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.subscription import catalogue as subscriptions, cursor as cursors, message_set, pending_records
from storage.topic import catalogue as topics
from storage.topic.compaction import compacted_view
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID


class PendingRow(NamedTuple):
    """A pending acknowledgement: of a message and all before it, of a whole entry, or of one message of a batch."""

    message_id: MessageId | Position
    kind: str
    txn_id: TxnID
    messages: int | None


def list_pending(connection: Connection, topic: str, name: str) -> list[PendingRow]:
    """The pending acknowledgements of a subscription, the cumulative one first."""
    with connection.view() as view:
        subscription = subscriptions.get(view, topics.get(view, topic), name)
        cursor = cursors.load(view, subscription.subscription_id)
        rows: list[PendingRow] = []
        if cursor.pending_cumulative is not None:
            txn, *position, index = cursor.pending_cumulative
            through = MessageId(position[0], position[1], index)
            rows.append(PendingRow(through, "cumulative", TxnID(txn), None))
        for at, txn, messages in pending_records.one_by_one(view, subscription.subscription_id):
            count = compacted_view.stored_anywhere(view, subscription.topic_id, at).count
            bits = message_set.decode(messages, count)
            if bits == message_set.everything(count):
                rows.append(PendingRow(Position(*at), "individual", TxnID(txn), count))
                continue
            rows += [
                PendingRow(MessageId(*at, index), "individual", TxnID(txn), 1)
                for index in range(count)
                if bits >> index & 1
            ]
        return rows
