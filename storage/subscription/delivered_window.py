"""The window of messages that was delivered to a consumer last, and the part of it that no application has received.

Every earlier window of the consumer was received whole: the next is delivered when the queue is empty. A consumer that
is found dead, or evicted, cannot tell which messages waited in its queue: the record of the window and the consumer's
mark (`storage/disk/lmdb/received_marks.py`) do.
"""

from __future__ import annotations

from storage.disk.codec import key2, pack, unpack
from storage.disk.schema import CONSUMERS
from storage.disk.view import WriteBatch
from storage.subscription import message_set, span
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.dispatch.walk_result import Selection
from storage.subscription.open_subscription import OpenSubscription
from storage.values.position import MessageId, Position, as_position

_WINDOWS = 1 << 63
"""Added to the id of a subscription: keys of windows stand behind those of consumers."""


class DeliveredWindow:
    """The record of a window.

    Attributes:
        number: names the window in the consumer's mark; no two windows of a consumer have one number.
        after: every message at the consumer behind this position is of the window.
        again: messages of the window up to `after`, by entry.
    """

    __slots__ = ("_again_in_spans", "after", "again", "number")

    def __init__(self, number: int, after: Position, again: dict[Position, int]) -> None:
        self.number = number
        self.after = after
        self.again = again
        self._again_in_spans = span.by_span(again.items())

    def untouched(self, delivery: Delivery, messages: int, last: MessageId | None) -> int:
        """The messages of a record in flight at the consumer that its application has not received.

        Args:
            last: the last message that it has received of the window; None: not one.
        """
        at = delivery.at
        if delivery.is_span:
            inside = messages & (~span.through(at, self.after) | self._again_in_spans.get(at, 0))
            if last is None:
                return inside
            return inside & ~span.through(at, last.position, message_set.through(max(last.batch_index, 0)))
        inside = messages if at > self.after else messages & self.again.get(at, 0)
        if last is None or at > last.position:
            return inside
        return inside & ~message_set.through(max(last.batch_index, 0)) if at == last.position else 0


def record(
    opened: OpenSubscription[WriteBatch], consumer_id: int, after: Position, selection: Selection
) -> int:
    """Record the window of a selection; return its number. The selection itself is recorded already.

    Args:
        after: the position up to which dispatch had read before.
    """
    number = opened.cursor.delivered
    again = [piece for piece in selection.dispatched if piece.entry.position <= after]
    rows = [
        [*piece.at, message_set.encode(piece.messages, piece.entry.count), piece.entry.count]
        for piece in again
    ]
    opened.view.put(CONSUMERS, _key(opened, consumer_id), pack([number, after, rows]))
    return number


def remove(opened: OpenSubscription[WriteBatch], consumer_id: int) -> None:
    """Remove the window of a consumer that is gone."""
    if opened.view.has(CONSUMERS, _key(opened, consumer_id)):
        opened.view.delete(CONSUMERS, _key(opened, consumer_id))


class UntouchedMessages:
    """The messages in flight at consumers that their applications have not received, within one batch."""

    __slots__ = ("_known", "_opened")

    def __init__(self, opened: OpenSubscription[WriteBatch]) -> None:
        self._opened = opened
        self._known: dict[int, tuple[DeliveredWindow, MessageId | None] | None] = {}

    def among(self, consumer_id: int, delivery: Delivery, messages: int) -> int:
        """Of the messages of a record in flight at a consumer, those not received; 0 where that is not known."""
        if consumer_id not in self._known:
            self._known[consumer_id] = self._load(consumer_id)
        known = self._known[consumer_id]
        return 0 if known is None else known[0].untouched(delivery, messages, known[1])

    def uncount(
        self, delivery: Delivery, taken: list[DeliveryPart], consumer_id: int = NOBODY
    ) -> list[DeliveryPart]:
        """Parts taken from a record, cut so that messages never received do not count as delivered.

        Args:
            consumer_id: the consumer that names the messages itself, and so has received them.
        """
        parts = []
        for part in taken:
            untouched = 0
            if part.holder > 0 and part.holder != consumer_id:
                untouched = self.among(part.holder, delivery, part.messages)
            holder, times, due_ns, recalled = part.fate()
            if part.messages != untouched:
                parts.append(DeliveryPart(part.messages & ~untouched, holder, times, due_ns, recalled))
            if untouched:
                parts.append(DeliveryPart(untouched, holder, times - 1, due_ns, recalled))
        return parts

    def _load(self, consumer_id: int) -> tuple[DeliveredWindow, MessageId | None] | None:
        batch = self._opened.view
        payload = batch.get(CONSUMERS, _key(self._opened, consumer_id))
        if payload is None:
            return None
        number, after, rows = unpack(payload)[:3]
        again = {Position(row[0], row[1]): message_set.decode(row[2], row[3]) for row in rows}
        last = batch.received_marks.last(batch.superblock, consumer_id, number)
        return DeliveredWindow(number, as_position(after), again), last


def prefix(subscription_id: int) -> bytes:
    """The prefix of the keys of a subscription's windows."""
    return (subscription_id + _WINDOWS).to_bytes(8, "big")


def _key(opened: OpenSubscription[WriteBatch], consumer_id: int) -> bytes:
    return key2(opened.subscription_id + _WINDOWS, consumer_id)
