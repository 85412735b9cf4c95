"""Dispatch: which messages a consumer is handed next.

One walk over the log, in position order, from the first message that may be handed out to the bound of the
isolation level. Invariants: 2 and 3 (the bound and the filter), 4 (first deliveries are in position order),
7 (acknowledged and pending messages go to nobody), 21 (a key's messages are handed out one consumer at a time, in
order). First it selects, then it applies: selecting reads only, so that a waiting consumer can look for nothing.
"""

from __future__ import annotations

from storage import faults
from storage.codec import U64, key1, key3
from storage.ledger import managed_ledger
from storage.ledger.entry import Entry
from storage.ledger.topic_head import TopicHead
from storage.limits import DISPATCH_BYTES_MAX, DISPATCH_SCAN_ENTRIES_MAX, HELD_MESSAGES_MAX
from storage.schema import ACKS, DELIVERIES
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import NOBODY, PENDING, Delivery, Part
from storage.subscription.isolation import IsolationLevel, SubscriptionType, bound, delivers
from storage.subscription.subscription import Subscription
from storage.txn import record as records
from storage.txn.aborted import AbortedSet
from storage.txn_state import TransactionState
from storage.view import ReadView, WriteBatch

WHOLE = 0
"""Among what was passed: every message of the entry, or a marker."""


class HandOut:
    """Messages of one entry for a consumer: which, and how often each was handed out before."""

    __slots__ = ("delivery", "entry", "messages", "times")

    def __init__(self, entry: Entry, delivery: Delivery, messages: int, times: dict[int, int]) -> None:
        self.entry = entry
        self.delivery = delivery
        self.messages = messages
        self.times = times


class Selection:
    """What a walk found: what to hand out, what to pass over for good, what is worn out, how far it came."""

    __slots__ = ("hand_outs", "held", "passed", "read", "worn_out")

    def __init__(self, read: tuple[int, int]) -> None:
        self.hand_outs: list[HandOut] = []
        self.passed: list[tuple[int, int, int, int]] = []
        self.held: list[tuple[Delivery, int]] = []
        self.worn_out: list[tuple[Entry, Delivery, int]] = []
        self.read = read


class _Ahead:
    """The next record of a subscription at or after a position, looked up again only when it is passed."""

    __slots__ = ("_at", "_database", "_found", "_prefix", "_view")

    def __init__(self, view: ReadView, database: object, subscription_id: int) -> None:
        self._view = view
        self._database = database
        self._prefix = key1(subscription_id)
        self._found: tuple[bytes, memoryview] | None = None
        self._at: bytes | None = None

    def at(self, key: bytes) -> memoryview | None:
        """The record with exactly this key; keys are asked for in order."""
        if self._at is None or (self._found is not None and self._found[0] < key):
            self._found = self._view.first(self._database, self._prefix, key)  # type: ignore[arg-type]
            self._at = key
        return self._found[1] if self._found is not None and self._found[0] == key else None


class Walk:
    """One selection for one consumer."""

    def __init__(
        self,
        view: ReadView,
        head: TopicHead,
        subscription: Subscription,
        cursor: Cursor,
        consumer_id: int,
        room: int,
        aborted: AbortedSet,
    ) -> None:
        self._view = view
        self._head = head
        self._subscription = subscription
        self._cursor = cursor
        self._consumer_id = consumer_id
        self._room = room
        self._bytes = DISPATCH_BYTES_MAX
        self._aborted = aborted
        self._by_key = subscription.type is SubscriptionType.KEY_SHARED
        self._held_keys: set[bytes] = set()
        self._held_count = 0
        self._states: dict[int, TransactionState] = {}
        self._deliveries = _Ahead(view, DELIVERIES, subscription.subscription_id)
        self._acks = _Ahead(view, ACKS, subscription.subscription_id)

    def run(self) -> Selection:
        cursor, subscription = self._cursor, self._subscription
        through = bound(subscription.level, self._head.max_read, self._head.last_confirmed)
        is_partial = self._by_key or cursor.released
        after = cursor.mark_delete if is_partial else max(cursor.read, cursor.mark_delete)
        selection = Selection(cursor.read)
        while (
            after < through
            and self._room > 0
            and self._bytes > 0
            and len(selection.passed) < DISPATCH_SCAN_ENTRIES_MAX
        ):
            page = managed_ledger.page(self._view, subscription.topic_id, after, through)
            if not page:
                break
            self._aborted.load(self._view, subscription.topic_id, self._head, after, page[-1].position)
            for entry in page:
                jump = self._jump(entry.position)
                if jump is not None:
                    after = jump
                    if after >= page[-1].position:
                        break
                    continue
                if entry.position <= after:
                    continue
                self._visit(entry, selection)
                after = entry.position
                if self._room <= 0 or self._bytes <= 0 or self._held_count > HELD_MESSAGES_MAX:
                    selection.read = max(selection.read, after)
                    return selection
            selection.read = max(selection.read, after)
        return selection

    def _jump(self, at: tuple[int, int]) -> tuple[int, int] | None:
        """The end of the acknowledged range of whole entries that begins here, if one does."""
        payload = self._acks.at(key3(self._subscription.subscription_id, *at))
        if payload is None or len(payload) > 8:
            return None
        return (at[0], U64.unpack(payload)[0])

    def _visit(self, entry: Entry, selection: Selection) -> None:
        at = (entry.ledger_id, entry.entry_id)
        key = key3(self._subscription.subscription_id, *at)
        payload = self._deliveries.at(key)
        delivery = Delivery(at, entry.count, []) if payload is None else Delivery.decode(key, payload)
        if not delivers(self._subscription.level, entry.kind, entry.txn, self._aborted.ids):
            pending = delivery.of(PENDING)
            passed = message_set.everything(entry.count) & ~pending
            if passed or not entry.count:
                selection.passed.append((*at, entry.count, passed if pending else WHOLE))
            return
        open_ = message_set.everything(entry.count) & ~self._acknowledged(at, entry.count)
        if not open_ or (open_ == delivery.known() and not delivery.is_released and not self._by_key):
            return
        free = self._free(delivery, open_)
        worn = self._worn_out(delivery, free)
        free &= ~worn
        if worn and self._is_decided(entry):
            selection.worn_out.append((entry, delivery, worn))
            open_ &= ~worn
        if self._by_key:
            free = self._free_of_keys(entry, delivery, open_, free)
        else:
            free = message_set.lowest(free, self._room)
        rest = open_ & ~free & ~delivery.known()
        if rest:
            selection.held.append((delivery, rest))
        if free:
            selection.hand_outs.append(HandOut(entry, delivery, free, self._times(delivery, free)))
            entry.txn_state = self._state(entry)
            self._room -= free.bit_count()
            self._bytes -= entry.size

    def _acknowledged(self, at: tuple[int, int], count: int) -> int:
        """Acknowledged messages of the entry, or those that a pending cumulative acknowledgement covers."""
        done = 0
        payload = self._acks.at(key3(self._subscription.subscription_id, *at))
        if payload is not None:
            done = message_set.decode(payload[8:], count)
        else:
            done = cursors.acknowledged(
                self._view, self._subscription.subscription_id, self._cursor, at, count
            )
        pending = self._cursor.pending_cumulative
        if pending is not None and at <= pending[1:3]:
            whole = at < pending[1:3] or pending[3] < 0
            done |= message_set.everything(count) if whole else message_set.through(pending[3])
        return done

    def _free(self, delivery: Delivery, open_: int) -> int:
        """Messages that nobody holds and that are due."""
        free = open_ & ~delivery.known()
        for part in delivery.parts:
            if part.holder == NOBODY and part.due_ns <= self._view.now_ns:
                free |= part.messages & open_
        return free

    def _free_of_keys(self, entry: Entry, delivery: Delivery, open_: int, free: int) -> int:
        """Key_Shared: those whose earlier messages of the same key are acknowledged or in flight right here."""
        keys = entry.keys
        mine = delivery.of(self._consumer_id)
        found = 0
        for index in message_set.indexes(open_):
            bit = 1 << index
            key = keys[index] if keys else None
            if mine & bit:
                continue
            if free & bit and (key is None or key not in self._held_keys) and found.bit_count() < self._room:
                found |= bit
                continue
            self._held_count += 1
            if key is not None:
                self._held_keys.add(key)
        return found

    def _worn_out(self, delivery: Delivery, free: int) -> int:
        """Messages that were redelivered as often as the dead-letter policy allows."""
        limit = self._subscription.max_redeliver_count
        if limit is None:
            return 0
        worn = 0
        for part in delivery.parts:
            if part.holder == NOBODY and part.times > limit:
                worn |= part.messages & free
        return worn

    def _times(self, delivery: Delivery, messages: int) -> dict[int, int]:
        times: dict[int, int] = {}
        for part in delivery.parts:
            if part.times and part.messages & messages:
                for index in message_set.indexes(part.messages & messages):
                    times[index] = part.times
        return times

    def _is_decided(self, entry: Entry) -> bool:
        return not entry.txn or self._state(entry) is not TransactionState.OPEN

    def _state(self, entry: Entry) -> TransactionState | None:
        if not entry.txn:
            return None
        if self._subscription.level is IsolationLevel.READ_COMMITTED:
            return TransactionState.COMMITTED
        if entry.txn not in self._states:
            self._states[entry.txn] = records.state_of(self._view, entry.txn)
        return self._states[entry.txn]


def apply(
    batch: WriteBatch, subscription: Subscription, cursor: Cursor, consumer_id: int, selection: Selection
) -> None:
    """Record a selection: what was passed is acknowledged, what is handed out is in flight. Saves the cursor."""
    faults.reach("subscription.before_dispatch")
    subscription_id = subscription.subscription_id
    changed: dict[tuple[int, int], Delivery] = {}
    for hand_out in selection.hand_outs:
        delivery = changed[hand_out.delivery.at] = hand_out.delivery
        _hand_out(delivery, hand_out.messages, consumer_id)
        cursor.delivered += hand_out.messages.bit_count()
        cursor.redelivered += len(hand_out.times)
    for delivery, messages in selection.held:
        changed[delivery.at] = delivery
        delivery.give(Part(messages, NOBODY, 0))
    for delivery in changed.values():
        deliveries.save(batch, subscription_id, cursor, delivery)
    _pass_over(batch, subscription, cursor, selection.passed)
    cursor.read = max(cursor.read, selection.read)
    cursors.advance(batch, subscription.topic_id, subscription_id, cursor)
    cursors.save(batch, subscription_id, cursor)


def _hand_out(delivery: Delivery, messages: int, consumer_id: int) -> None:
    new = messages & ~delivery.known()
    for part in delivery.take(messages):
        delivery.give(Part(part.messages, consumer_id, part.times + 1, withdrawn=part.withdrawn))
    if new:
        delivery.give(Part(new, consumer_id, 1))


def _pass_over(
    batch: WriteBatch, subscription: Subscription, cursor: Cursor, passed: list[tuple[int, int, int, int]]
) -> None:
    """Acknowledge markers and aborted messages that dispatch has passed, whole runs of them at once."""
    subscription_id, at = subscription.subscription_id, 0
    while at < len(passed):
        ledger_id, first, count, messages = passed[at]
        if messages != WHOLE:
            deliveries.settle(batch, subscription_id, cursor, (ledger_id, first), messages)
            cursors.acknowledge(
                batch, subscription.topic_id, subscription_id, cursor, (ledger_id, first), count, messages
            )
            at += 1
            continue
        last = first
        while at < len(passed) and passed[at][:2] == (ledger_id, last) and passed[at][3] == WHOLE:
            if cursor.released:
                deliveries.settle(batch, subscription_id, cursor, (ledger_id, last), -1)
            at, last = at + 1, last + 1
        if cursors.is_next(batch, subscription.topic_id, cursor.mark_delete, (ledger_id, first)):
            cursors.acknowledge_through(batch, subscription_id, cursor, (ledger_id, last - 1))
        else:
            cursors.acknowledge_entries(batch, subscription_id, ledger_id, first, last - 1)
