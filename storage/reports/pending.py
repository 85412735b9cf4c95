"""Acknowledgements of a subscription that are pending until their transaction ends."""

from __future__ import annotations

from typing import Any

from storage.disk.connection import Connection
from storage.subscription import catalogue as subscriptions, cursor as cursors, message_set, pending_ack
from storage.topic import catalogue as topics, log
from storage.values.position import MessageId
from storage.values.txn_id import TxnID


def pending(connection: Connection, topic: str, name: str) -> list[dict[str, Any]]:
    """Acknowledgements that wait for their transaction."""
    with connection.view() as view:
        mine = subscriptions.get(view, topics.get(view, topic), name)
        cursor = cursors.load(view, mine.subscription_id)
        rows: list[dict[str, Any]] = []
        if cursor.pending_cumulative is not None:
            txn, *at, index = cursor.pending_cumulative
            through = MessageId(at[0], at[1], index)
            rows.append(
                {
                    "messageId": str(through),
                    "kind": "cumulative",
                    "txnId": str(TxnID(txn)),
                    "messages": None,
                }
            )
        for position, txn, messages in pending_ack.one_by_one(view, mine.subscription_id):
            entry = log.read(view, mine.topic_id, position)
            count = entry.count if entry is not None else 1
            bits = message_set.decode(messages, count)
            rows.append(
                {"messageId": str(position), "kind": "individual", "txnId": str(TxnID(txn)),
                 "messages": bits.bit_count()}
            )  # fmt: skip
        return rows
