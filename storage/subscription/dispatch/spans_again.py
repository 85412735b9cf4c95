"""The messages of spans that one walk of a Key_Shared consumer examines again.

A poll pays for the spans, and for messages whose state has changed since the last poll: keys of waiting messages are
remembered, free messages behind a waiting one of their key are not examined, and where no delivery has changed since a
walk that found nothing, none is.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription import span
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch.blocked_keys import MessageOrder
from storage.subscription.dispatch.consumer_memory import ConsumerMemory
from storage.subscription.dispatch.span_keys import ReadKeys
from storage.subscription.dispatch.walk_result import Selection
from storage.subscription.open_subscription import OpenSubscription
from storage.values.position import Position


class SpansAgain:
    """See the module.

    Attributes:
        records: the records to examine: those of single entries, then of spans those with free messages.
        held: the number of messages of spans that wait for a message before them, or block later ones.
        awaits_decision: whether a message waits for the end of a transaction, which changes no delivery: an exhausted
            message of its own, and with on-open skip any message for one that is skipped.
    """

    __slots__ = (
        "_counted",
        "_free",
        "_is_idle",
        "_keys",
        "_limit",
        "_read",
        "_state",
        "awaits_decision",
        "held",
        "records",
    )

    def __init__(self, opened: OpenSubscription[ReadView], memory: ConsumerMemory, read: ReadKeys) -> None:
        view, last = opened.view, opened.cursor.read
        self._keys = memory.span_keys
        self._read = read
        self._limit = opened.subscription.max_redeliver_count
        self._free: dict[Position, int] = {}
        waiting: dict[Position, int] = {}
        state: list[object] = [self._limit]
        self.records: list[Delivery] = []
        for record in opened.deliveries.records():
            inside = record.through(last, -1)
            free = record.due(view.now_ns) & inside
            rest = record.known() & ~record.of(memory.consumer_id) & ~free & inside
            state.append((record.at, record.is_span, free, rest))
            if free or not record.is_span:
                self.records.append(record)
            if record.is_span:
                self._free[record.at], waiting[record.at] = free, rest
        self._keys.load(waiting.items(), read)
        self._counted = waiting
        self.held = sum(messages.bit_count() for messages in waiting.values())
        self._state = tuple(state)
        self._is_idle = self._keys.idle == self._state
        self._keys.idle = None
        self.awaits_decision = opened.cursor.skipped_txns > 0

    def chosen(self, record: Delivery) -> int:
        """The messages of a record of a span to examine."""
        free, blocked = self._free.get(record.at, 0), 0
        if self._is_idle:
            return 0
        for part in record.parts:
            if self._limit is not None and part.times > self._limit:
                continue  # for the dead-letter topic, whether or not its key is blocked
            blocked |= self._keys.blocked(record.at, part.messages & free, self._read)
        self.held += blocked.bit_count()
        self._counted[record.at] = self._counted.get(record.at, 0) | blocked
        return free & ~blocked

    def uncount(self, at: Position) -> None:
        """Leave to the walk the messages of an entry that it examines."""
        self.held -= span.of_entry(at, self._counted.get(span.first_of(at), 0)).bit_count()

    def blocks(self, key: bytes, here: MessageOrder) -> bool:
        """Whether a waiting message of a span blocks the key of a message."""
        return self._keys.blocks(key, here)

    def among(self, keys: set[bytes]) -> set[bytes]:
        """The keys that some waiting message of a span has."""
        return {key for key in keys if self._keys.first(key) is not None}

    def end(self, selection: Selection) -> None:
        """Note the end of the examination."""
        if not (selection.is_worth_recording or self.awaits_decision):
            self._keys.idle = self._state
