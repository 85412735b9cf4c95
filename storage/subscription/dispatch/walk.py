"""Dispatch: which messages a consumer is handed next.

First it looks again at what was handed out or held back before; then it goes on through the log, in position order,
from where it came to last, up to the bound of the isolation level. Invariants: 2 and 3 (the bound and the filter),
4 (first deliveries are in position order), 7 (acknowledged and pending messages go to nobody), 21 (a key's messages
are handed out one consumer at a time, in order). It selects only, and reads only, so that a waiting consumer can look
for nothing; `handing_out.py` records.

With `--on-open skip` the bound is lastConfirmedEntry. Entries of open transactions are passed over, run by run; where
it meets the marker of a transaction that it has passed over, it looks at that one's entries, and at what was held
behind them. So the log itself says when something is to be looked at again (docs/decisions/0024).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from storage.disk.codec import U64, key1, key3
from storage.disk.schema import ACKS, DELIVERIES
from storage.disk.view import ReadView
from storage.limits import DISPATCH_BYTES_MAX, DISPATCH_SCAN_ENTRIES_MAX, HELD_MESSAGES_MAX
from storage.subscription import cursor as cursors, delivery as deliveries, message_set, pending_ack
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import NOBODY, PENDING, Delivery
from storage.subscription.dispatch import skipped_txns as awaits
from storage.subscription.dispatch.blocked_keys import HeldKeys, Place
from storage.subscription.dispatch.selection import WHOLE, HandOut, Selection
from storage.subscription.dispatch.skip_walk import Awaiting
from storage.subscription.dispatch.skipped_txns import Awaited
from storage.subscription.isolation import IsolationLevel, delivers
from storage.topic import log
from storage.topic.entry import COMMIT_MARKER, MESSAGES, Entry
from storage.topic.state import TopicState
from storage.txn import record as records, runs
from storage.txn.aborted import AbortedSet
from storage.values.txn_state import TransactionState

_NO_TXN = 0


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
    """One selection for one consumer.

    Args:
        aborted, blocked_keys: what the consumer knows already, and goes on knowing.
    """

    def __init__(
        self,
        view: ReadView,
        head: TopicState,
        subscription: Subscription,
        cursor: Cursor,
        consumer_id: int,
        room: int,
        aborted: AbortedSet,
        blocked_keys: HeldKeys,
    ) -> None:
        self._view = view
        self._head = head
        self._subscription = subscription
        self._cursor = cursor
        self._consumer_id = consumer_id
        self._room = room
        self._bytes = DISPATCH_BYTES_MAX
        self._aborted = aborted
        self._by_key = subscription.keeps_keys
        self._held_keys: dict[bytes, Place] = {}
        self._held_count = 0
        self._states: dict[int, TransactionState] = {}
        self._awaiting = (
            Awaiting(view, head, subscription, cursor, blocked_keys) if subscription.skips else None
        )
        self._moved: set[tuple[int, int]] = set()
        self._selection = Selection(cursor.read)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Begin to look from an earlier entry on."""
        self._deliveries = _Ahead(self._view, DELIVERIES, self._subscription.subscription_id)
        self._acks = _Ahead(self._view, ACKS, self._subscription.subscription_id)

    def run(self) -> Selection:
        if self._by_key or self._cursor.released:
            self._look_again()
        if not self._is_full():
            self._go_on()
        if self._awaiting is not None:
            self._selection.hand_outs.sort(key=lambda each: each.delivery.at)
        return self._selection

    def _is_full(self) -> bool:
        return self._room <= 0 or self._bytes <= 0 or self._held_count > HELD_MESSAGES_MAX

    def _look_again(self) -> None:
        """At what was handed out or held back, up to where dispatch has come: some of it may be free by now."""
        subscription, read = self._subscription, self._cursor.read
        self._aborted.load(self._view, subscription.topic_id, self._head, self._cursor.mark_delete, read)
        for delivery in deliveries.every(self._view, subscription.subscription_id):
            if delivery.at > read:
                return
            if not delivery.is_released and (
                not self._by_key or delivery.known() == delivery.of(self._consumer_id)
            ):
                continue
            entry = log.read(self._view, subscription.topic_id, delivery.at)
            assert entry is not None, "what is not acknowledged exists"
            if self._awaiting is None or not self._awaiting.is_passed_over(entry):
                self._visit(entry, delivery, delivery.known())
            if self._is_full():
                return

    def _go_on(self) -> None:
        """Through the log, from where dispatch has come to."""
        cursor, subscription, selection = self._cursor, self._subscription, self._selection
        through = subscription.bound(self._head)
        after = max(cursor.read, cursor.mark_delete)
        after = cursors.acknowledged_through(self._view, subscription.subscription_id, after)
        while after < through and selection.changes < DISPATCH_SCAN_ENTRIES_MAX:
            page = log.page(self._view, subscription.topic_id, after, through)
            if not page:
                return
            self._aborted.load(self._view, subscription.topic_id, self._head, after, page[-1].position)
            for entry in page:
                if entry.position <= after:
                    continue
                jump = self._jump(entry)
                if jump is not None:
                    after = jump
                    if after >= page[-1].position:
                        break
                    continue
                if self._awaiting is not None and entry.kind != MESSAGES and not self._take(entry):
                    selection.read, selection.is_cut = max(selection.read, after), True
                    return
                if entry.kind != MESSAGES:
                    selection.markers.append(entry.txn)
                self._visit_new(entry)
                after = entry.position
                if self._is_full():
                    break
            selection.read = max(selection.read, after)
            if self._is_full():
                return

    def _jump(self, entry: Entry) -> tuple[int, int] | None:
        """The end of what need not be looked at from this entry on: an acknowledged range, or a run to be awaited."""
        at = (entry.ledger_id, entry.entry_id)
        payload = self._acks.at(key3(self._subscription.subscription_id, *at))
        if payload is not None and len(payload) == 8:
            return (at[0], U64.unpack(payload)[0])
        if self._awaiting is None or not entry.txn or entry.kind != MESSAGES:
            return None
        if not self._awaiting.must_wait(entry):
            return None
        end = runs.end_of_run(self._view, self._subscription.topic_id, entry.txn, entry.position)
        self._awaiting.pass_over(entry.txn, end)
        self._selection.awaits[entry.txn] = None
        return end

    def _visit_new(self, entry: Entry) -> None:
        at = (entry.ledger_id, entry.entry_id)
        payload = self._deliveries.at(key3(self._subscription.subscription_id, *at))
        self._visit(entry, self._decoded(entry, payload), message_set.everything(entry.count))

    def _decoded(self, entry: Entry, payload: memoryview | None) -> Delivery:
        at = (entry.ledger_id, entry.entry_id)
        if payload is None:
            return Delivery(at, entry.count, [])
        return Delivery.decode(key3(self._subscription.subscription_id, *at), payload)

    def _visit(self, entry: Entry, delivery: Delivery, messages: int) -> None:
        if delivers(self._subscription.level, entry.kind, entry.txn, self._aborted.ids):
            self._offer(entry, delivery, messages)
        else:
            self._pass(entry, delivery)

    # With --on-open skip: a transaction has ended

    def _take(self, marker: Entry) -> bool:
        """Look at what was passed over for the transaction of a marker; whether at all of it."""
        assert self._awaiting is not None, "only who skips awaits"
        awaited = self._awaiting.of(marker.txn)
        if awaited is None:
            return True
        selection = self._selection
        if any(txn == marker.txn for txn, *_ in selection.behind):
            return False  # What this walk has put behind it must be recorded first.
        self._awaiting.begin_to_take(marker.txn)
        ahead = self._deliveries, self._acks
        self._look_ahead()
        for entry, messages in self._passed_over(awaited, marker.position):
            at = (entry.ledger_id, entry.entry_id)
            if self._is_full() or at in self._moved or selection.changes >= DISPATCH_SCAN_ENTRIES_MAX:
                return False
            self._take_entry(entry, messages, marker)
            selection.taken[marker.txn] = at
        self._deliveries, self._acks = ahead
        selection.taken.pop(marker.txn, None)
        selection.ended.append(marker.txn)
        return True

    def _take_entry(self, entry: Entry, messages: bytes | None, marker: Entry) -> None:
        """An entry of the transaction itself, or what is held of another one's behind it."""
        payload = self._deliveries.at(
            key3(self._subscription.subscription_id, entry.ledger_id, entry.entry_id)
        )
        delivery = self._decoded(entry, payload)
        if messages is not None:
            held = message_set.decode(messages, entry.count)
            self._selection.let_go.append((marker.txn, delivery.at, held))
            self._offer(entry, delivery, held)
        elif marker.kind == COMMIT_MARKER:
            self._offer(entry, delivery, message_set.everything(entry.count))
        else:
            self._pass(entry, delivery)

    def _passed_over(
        self, awaited: Awaited, through: tuple[int, int]
    ) -> Iterator[tuple[Entry, bytes | None]]:
        """The transaction's entries, and the messages held behind it, in order of position."""
        topic_id = self._subscription.topic_id
        after = max(awaited.taken, self._cursor.mark_delete)

        def held() -> Iterator[tuple[Entry, bytes | None]]:
            found = awaits.held_behind(self._view, self._subscription.subscription_id, awaited.txn, after)
            for at, messages in found:
                entry = log.read(self._view, topic_id, at)
                assert entry is not None, "what is not acknowledged exists"
                yield entry, messages

        own: Iterator[tuple[Entry, bytes | None]] = (
            (entry, None) for entry in runs.entries(self._view, topic_id, awaited.txn, after, through)
        )
        if not awaited.held:
            return own
        return merge(own, held(), key=lambda each: each[0].position)

    # One entry

    def _pass(self, entry: Entry, delivery: Delivery) -> None:
        """A marker or an aborted entry: it is acknowledged, but for what is pending."""
        # What a cumulative acknowledgement covers that is pending goes with its commit.
        covered = pending_ack.covered(self._cursor, delivery.at, max(entry.count, 1))
        if covered and not entry.count:
            return
        pending = delivery.of(PENDING) | covered
        passed = message_set.everything(entry.count) & ~pending
        if passed or not entry.count:
            which = passed if pending else WHOLE
            self._selection.passed.append((entry.ledger_id, entry.entry_id, entry.count, which))

    def _offer(self, entry: Entry, delivery: Delivery, messages: int) -> None:
        """See which of these messages the consumer can be handed."""
        at, selection = delivery.at, self._selection
        open_ = messages & ~self._acknowledged(at, entry.count)
        if not open_ or (open_ == delivery.known() and not delivery.is_released and not self._by_key):
            return
        free = self._free(delivery, open_)
        worn = self._worn_out(delivery, free)
        free &= ~worn
        if worn and self._is_decided(entry):
            selection.exhausted.append((entry, delivery, worn))
            open_ &= ~worn
        behind = 0
        if self._by_key:
            free, behind = self._free_of_keys(entry, delivery, open_, free)
        else:
            free = message_set.lowest(free, self._room)
        rest = open_ & ~free & ~behind & ~delivery.known()
        if rest:
            selection.held.append((delivery, rest))
        if free:
            selection.hand_outs.append(HandOut(entry, delivery, free, self._times(delivery, free)))
            entry.txn_state = self._state(entry)
            self._room -= free.bit_count()
            self._bytes -= entry.size
        if self._awaiting is not None and (free or rest or behind or worn):
            self._moved.add(at)

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

    def _free_of_keys(self, entry: Entry, delivery: Delivery, open_: int, free: int) -> tuple[int, int]:
        """Key_Shared: those whose earlier messages of the same key are acknowledged or in flight right here.

        And those, so far in nobody's hands, that have to wait behind a transaction that is awaited.
        """
        others = open_ & ~delivery.of(self._consumer_id)
        keys, known, behind = entry.keys, delivery.known(), dict[int, int]()
        self._held_count += (others & ~free).bit_count()
        for index in self._suspects(keys, others, free):
            bit, key = 1 << index, keys[index] if keys else None
            assert key is not None, "no key is held by nobody"
            here = (entry.ledger_id, entry.entry_id, index)
            txn = self._awaiting.holder(key, here) if self._awaiting is not None else _NO_TXN
            if txn and not known & bit:
                behind[txn] = behind.get(txn, 0) | bit
                free &= ~bit
            elif txn or not free & bit or self._held_keys.get(key, here) < here:
                self._held_count += bool(free & bit)
                self._held_keys[key] = min(self._held_keys.get(key, here), here)
                free &= ~bit
        self._selection.behind += [(txn, delivery.at, entry.count, bits) for txn, bits in behind.items()]
        # What is left when the room is full holds its key too, but nothing is looked at after it.
        return message_set.lowest(free, self._room), sum(behind.values())

    def _suspects(self, keys: list[bytes | None] | None, others: int, free: int) -> list[int]:
        """Of an entry's messages those whose key anybody may hold, one of the same entry included."""
        if keys is None:
            return []
        there = {key for key in keys if key is not None}
        held = self._held_keys.keys() & there
        held.update(key for index in message_set.indexes(others & ~free) if (key := keys[index]) is not None)
        if self._awaiting is not None:
            held |= self._awaiting.suspects(there)
        return (
            [index for index, key in enumerate(keys) if key in held and others >> index & 1] if held else []
        )

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
