"""Dispatch: select the messages that a consumer receives next.

First a walk examines again the messages that were delivered or held back before; then it goes on through the log, in
position order, from the cursor's read position up to the bound of the isolation level. Invariants: 2 and 3 (the bound
and the filter), 4 (first deliveries are in position order), 7 (acknowledged and pending messages go to no consumer), 21
(a key's messages are delivered to one consumer at a time, in order). A walk selects only, and reads only, so that a
waiting consumer can look for new messages without a write; `walk_record.py` records the selection.

With `--on-open skip` the bound is lastConfirmedEntry. Entries of open transactions are skipped, run by run; at the
marker of a skipped transaction, the walk examines that transaction's entries, and the messages blocked behind them. So
the log itself says when to examine a skipped message again (docs/decisions/0024).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from storage.disk.view import ReadView
from storage.limits import (
    DELAYED_RECORDS_MAX,
    DISPATCH_BYTES_MAX,
    DISPATCH_SCAN_ENTRIES_MAX,
    HELD_MESSAGES_MAX,
    LEFT_TO_OTHERS_MAX,
)
from storage.subscription import acked_ranges, message_set, pending_ack, span
from storage.subscription.deliveries import by_entry
from storage.subscription.delivery import NOBODY, PENDING, Delivery
from storage.subscription.dispatch import compacted_walk, share
from storage.subscription.dispatch.consumer_memory import ConsumerMemory
from storage.subscription.dispatch.delay_walk import DelayWalk
from storage.subscription.dispatch.held_keys import held_keys
from storage.subscription.dispatch.records_ahead import RecordsAhead
from storage.subscription.dispatch.share import KeyShare
from storage.subscription.dispatch.skip_walk import SkipWalk
from storage.subscription.dispatch.spans_again import SpansAgain
from storage.subscription.dispatch.walk_keys import WalkKeys
from storage.subscription.dispatch.walk_result import WHOLE, Selection
from storage.subscription.dispatch.walk_work import WalkWork
from storage.subscription.isolation import IsolationLevel, delivers
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.compaction import compacted_view
from storage.topic.entry import COMMIT_MARKER, MESSAGES, Entry
from storage.topic.message_batch import Piece
from storage.topic.open_topic import OpenTopic
from storage.txn import record as records, runs
from storage.values.position import Position
from storage.values.txn_state import TransactionState

_PAGE_ENTRIES_MIN = 64
"""Markers and aborted entries may lie between the messages."""


class Walk:
    """The selection of messages for one consumer.

    Args:
        size: the number of messages to select at most; shared with other consumers, the consumer's share of what waits.
    """

    def __init__(
        self,
        topic: OpenTopic[ReadView],
        opened: OpenSubscription[ReadView],
        memory: ConsumerMemory,
        size: int,
    ) -> None:
        self._view = topic.view
        self._topic = topic
        self._opened = opened
        self._subscription = opened.subscription
        self._subscription_id = opened.subscription_id
        self._cursor = opened.cursor
        self._memory = memory
        self._consumer_id = memory.consumer_id
        self._room = room = share.room(topic, opened, size)
        self._bytes = DISPATCH_BYTES_MAX
        self._work = WalkWork()
        self._aborted = memory.aborted
        self._reads_compacted = memory.reads_compacted
        self._by_key = opened.subscription.keeps_keys
        self._heeds_times = opened.subscription.delays
        self._states: dict[int, TransactionState] = {}
        # One time for the walk: of two messages due at the same time none may be early, and none due.
        now_ms, keys = self._view.clock.wall_ms(), memory.blocked_keys
        self._skips = SkipWalk(topic.state, opened, keys, now_ms) if opened.subscription.skips else None
        self._delays = DelayWalk(opened, now_ms, room)
        self._moved: set[Position] = set()
        self._selection = Selection(opened.cursor.read)
        key_share = KeyShare(share.sharers(opened))
        self._keys = WalkKeys(memory.consumer_id, self._skips, self._selection, key_share)
        self._records = RecordsAhead(opened)

    def select(self) -> Selection:
        """Run the walk."""
        if self._delays.must_hold:
            self._hold_due()
            return self._selection
        if self._by_key or self._cursor.released or self._delays.has_due:
            self._select_again()
        if not self._is_full():
            self._select_new()
        if self._skips is not None:
            self._selection.dispatched.sort(key=lambda piece: piece.at)
        return self._selection

    def _is_full(self) -> bool:
        is_full = self._room <= 0 or self._bytes <= 0 or self._keys.held_count > HELD_MESSAGES_MAX
        is_full = is_full or self._keys.share.passed >= LEFT_TO_OTHERS_MAX
        return is_full or self._work.left <= 0 or self._selection.delay_records >= DELAYED_RECORDS_MAX

    def _hold_due(self) -> None:
        """Hold back due messages, which are free from now on, and which hold their keys."""
        selection = self._selection
        for at, messages in self._delays.due():
            delivery = self._opened.deliveries.find(at) or Delivery(at, self._opened.delayed.size(at), [])
            self._note_own(delivery)
            selection.held.append((delivery, messages & ~delivery.known()))
            selection.due.append((at, messages))
        selection.is_cut = True

    def _select_again(self) -> None:
        """Examine deliveries up to the read position, some of whose messages may be free by now, and due messages."""
        topic_id, read = self._subscription.topic_id, self._cursor.read
        self._aborted.load(self._topic, self._cursor.mark_delete, read)
        deliveries, again, delivered = self._opened.deliveries, None, iter(list[Delivery]())
        if self._by_key:
            keys_at = partial(held_keys, self._view, self._subscription)
            self._keys.again = again = SpansAgain(self._opened, self._memory, keys_at)
            delivered = by_entry(again.records, self._chosen_again)
        elif self._cursor.released:
            delivered = deliveries.free(self._chosen_again, self._memory.free_places)
        for at, delivery, due in self._delays.again(delivered, read):
            parts = delivery or deliveries.find(at)
            parts = parts or Delivery(at, log.stored(self._view, topic_id, at).count, [])
            entry, known = self._stored(parts)
            if entry is None:
                continue
            if again is not None and not parts.has_record:
                again.uncount(at)
            if self._skips is None or not self._skips.is_skipped(entry):
                self._visit(entry, parts, known | due)
                if due:
                    self._selection.due.append((at, due))
            if self._is_full():
                return
        if again is not None:
            self._keys.held_count += again.held
            again.end(self._selection)

    def _chosen_again(self, record: Delivery) -> int:
        """The messages of a record to examine again: free and due; on Key_Shared all that may block their key."""
        if self._keys.again is not None and record.is_span:
            return self._keys.again.chosen(record)
        now_ns = self._view.now_ns
        chosen = record.known() & ~record.of(self._consumer_id) if self._by_key else record.due(now_ns)
        return chosen & record.through(self._cursor.read, -1)

    def _select_new(self) -> None:
        """Go on through the log, from the read position."""
        subscription, selection = self._subscription, self._selection
        through = subscription.bound(self._topic.state)
        after = max(self._cursor.read, self._cursor.mark_delete)
        after = acked_ranges.acknowledged_through(self._view, self._subscription_id, after)
        if self._reads_compacted:
            after = self._select_compacted(after, through)
        while after < through and selection.changes < DISPATCH_SCAN_ENTRIES_MAX and not self._is_full():
            page = log.page(self._view, subscription.topic_id, after, through, self._page_entries())
            if not page:
                return
            self._aborted.load(self._topic, after, page[-1].position)
            after = self._select_page(page, after)
            selection.read = max(selection.read, after)
            if selection.is_cut:
                return
        # Messages held back are recorded where the work ends among them, so that the next walk begins behind them.
        selection.is_cut = self._work.left <= 0 and bool(selection.held)

    def _select_page(self, page: list[Entry], after: Position) -> Position:
        """Go on through a page; return the position reached, and cut the selection at a marker to be examined later."""
        for entry in page:
            if entry.position <= after:
                continue
            if self._is_new(entry):
                self._deliver(entry, range(entry.count), {}, (1 << entry.count) - 1)
                self._work.selected(entry)
            else:
                jump = self._jump(entry)
                if jump is not None:
                    after = jump
                    continue
                if self._skips is not None and entry.kind != MESSAGES and not self._examine(entry):
                    self._selection.is_cut = True
                    break
                if entry.kind != MESSAGES:
                    self._selection.markers.append(entry.txn)
                self._visit_new(entry)
            after = entry.position
            if self._is_full():
                break
        return after

    def _page_entries(self) -> int:
        """The number of entries to read next: not many more than may be delivered, judging by the topic's batches."""
        state = self._topic.state
        return max(self._room * max(state.entries, 1) // max(state.messages, 1), _PAGE_ENTRIES_MIN)

    def _is_new(self, entry: Entry) -> bool:
        """Whether all messages of an entry are delivered, for all that its header says: no record names the entry."""
        return (
            entry.count <= self._room
            and entry.count <= span.SPAN_MESSAGES_MAX
            and not self._records.names(entry)
            and (not entry.txn or self._skips is None)
            and delivers(self._subscription.level, entry.kind, entry.txn, self._aborted.ids)
            and not (self._heeds_times and entry.delivery_times)
            and not (self._by_key and self._keys.suspects(entry))
        )

    def _select_compacted(self, after: Position, through: Position) -> Position:
        """Go on through the compacted view, up to its horizon; return the position reached."""
        selection = self._selection
        for step in compacted_walk.steps(self._topic, self._opened, after, through):
            selection.gaps += step.gap
            self._work.passed()
            for entry in step.judged:
                self._pass(entry, self._records.delivery(entry))
            if step.entry is not None:
                entry, kept = step.entry.expanded(), step.entry.kept
                delivery = self._records.delivery(entry)
                pending = delivery.of(PENDING) | pending_ack.covered(
                    self._cursor, entry.position, entry.count
                )
                gone = message_set.everything(entry.count) & ~kept & ~pending
                if gone:
                    selection.passed.append((*entry.position, entry.count, gone))
                self._offer(entry, delivery, kept)
            after = selection.read = max(after, step.reached)
            if self._is_full() or selection.changes >= DISPATCH_SCAN_ENTRIES_MAX:
                break
        return after

    def _stored(self, delivery: Delivery) -> tuple[Entry | None, int]:
        """The entry of a delivery, and its messages that are in a part and stored.

        Where the log was trimmed, messages that the compacted view has no more are passed over: it has newer ones.
        """
        topic_id, known = self._subscription.topic_id, delivery.known()
        if delivery.at[0] >= self._topic.state.first_ledger:
            return log.stored(self._view, topic_id, delivery.at), known
        compacted = compacted_view.read(self._view, topic_id, delivery.at)
        kept = 0 if compacted is None else compacted.kept
        gone = delivery.of(NOBODY) & ~kept
        if gone:
            self._selection.passed.append((*delivery.at, delivery.count, gone))
        return None if compacted is None else compacted.expanded(), known & kept

    def _jump(self, entry: Entry) -> Position | None:
        """The end of a range to jump over from this entry on: an acknowledged range, or a run to skip."""
        end = self._records.end_of_acknowledged(entry)
        if end is not None:
            return end
        if self._skips is None or not entry.txn or entry.kind != MESSAGES:
            return None
        if not self._skips.must_skip(entry):
            return None
        end = runs.end_of_run(self._view, self._subscription.topic_id, entry.txn, entry.position)
        self._skips.pass_over(entry.txn, end)
        self._selection.skipped[entry.txn] = None
        return end

    def _visit_new(self, entry: Entry) -> None:
        messages = message_set.everything(entry.count) & ~self._delays.known(entry)
        self._visit(entry, self._records.delivery(entry), messages)

    def _visit(self, entry: Entry, delivery: Delivery, messages: int) -> None:
        if delivers(self._subscription.level, entry.kind, entry.txn, self._aborted.ids):
            self._offer(entry, delivery, messages)
        else:
            self._pass(entry, delivery)

    # With --on-open skip: a transaction has ended

    def _examine(self, marker: Entry) -> bool:
        """Examine the entries skipped for the transaction of a marker; whether all of them."""
        assert self._skips is not None, "only a subscription that skips has skipped transactions"
        skipped = self._skips.of(marker.txn)
        if skipped is None:
            return True
        selection = self._selection
        if any(txn == marker.txn for txn, *_ in selection.behind):
            return False  # Messages that this walk has put behind the transaction must be recorded first.
        self._skips.begin_to_examine(marker.txn)
        for entry, messages in self._skips.entries(skipped, marker.position):
            at = entry.position
            if self._is_full() or at in self._moved or selection.changes >= DISPATCH_SCAN_ENTRIES_MAX:
                return False
            self._examine_entry(entry, messages, marker)
            selection.examined[marker.txn] = at
        selection.examined.pop(marker.txn, None)
        selection.ended.append(marker.txn)
        return True

    def _examine_entry(self, entry: Entry, messages: bytes | None, marker: Entry) -> None:
        """Examine an entry of the transaction itself, or the blocked messages of an entry behind it."""
        delivery = self._records.delivery(entry)
        if messages is not None:
            blocked = message_set.decode(messages, entry.count)
            self._selection.unblocked.append((marker.txn, delivery.at, blocked))
            self._work.passed()
            self._offer(entry, delivery, blocked)
        elif marker.kind == COMMIT_MARKER:
            self._selection.is_late |= entry.delivery_times is not None
            self._offer(entry, delivery, message_set.everything(entry.count))
        else:
            self._pass(entry, delivery)

    # One entry

    def _pass(self, entry: Entry, delivery: Delivery) -> None:
        """Acknowledge a marker or an aborted entry, except pending messages."""
        # Messages that a pending cumulative acknowledgement covers go with its commit.
        covered = pending_ack.covered(self._cursor, delivery.at, max(entry.count, 1))
        if covered and not entry.count:
            return
        pending = delivery.of(PENDING) | covered
        passed = message_set.everything(entry.count) & ~pending
        if passed or not entry.count:
            self._work.passed()
            which = passed if pending else WHOLE
            self._selection.passed.append((entry.ledger_id, entry.entry_id, entry.count, which))

    def _offer(self, entry: Entry, delivery: Delivery, messages: int) -> None:
        """Select the messages that the consumer can receive."""
        at, selection = delivery.at, self._selection
        open_ = messages & ~self._records.acknowledged(entry)
        early = self._delays.early(entry, delivery, open_)
        if early:
            self._note_own(delivery)
            open_ &= ~selection.delay(delivery, early)
            self._moved.add(at)
        if not open_ or (open_ == delivery.known() and not delivery.is_released and not self._by_key):
            return
        free = self._free(delivery, open_)
        exhausted = self._exhausted(delivery, free)
        free &= ~exhausted
        if exhausted and self._is_decided(entry):
            selection.exhausted.append((entry, delivery, exhausted))
            self._work.retired(entry)
            open_ &= ~exhausted
        elif exhausted and self._keys.again is not None:
            self._keys.again.awaits_decision = True
        behind = 0
        if self._by_key:
            free, behind = self._keys.free(entry, delivery, open_, free)
        # The messages left when the room is full block their keys too, but no entry is examined afterwards.
        free = message_set.lowest(free, self._room)
        rest = open_ & ~free & ~behind & ~delivery.known()
        if free or rest:
            self._note_own(delivery)
        if rest:
            selection.held.append((delivery, rest))
        if free:
            is_whole = free == message_set.everything(entry.count)
            indexes = range(entry.count) if is_whole else message_set.indexes(free)
            self._deliver(entry, indexes, delivery.times(free), free)
        if free or rest or behind:
            self._work.changed(entry)
        if self._skips is not None and (rest or behind or exhausted):
            self._moved.add(at)

    def _note_own(self, delivery: Delivery) -> None:
        if delivery.has_record:
            self._selection.own[delivery.at] = delivery

    def _deliver(self, entry: Entry, indexes: Sequence[int], times: dict[int, int], messages: int) -> None:
        """Select messages of an entry; `times` are the earlier deliveries."""
        piece = Piece(entry, indexes, times, messages)
        self._selection.dispatched.append(piece)
        if entry.txn:
            entry.txn_state = self._state(entry)
        if self._skips is not None:
            self._moved.add(entry.position)
        self._room -= piece.count
        self._bytes -= entry.size

    def _free(self, delivery: Delivery, open_: int) -> int:
        """Messages that are free and due."""
        return open_ & (~delivery.known() | delivery.due(self._view.now_ns))

    def _exhausted(self, delivery: Delivery, free: int) -> int:
        """Messages that were redelivered as often as the dead-letter policy allows."""
        limit = self._subscription.max_redeliver_count
        if limit is None:
            return 0
        exhausted = 0
        for part in delivery.parts:
            if part.holder == NOBODY and part.times > limit:
                exhausted |= part.messages & free
        return exhausted

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
