"""The delivery times that one walk of dispatch heeds, on Shared and Key_Shared.

Dispatch passes an early message: neither delivered nor held back, the message holds no key. Due messages are examined
together with the messages that were delivered before, in order of position. On Key_Shared every due message holds its
key, so that a walk examines either all of them, or holds many back (`must_hold`) and delivers nothing: the deliveries
know the keys from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

from storage.disk.view import ReadView
from storage.limits import DELAYED_RECORDS_MAX, DUE_TOGETHER_MAX
from storage.subscription import message_set
from storage.subscription.delivery import NOBODY, Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.topic.entry import Entry
from storage.values.position import Position


class DelayWalk:
    """See the module.

    Args:
        room: the number of messages that the walk selects at most.

    Attributes:
        must_hold: whether more messages may be due on Key_Shared than the walk examines.
    """

    __slots__ = ("_due", "_heeds", "_now_ms", "_opened", "must_hold")

    def __init__(self, opened: OpenSubscription[ReadView], now_ms: int, room: int) -> None:
        self._opened = opened
        self._now_ms = now_ms
        self._heeds = opened.subscription.delays
        is_due = self._heeds and opened.delayed.is_due(self._now_ms)
        by_key = opened.subscription.keeps_keys
        enough = max(room, DUE_TOGETHER_MAX) if by_key else room
        self._due = opened.delayed.due(now_ms, enough) if is_due else {}
        self.must_hold = by_key and sum(due.bit_count() for due in self._due.values()) >= enough
        if self.must_hold:
            self._due = opened.delayed.due(now_ms, DELAYED_RECORDS_MAX)

    @property
    def has_due(self) -> bool:
        """Whether a delayed message is due."""
        return bool(self._due)

    def due(self) -> Iterable[tuple[Position, int]]:
        """The due messages by entry, in order."""
        return self._due.items()

    def again(
        self, delivered: Iterable[Delivery], read: Position
    ) -> Iterator[tuple[Position, Delivery | None, int]]:
        """Yield each entry to examine again in order: position, delivery if it is among these, and due messages.

        Args:
            delivered: deliveries to examine, in order.
            read: entries behind this position are left out.
        """
        pairs = ((delivery.at, delivery) for delivery in delivered)
        due = ((at, None) for at in self._due if at <= read)
        last: tuple[Position, Delivery | None] | None = None
        for position, delivery in merge(pairs, due, key=lambda pair: pair[0]):
            if last is not None and position != last[0]:
                yield *last, self._due.get(last[0], 0)
                last = None
            last = position, delivery or (last[1] if last is not None else None)
        if last is not None:
            yield *last, self._due.get(last[0], 0)

    def known(self, entry: Entry) -> int:
        """The messages of an entry that dispatch has passed early, due by now or not."""
        if not self._opened.cursor.delayed or not self._heeds or entry.delivery_times is None:
            return 0
        return self._opened.delayed.at(entry.position)

    def early(self, entry: Entry, delivery: Delivery, messages: int) -> dict[int, int]:
        """Return the early messages of an entry by due time: never delivered, with a delivery time in the future."""
        return early(entry, delivery, messages, self._now_ms) if self._heeds else {}


def early(entry: Entry, delivery: Delivery, messages: int, now_ms: int) -> dict[int, int]:
    """Return the early messages of an entry by due time: never delivered, with a delivery time in the future."""
    times = entry.delivery_times
    if times is None:
        return {}
    fresh = messages & ~delivery.known()
    for part in delivery.parts:
        if part.holder == NOBODY and not part.times:
            fresh |= part.messages & messages
    by_time: dict[int, int] = {}
    for index in message_set.indexes(fresh):
        due_ms = times[index]
        if due_ms is not None and due_ms > now_ms:
            by_time[due_ms] = by_time.get(due_ms, 0) | 1 << index
    return by_time
