"""The messages delivered to one consumer that its application has not received yet.

Messages are delivered a window at a time, in one store transaction each. Before the application sees a message, the
messages that were recalled meanwhile leave the window: by an abort, a seek, or an acknowledgement of a second consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from storage.client.attachment import Attachment
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.errors import WriterBusy
from storage.subscription import (
    catalogue as subscriptions,
    cursor as cursors,
    dead_letter,
    delivered_window,
    delivery as deliveries,
    message_bound,
)
from storage.subscription.acknowledge import Item
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import share
from storage.subscription.dispatch.consumer_memory import ConsumerMemory
from storage.subscription.dispatch.key_order import KeyOrder
from storage.subscription.dispatch.next_messages import Walk
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.dispatch.walk_record import record_selection
from storage.subscription.dispatch.walk_result import Selection
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redelivery import negative_acknowledge
from storage.topic import log
from storage.topic.entry import NS_PER_MS
from storage.topic.message_batch import MessageBatch, Piece
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position


class OwnCommit(NamedTuple):
    """The state of the subscription at a commit of the consumer itself.

    Attributes:
        commit: the number of the commit.
        generation: of the cursor.
        is_wanted: whether the window is wanted by another consumer.
    """

    commit: int
    generation: int
    is_wanted: bool


class Trusted(NamedTuple):
    """Up to where the queue is known to agree with the store: the commit looked at, and the cursor's generation."""

    seen: int
    generation: int


class ReceiveWindow:
    """See the module.

    Attributes:
        seen: the commit of the last view that was looked at.
    """

    __slots__ = (
        "_attachment", "_delivered_generation", "_due_ms", "_generation", "_is_quiet", "_key_order", "_memory",
        "_number", "_queue", "_quiet_generation", "_shared", "_size", "seen",
    )  # fmt: skip

    def __init__(self, attachment: Attachment, size: int) -> None:
        self._attachment = attachment
        self._size = size
        self._memory = ConsumerMemory(attachment.consumer_id, reads_compacted=attachment.reads_compacted)
        self._queue = ReceiverQueue()
        self._key_order = KeyOrder(attachment.subscription, attachment.consumer_id, self._queue)
        self._generation = self._delivered_generation = -1
        self._number: int | None = None
        self._shared = 0
        self._due_ms: int | None = None
        self._is_quiet = False
        self._quiet_generation = -1
        self.seen = -1

    # Filling

    def fill(self, gate_s: float | None = None) -> bool:
        """Have the next window delivered if nothing is left of the last one; whether a message is there.

        Args:
            gate_s: how long to wait for the writer gate, if not as long as the connection does.

        Raises:
            ConsumerEvicted, SubscriptionNotFound, WriterBusy
        """
        self._drop_recalled(gate_s)
        return bool(self._queue) or self._deliver(gate_s)

    def _deliver(self, gate_s: float | None) -> bool:
        while True:
            try:
                with self._attachment.connection.view() as view:
                    self.seen = seen = view.commit
                    self._attachment.check_attached(view)
                    asks = self._asks(view)
                    if not self._is_worth_dispatching(view):
                        break
                self.distrust()
                selection = self._attachment.connection.write(
                    self._dispatch, timeout_s=gate_s, share=ReserveShare.PART
                )
            except BaseException:
                self._memory.forget()
                raise
            self.trust(Trusted(seen, self._delivered_generation))
            if not self._is_quiet and selection.dispatched:
                self._note_quiet(True)
            if self._queue:
                return True
            if not selection.is_worth_recording:
                break
        if asks:
            self._attachment.write_attached(self._ask, gate_s=gate_s)
        return False

    def _is_worth_dispatching(self, view: ReadView) -> bool:
        """Whether a dispatch would find a message, without writing."""
        subscription = self._attachment.subscription
        topic, opened = OpenTopic.load(view, subscription.topic_id), OpenSubscription(view, subscription)
        cursor = opened.cursor
        if not self._attachment.is_active(view):
            return False
        self._due_ms = opened.delayed.next_due_ms()
        is_due = opened.delayed.is_due(view.clock.wall_ms())
        if not cursor.released and not subscription.keeps_keys and not is_due:
            after = max(cursor.read, cursor.mark_delete)
            if after >= subscription.bound(topic.state):
                return False
            following = log.next_entry(view, subscription.topic_id, after)
            if not subscription.skips or following is None or not following.txn:
                return True
        self._load_dead_letter_policy(view)
        return Walk(topic, opened, self._memory, self._size).select().is_worth_recording

    def _asks(self, view: ReadView) -> bool:
        """Whether messages may wait in the windows of other consumers, which were not asked for them yet."""
        opened = OpenSubscription(view, self._attachment.subscription)
        return opened.cursor.wanted < opened.cursor.windows and share.sharers(opened) > 1

    def _ask(self, batch: WriteBatch, _: int) -> None:
        """Note that this consumer has asked and found nothing: holders give back in their next call (`share.py`)."""
        cursor = cursors.load(batch, self._attachment.subscription.subscription_id)
        cursor.wanted = cursor.windows

    def patience_ns(self, longest_ns: int) -> int:
        """How long to wait before the next look: until the next delayed message is due, and `longest_ns` at most."""
        if self._due_ms is None:
            return longest_ns
        left_ns = self._due_ms * NS_PER_MS - self._attachment.connection.clock.wall_ns()
        return min(left_ns, longest_ns) if left_ns > 0 else longest_ns

    def _load_dead_letter_policy(self, view: ReadView) -> None:
        """Take over the dead-letter policy as stored: the policy may change while consumers are attached."""
        subscription = self._attachment.subscription
        stored = subscriptions.get(view, self._attachment.topic, subscription.name)
        subscription.dead_letter_topic = stored.dead_letter_topic
        subscription.max_redeliver_count = stored.max_redeliver_count

    def _dispatch(self, batch: WriteBatch) -> Selection:
        attachment, subscription = self._attachment, self._attachment.subscription
        attachment.check_attached(batch)
        attachment.sweep_in_turn(batch)
        self._load_dead_letter_policy(batch)
        opened, topic = OpenSubscription(batch, subscription), OpenTopic.load(batch, subscription.topic_id)
        self._delivered_generation = opened.cursor.generation
        self._queue.replace(())
        if not attachment.is_active(batch):
            return Selection(opened.cursor.read)
        if self._is_quiet and self._delivered_generation != self._quiet_generation:
            self._quiet_generation = self._delivered_generation
            self._is_quiet = self._holds_messages(batch)
        read = opened.cursor.read
        selection = Walk(topic, opened, self._memory, self._size).select()
        if selection.exhausted:
            dead_letter.retire(opened, attachment.topic, selection.exhausted)
        record_selection(opened, attachment.consumer_id, selection)
        self._number = None
        if selection.dispatched and batch.received_marks.prepare(batch.superblock):
            self._number = delivered_window.record(opened, attachment.consumer_id, read, selection)
        self._memory.blocked_keys.know(opened.cursor.passes, selection.markers)
        self._shared = share.number_of(opened, sum(piece.count for piece in selection.dispatched))
        # Before the commit: messages that are not in flight here leave the queue again, others would never come.
        self._queue.replace(selection.dispatched)
        return selection

    # Taking

    def take(self, count: int) -> MessageBatch:
        """The next messages, at most so many, for the application; a mark notes the last one of them."""
        pieces = self._queue.take(count)
        if pieces and self._number is not None:
            marks, last = self._attachment.connection.environment.received_marks, pieces[-1]
            marks.note(self._attachment.consumer_id, self._number, MessageId(*last.at, last.indexes[-1]))
        return MessageBatch(pieces, self._attachment.origin)

    def count_readable(self, timestamp: int, count: int) -> int:
        """How many of the next messages were readable at a timestamp, at most `count`."""
        ready = 0
        with self._attachment.connection.view() as view:
            for piece in self._queue:
                if ready >= count or message_bound.readable_since(view, piece.entry) > timestamp:
                    break
                ready += piece.count
        return min(count, ready)

    def untouched(self) -> Messages:
        """The messages that no application has received."""
        return self._queue.messages()

    # Dropping

    def distrust(self) -> Trusted:
        """Before a write that changes what is in flight here: until `trust`, the next call looks at each message.

        So the queue is right again behind an interrupt (Ctrl-C) between the commit and the change of the queue.
        """
        before = Trusted(self.seen, self._generation)
        self.seen = self._generation = -1
        return before

    def trust(self, before: Trusted) -> None:
        """The queue agrees with the store, as far as it did before `distrust`."""
        self.seen, self._generation = before

    def _drop_recalled(self, gate_s: float | None) -> None:
        connection = self._attachment.connection
        if not self._queue or connection.environment.last_commit() == self.seen:
            return
        with connection.view() as view:
            self._attachment.check_attached(view)
            seen = view.commit
            subscription_id = self._attachment.subscription.subscription_id
            cursor = cursors.load(view, subscription_id)
            generation = cursor.generation
            by_others = generation != self._generation
            if by_others:
                self._keep_in_flight(view)
            would_overtake = self._key_order.would_overtake(view, by_others)
            is_wanted = self._is_wanted(cursor)
        if would_overtake:
            self._send_back(lambda batch, _: self._key_order.send_back_blocked(batch), gate_s)
        if is_wanted:
            self.give_back_surplus(gate_s)
        # Noted last: after a write that failed, the next call looks again.
        self.seen, self._generation = seen, generation

    def _send_back(self, change: Callable[[WriteBatch, int], Messages], gate_s: float | None = None) -> None:
        """Give queued messages back in a batch, and drop them; interrupted, the next call looks which are in flight."""
        before = self.distrust()
        self._queue.drop(self._attachment.write_attached(change, gate_s=gate_s))
        self.trust(before)

    def _is_wanted(self, cursor: Cursor) -> bool:
        """Whether a consumer has asked for messages since this window was delivered, and found none."""
        return 0 < self._shared <= cursor.wanted

    def give_back_surplus(self, gate_s: float | None = None) -> None:
        """Give back the queued messages beyond the share of this consumer, which another consumer has asked for."""
        if self._queue:
            with suppress(WriterBusy):  # Others can wait; the application of this consumer need not.
                self._send_back(self._surplus_given_back, gate_s)

    def _surplus_given_back(self, batch: WriteBatch, _: int) -> Messages:
        opened = OpenSubscription(batch, self._attachment.subscription)
        by_key = self._attachment.subscription.keeps_keys
        given = share.surplus(self._queue, share.sharers(opened), by_key=by_key)
        opened.deliveries.give_back(self._attachment.consumer_id, given)
        left = sum(piece.count for piece in self._queue) - sum(map(int.bit_count, given.values()))
        self._shared = share.number_of(opened, left)
        return given

    def own_commit(self, batch: WriteBatch) -> OwnCommit:
        """The state that a batch will commit, which has changed something and has found the consumer attached."""
        cursor = cursors.load(batch, self._attachment.subscription.subscription_id)
        return OwnCommit(batch.commit, cursor.generation, self._is_wanted(cursor))

    def note_commit(self, own: OwnCommit) -> None:
        """Note that nothing was recalled up to a commit of this consumer, so that no view has to tell.

        On Key_Shared a view does: acknowledgements in transactions may have come before.
        """
        is_same = own.generation == self._generation and not own.is_wanted
        if is_same and not self._attachment.subscription.keeps_keys:
            self.seen = own.commit

    def note_settled(self) -> None:
        """Note that the consumer has acknowledged messages, or given some back, just now."""
        self._note_quiet(False)

    def _note_quiet(self, is_quiet: bool) -> None:
        """Note since when the consumer acknowledges nothing: now. Later deliveries change nothing of it."""
        connection, self._is_quiet = self._attachment.connection, is_quiet
        marks, consumer_id = connection.environment.received_marks, self._attachment.consumer_id
        marks.note_quiet(consumer_id, connection.clock.boot_ns())
        self._quiet_generation = self._generation

    def _holds_messages(self, view: ReadView) -> bool:
        """Whether messages are in flight here, after an operator, a time to live or a second consumer took some."""
        held = deliveries.records(view, self._attachment.subscription.subscription_id)
        return any(delivery.of(self._attachment.consumer_id) for delivery in held)

    def forget_acknowledged(self, items: list[Item]) -> None:
        """Drop messages that were acknowledged before the application received them."""
        self.forget_through(max(items)[0])

    def forget_through(self, highest: Position) -> None:
        """Drop messages up to a position that are not in flight any more."""
        if self._queue and self._queue.first <= highest:
            with self._attachment.connection.view() as view:
                self._keep_in_flight(view)

    def note_pending(self, items: list[Item]) -> None:
        """Acknowledgements of a transaction are pending: the order of keys depends on its end."""
        self._key_order.note_pending(items)

    def give_back(self, items: list[Item], delay_ns: int) -> None:
        """Negatively acknowledge messages, which are delivered again after a delay."""
        attachment = self._attachment

        def change(batch: WriteBatch, _: int) -> Messages:
            opened = OpenSubscription(batch, attachment.subscription)
            given = negative_acknowledge(opened, items, delay_ns, attachment.consumer_id)
            return self._key_order.send_back_behind(batch, given)

        before = self.distrust()
        self._send_back(change)
        self.note_settled()
        self.forget_acknowledged(items)
        self.trust(before)

    def _keep_in_flight(self, view: ReadView) -> None:
        """Keep the messages that are still in flight at this consumer."""

        def in_flight(piece: Piece) -> int:
            delivery = deliveries.find(view, self._attachment.subscription.subscription_id, piece.at)
            return delivery.of(self._attachment.consumer_id) if delivery is not None else 0

        self._queue.keep(in_flight)
