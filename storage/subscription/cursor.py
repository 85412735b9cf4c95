"""The cursor of a subscription: markDeletePosition, read position and counters, in one record.

Invariant 1: markDeletePosition never moves back (but for seek and redrive). The messages acknowledged ahead of the
position are in `acks.py`.
"""

from __future__ import annotations

from typing import Any

from storage.disk.codec import key1, missing, pack, unpack
from storage.disk.schema import CURSORS
from storage.disk.view import ReadView, WriteBatch
from storage.values.position import Position, as_position


class Cursor:
    """The record of one subscription's cursor.

    Attributes:
        mark_delete: every message up to here is acknowledged.
        read: dispatch has examined every entry up to here.
        generation: raised when delivered messages are recalled, so that consumers drop them from their queues.
        released: entries with free messages, which were delivered or held back before.
        pending_cumulative: transaction, ledger, entry, batch index (-1: whole entry) of a cumulative acknowledgement
            that waits for its transaction.
        skipped_txns: number of open transactions that dispatch has skipped (`skipped_txns.py`).
        blocked: number of messages that wait behind skipped transactions.
        passes: raised when dispatch skips more, so that consumers learn the blocked keys.
        has_uncommitted_acks: messages of undecided transactions may be acknowledged or pending: by a reader of
            READ_UNCOMMITTED, before the level changed, because the subscription began inside their entry, or by
            `skip` of an aborted transaction whose marker dispatch has not reached.
        recalled: the end of an aborted cumulative acknowledgement beyond the delivered messages; until dispatch has
            come here, nothing up to here may be acknowledged cumulatively.
        aborted_dropped: number of messages of aborted transactions that were acknowledged instead of copied to the
            dead-letter topic.
        delayed: number of messages that dispatch has passed before their delivery time (`delayed.py`).
        delayed_id: the number under which the delayed messages are stored; 0 for that of the subscription. Another one
            is taken where so many are forgotten at once that they are removed in steps.
        lost, expired: number of committed messages that were acknowledged for a hard limit, and for their age.
        lost_noted, expired_noted: how many of them the audit trail has.
        expired_noted_ms: when the audit trail noted expired messages.
        vacated_ms: when the last consumer left, or an operator used the subscription without one; None while a consumer
            is attached, and for a subscription of which that is not known.
        consumers: the number of attached consumers, dead ones that are not yet removed included; None where an earlier
            release wrote the cursor (`attached_consumers.number`).
        windows: raised with each window of several messages of a subscription that several consumers share.
        wanted: every window up to this number is wanted: a consumer has asked after it, and found no message.
    """

    __slots__ = (
        "aborted_dropped",
        "blocked",
        "consumers",
        "delayed",
        "delayed_id",
        "delivered",
        "expired",
        "expired_noted",
        "expired_noted_ms",
        "generation",
        "has_uncommitted_acks",
        "lost",
        "lost_noted",
        "mark_delete",
        "passes",
        "pending_cumulative",
        "read",
        "recalled",
        "redelivered",
        "released",
        "skipped_txns",
        "vacated_ms",
        "wanted",
        "windows",
    )  # fmt: skip

    def __init__(self, start: Position) -> None:
        self.mark_delete = start
        self.read = start
        self.generation = 0
        self.released = 0
        self.pending_cumulative: tuple[int, int, int, int] | None = None
        self.recalled: Position | None = None
        self.delivered = self.redelivered = 0
        self.skipped_txns = self.blocked = self.passes = 0
        self.has_uncommitted_acks = False
        self.aborted_dropped = self.delayed = self.delayed_id = 0
        self.lost = self.lost_noted = self.expired = self.expired_noted = self.expired_noted_ms = 0
        self.vacated_ms: int | None = None
        self.consumers: int | None = None
        self.windows = self.wanted = 0

    def encode(self) -> bytes:
        fields: list[Any] = [
            self.mark_delete,
            self.read,
            self.generation,
            self.released,
            self.pending_cumulative,
        ]
        fields += [self.delivered, self.redelivered, self.recalled]
        fields += [self.skipped_txns, self.blocked, self.passes, self.has_uncommitted_acks]
        fields += [self.aborted_dropped]
        forced: list[int | None] = [self.lost, self.lost_noted, self.expired, self.expired_noted]
        forced += [self.expired_noted_ms, self.vacated_ms]
        if self.consumers or self.windows:
            forced += [self.consumers, self.windows, self.wanted]
        if self.delayed_id:
            fields += [self.delayed, forced, self.delayed_id]
        elif any(forced) or self.vacated_ms is not None:
            fields += [self.delayed, forced]
        elif self.delayed:
            fields += [self.delayed]
        return pack(fields)

    @classmethod
    def decode(cls, payload: memoryview) -> Cursor:
        fields = unpack(payload, 12)
        cursor = cls(as_position(fields[0]))
        cursor.read = as_position(fields[1])
        cursor.generation, cursor.released = fields[2:4]
        cursor.pending_cumulative = tuple(fields[4]) if fields[4] else None
        cursor.delivered, cursor.redelivered = fields[5:7]
        cursor.recalled = as_position(fields[7]) if fields[7] else None
        cursor.skipped_txns, cursor.blocked, cursor.passes, cursor.has_uncommitted_acks = fields[8:12]
        cursor.aborted_dropped = fields[12] if len(fields) > 12 else 0
        cursor.delayed = fields[13] if len(fields) > 13 else 0
        if len(fields) > 14:
            cursor.lost, cursor.lost_noted, cursor.expired, cursor.expired_noted = fields[14][:4]
            cursor.expired_noted_ms, cursor.vacated_ms = fields[14][4:6]
            if len(fields[14]) > 6:
                cursor.consumers, cursor.windows, cursor.wanted = fields[14][6:9]
        cursor.delayed_id = fields[15] if len(fields) > 15 else 0
        return cursor


def load(view: ReadView, subscription_id: int) -> Cursor:
    """Return the cursor of an existing subscription. A batch shares one object and writes its changes.

    Raises:
        CorruptStore: the record is missing.
    """
    cursor = view.open(CURSORS, key1(subscription_id), Cursor.decode)
    if cursor is None:
        raise missing(CURSORS, key1(subscription_id))
    return cursor


def create(batch: WriteBatch, subscription_id: int, start: Position) -> None:
    """Write the cursor of a new subscription, which no consumer has joined yet."""
    cursor = Cursor(start)
    cursor.vacated_ms = batch.now_ms
    batch.put(CURSORS, key1(subscription_id), cursor.encode())


def delete(batch: WriteBatch, subscription_id: int) -> None:
    """Remove the cursor of a subscription."""
    batch.remove(CURSORS, key1(subscription_id))
