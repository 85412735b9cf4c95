"""The model of a subscription: what is acknowledged, pending, in flight; see model.py (semantics section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage import IsolationLevel, OnOpen, SubscriptionType, TransactionState
from tests.storage.model_skipping import Passing, Walk

if TYPE_CHECKING:
    from tests.storage.model import ModelTopic, Slot

RC, RU = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
OPEN, ABORTED = TransactionState.OPEN, TransactionState.ABORTED
ORDERED = (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class Problems:
    """Errors of which one must be raised, and errors that may be raised where the contract leaves it open."""

    def __init__(self, must: set[str] | None = None, may: set[str] | None = None) -> None:
        self.must = must or set()
        self.may = may or set()

    def __repr__(self) -> str:
        return f"must {sorted(self.must)} may {sorted(self.may)}"


class KeyShare:
    """The keys that one of several consumers takes, in one look: every n-th of those that are free."""

    def __init__(self, consumers: int) -> None:
        self.consumers = consumers
        self.taken: dict[bytes, bool] = {}
        self.met = 0

    def takes(self, key: bytes | None) -> bool:
        if key is not None and key in self.taken:
            return self.taken[key]
        is_taken = self.met % self.consumers == 0
        self.met += 1
        if key is not None:
            self.taken[key] = is_taken
        return is_taken


class ModelConsumer:
    """A consumer.

    Attributes:
        queue: what it was handed and has not given to its application yet, with how often it was handed out before.
        handed_again: what an abort had withdrawn, before this consumer was handed it.
        window_number: of its window, by which others want it back; 0 for one of a single message.
    """

    def __init__(self, name: str, subscription: ModelSubscription, window: int) -> None:
        self.name = name
        self.subscription = subscription
        self.window = window
        self.queue: list[tuple[Slot, int]] = []
        self.handed_again: set[Slot] = set()
        self.window_number = 0
        self.evicted = False


class ModelSubscription:
    """A subscription: what is acknowledged, pending, in flight.

    Attributes:
        start: everything up to this entry is acknowledged.
        acked: what is acknowledged after it, markers and skipped messages included.
        pending: acknowledged one by one in an open transaction: which.
        cumulative: transaction and last slot of a pending cumulative acknowledgement.
        holder: the consumer at which a message is in flight.
        times: how often a message was handed out.
        due: when a message given back may be handed out again.
        withdrawn: taken back by an abort and not handed out since.
        unsure: as `withdrawn`, where the contract does not say whether it counts.
        on_open: block or skip; `passing` is how far dispatch has come with skip.
        parted: what dispatch has looked at one by one, or was made pending.
        delayed: what dispatch has passed before its delivery time, due by now or not.
        windows, wanted: the last window of several messages, and the last one that is wanted back.
    """

    def __init__(
        self,
        topic: ModelTopic,
        name: str,
        type_: SubscriptionType,
        level: IsolationLevel,
        start: int,
        on_open: OnOpen = OnOpen.BLOCK,
    ) -> None:
        self.topic = topic
        self.name = name
        self.type = type_
        self.level = level
        self.start = start
        self.max_redeliver_count: int | None = None
        self.acked: set[Slot] = set()
        self.pending: dict[Slot, int] = {}
        self.cumulative: tuple[int, Slot] | None = None
        self.holder: dict[Slot, ModelConsumer] = {}
        self.times: dict[Slot, int] = {}
        self.due: dict[Slot, int] = {}
        self.withdrawn: set[Slot] = set()
        self.unsure: set[Slot] = set()
        self.consumers: list[ModelConsumer] = []
        self.has_dead_consumers = False
        self.on_open = on_open
        self.passing = Passing(start)
        self.parted: set[Slot] = set()
        self.delayed: set[Slot] = set()
        self.windows = self.wanted = 0

    # Sharing

    def key_share(self) -> KeyShare:
        return KeyShare(len(self.consumers) if self.type is SubscriptionType.KEY_SHARED else 1)

    def number_window(self, consumer: ModelConsumer) -> None:
        """A window of several messages can be wanted back."""
        consumer.window_number = 0
        if len(consumer.queue) > 1 and not self.is_ordered:
            self.windows += 1
            consumer.window_number = self.windows

    def give_back_wanted(self, consumer: ModelConsumer) -> None:
        """In its next call after another consumer has asked, a holder gives back what is beyond its share."""
        if not consumer.queue or not 0 < consumer.window_number <= self.wanted:
            return
        slots, share = [slot for slot, _ in consumer.queue], self.key_share()
        if self.type is SubscriptionType.KEY_SHARED:
            beyond = [slot for slot in slots if not share.takes(self.topic.message(slot).key)]
        else:
            beyond = slots[max(1, -(-len(slots) // len(self.consumers))) :]
        self._send_back(consumer, beyond)
        self.number_window(consumer)

    def ask(self) -> None:
        """A consumer has found nothing: all windows are wanted."""
        if len(self.consumers) > 1:
            self.wanted = self.windows

    # What is so

    def due_ns(self, slot: Slot) -> int | None:
        """When a message may be handed out for the first time; None where that does not matter."""
        is_message = self.topic.log[slot[0]].kind == "messages"
        return self.topic.message(slot).due_ns if is_message and not self.is_ordered else None

    def is_early(self, slot: Slot) -> bool:
        """Whether its delivery time keeps it from being handed out now."""
        due_ns = self.due_ns(slot)
        is_new = not self.times.get(slot, 0) and slot not in self.holder and not self.pending_in(slot)
        return is_new and due_ns is not None and due_ns > self.topic.model.now()

    def due_now(self, room: int) -> set[Slot]:
        """What was passed and is due by now: entries in the order of their times, until there is enough.

        On Key_Shared all, as each holds its key.
        """
        due = [slot for slot in self.delayed if not self.is_early(slot)]
        if self.type is SubscriptionType.KEY_SHARED:
            return set(due)
        taken: set[Slot] = set()
        for index in dict.fromkeys(
            slot[0] for slot in sorted(due, key=lambda each: (self.due_ns(each), each))
        ):
            if len(taken) >= room:
                break
            taken |= {slot for slot in due if slot[0] == index}
        return taken

    def holds_key(self, slot: Slot) -> bool:
        """A message that is not due holds nothing."""
        return not self.is_early(slot)

    def holds_queues(self, slot: Slot) -> bool:
        """A message that was not due holds its key against what is queued once dispatch has looked at it."""
        return self.due_ns(slot) is None or slot in self.parted

    @property
    def skips(self) -> bool:
        return self.on_open is OnOpen.SKIP

    def is_shown(self, slot: Slot) -> bool:
        """Whether it is neither acknowledged nor pending, and the subscription may be handed it, now or soon."""
        if self.skips:
            return self.class_of(slot) in ("visible", "blocked", "delayed") and not self.open_before(slot)
        return self.class_of(slot) in ("visible", "delayed")

    def could_be_handed(self, consumer: ModelConsumer, now_ns: int) -> list[Slot]:
        """What the contract has dispatch hand out to a consumer now."""
        return [
            slot
            for slot in self.unread()
            if self.is_shown(slot)
            and self.is_free(slot, now_ns)
            and not self.is_early(slot)
            and all(self.holder.get(each) is consumer for each in self._earlier(slot))
        ]

    def open_before(self, slot: Slot) -> bool:
        """Whether an open transaction has an earlier message of its key, in the backlog (Key_Shared)."""
        return any(self.topic.state(each[0]) is OPEN for each in self._earlier(slot))

    @property
    def is_ordered(self) -> bool:
        return self.type in ORDERED

    def drop_queued(self) -> None:
        """What is not in flight at a consumer any more is not given out of its queue."""
        for consumer in self.consumers:
            consumer.queue = [each for each in consumer.queue if self.holder.get(each[0]) is consumer]

    def is_acked(self, slot: Slot) -> bool:
        return slot[0] <= self.start or slot in self.acked

    def mark_delete(self) -> int:
        """Index of the entry at markDeletePosition."""
        mark = self.start
        while mark + 1 < len(self.topic.log) and all(map(self.is_acked, self.topic.slots(mark + 1))):
            mark += 1
        return mark

    def pending_in(self, slot: Slot) -> int:
        """The transaction in which a message is pending; 0 if it is in none."""
        if self.is_acked(slot):
            return 0
        if slot in self.pending:
            return self.pending[slot]
        return self.cumulative[0] if self.cumulative and slot <= self.cumulative[1] else 0

    def class_of(self, slot: Slot) -> str:
        """The first class that fits (invariant 8)."""
        topic, index = self.topic, slot[0]
        if topic.log[index].kind != "messages":
            return "marker"
        if self.is_acked(slot):
            return "acknowledged"
        if self.pending_in(slot):
            return "pending"
        if self.level is RC:
            if topic.state(index) is ABORTED:
                return "aborted"
            if topic.state(index) is OPEN:
                return "uncommitted"
            if self.skips:
                holder = self.passing.behind.get(slot)
                if holder and topic.model.txns[holder].state is OPEN:
                    return "blocked"
            elif index > topic.max_read():
                return "blocked"
        return "delayed" if self.is_early(slot) else "visible"

    def unread(self) -> list[Slot]:
        """All slots after markDeletePosition."""
        log = self.topic.log
        return [slot for index in range(self.mark_delete() + 1, len(log)) for slot in self.topic.slots(index)]

    def pending_slots(self, txn: int | None = None) -> list[Slot]:
        return [slot for slot in self.unread() if self.pending_in(slot) in ({txn} if txn else self.holders())]

    def holders(self) -> set[int]:
        """Open transactions that have something pending here."""
        found = set(self.pending.values())
        return found | {self.cumulative[0]} if self.cumulative else found

    # Handing out

    def acknowledge(self, slots: list[Slot]) -> None:
        for slot in slots:
            if slot[0] > self.start:
                self.acked.add(slot)
            self.delayed.discard(slot)
            self._forget(slot)
            self.parted.discard(slot)
            self.pending.pop(slot, None)

    def pass_over(self, index: int) -> None:
        """A marker or aborted entry is acknowledged in passing, but for what is pending."""
        self.acknowledge([slot for slot in self.topic.slots(index) if not self.pending_in(slot)])

    def _forget(self, slot: Slot) -> None:
        self.holder.pop(slot, None)
        self.due.pop(slot, None)
        self.withdrawn.discard(slot)
        self.unsure.discard(slot)

    def active(self) -> ModelConsumer | None:
        return self.consumers[0] if self.consumers else None

    def is_free(self, slot: Slot, now_ns: int) -> bool:
        if self.pending_in(slot) or slot in self.holder:
            return False
        return self.due.get(slot, 0) <= now_ns

    def dispatch(self, consumer: ModelConsumer, room: int, now_ns: int) -> list[tuple[Slot, int]]:
        """Hand out the next messages: each with how often it was before. Passes over markers and aborted ones."""
        if self.type is SubscriptionType.FAILOVER and consumer is not self.active():
            return []
        dispatch = self._dispatch_skipping if self.skips else self._dispatch_in_order
        return dispatch(consumer, room, now_ns)

    def _dispatch_in_order(self, consumer: ModelConsumer, room: int, now_ns: int) -> list[tuple[Slot, int]]:
        """Again where what is due had to wait for its key: more may be due than one look takes."""
        while True:
            due = self.due_now(room)
            handed = self._look_in_order(consumer, room, now_ns, due)
            if handed or not due:
                return handed

    def _look_in_order(
        self, consumer: ModelConsumer, room: int, now_ns: int, due: set[Slot]
    ) -> list[tuple[Slot, int]]:
        topic, handed, blocked_keys = self.topic, [], set()
        share = self.key_share()
        looked_at, is_anything = set(), False
        for index in range(self.mark_delete() + 1, topic.bound(self.level) + 1):
            if room == 0:
                break
            if not topic.is_delivered(index, self.level):
                is_anything |= not all(map(self.is_acked, topic.slots(index)))
                self.pass_over(index)
                continue
            for slot in topic.slots(index):
                if self.is_acked(slot) or (slot in self.delayed and slot not in due):
                    continue
                is_anything |= slot in due or self.is_early(slot)
                if self.is_early(slot):
                    self.pass_early(slot)
                    continue
                self.delayed.discard(slot)
                looked_at.add(slot)
                key = topic.message(slot).key if self.type is SubscriptionType.KEY_SHARED else None
                is_free = self.is_free(slot, now_ns)
                if is_free and self.is_worn_out(slot):
                    # No hand-out, so that no key holds it back; but it holds its own while it waits.
                    is_anything = True
                    self.bury(slot, blocked_keys, key)
                elif not is_free or key in blocked_keys or (key is not None and not share.takes(key)):
                    if self.holder.get(slot) is not consumer and key is not None:
                        blocked_keys.add(key)
                elif room > 0:
                    handed.append((slot, self.times.get(slot, 0)))
                    self.hand_out(slot, consumer)
                    room -= 1
        if handed or is_anything:
            self.parted |= {slot for slot in looked_at if not self.is_acked(slot)}
        return handed

    def pass_early(self, slot: Slot) -> None:
        """Before its delivery time it is neither handed out nor held."""
        self.delayed.add(slot)
        self.parted.discard(slot)

    def _dispatch_skipping(self, consumer: ModelConsumer, room: int, now_ns: int) -> list[tuple[Slot, int]]:
        """As often as something comes of it that is no message."""
        while True:
            walk = Walk(self, consumer, room, now_ns)
            if not (walk.is_worth_it or self._is_plain_next()):
                return []
            handed = walk.apply()
            if handed or not walk.is_worth_it:
                return handed

    def _is_plain_next(self) -> bool:
        """On Shared, dispatch need not look twice where a message without a transaction comes next."""
        log, at = self.topic.log, max(self.passing.read, self.mark_delete()) + 1
        is_released = any(self.is_nobodys(slot) for slot in self.parted)
        return self.type is SubscriptionType.SHARED and not is_released and at < len(log) and not log[at].txn

    def is_nobodys(self, slot: Slot) -> bool:
        return slot not in self.holder and not self.pending_in(slot)

    def hand_out(self, slot: Slot, consumer: ModelConsumer) -> None:
        was_withdrawn = slot in self.withdrawn or slot in self.unsure
        self._forget(slot)
        self.holder[slot] = consumer
        self.parted.add(slot)
        self.times[slot] = self.times.get(slot, 0) + 1
        consumer.handed_again.discard(slot)
        if was_withdrawn:
            consumer.handed_again.add(slot)

    def is_worn_out(self, slot: Slot) -> bool:
        return self.max_redeliver_count is not None and self.times.get(slot, 0) > self.max_redeliver_count

    def bury(self, slot: Slot, blocked_keys: set[bytes] | None = None, key: bytes | None = None) -> None:
        """To the dead-letter topic, once the message's own transaction is decided; nowhere if that was aborted."""
        if self.topic.state(slot[0]) is OPEN and self.level is RU:
            if key is not None and blocked_keys is not None:
                blocked_keys.add(key)
            return
        if self.topic.state(slot[0]) is not ABORTED:
            letters = self.topic.model.letters.setdefault(f"{self.topic.name}-{self.name}-DLQ", [])
            letters.append(self.topic.message(slot).value)
        self.acknowledge([slot])

    def give_back_problems(self, slot: Slot) -> set[str]:
        """There must be such a message; whether it is in flight does not matter."""
        log = self.topic.log
        is_there = slot[0] < len(log) and slot[1] < len(log[slot[0]].messages)
        return set() if is_there else {"MessageNotFound"}

    def give_back(self, consumer: ModelConsumer, slot: Slot, due_ns: int) -> None:
        """Negative acknowledgement: of what is in flight at this consumer."""
        if self.holder.get(slot) is consumer:
            del self.holder[slot]
            self.due[slot] = due_ns
            self.send_back_behind(consumer, slot)

    def take_back(self, slot: Slot, due_ns: int) -> None:
        """The same by an operator, whoever has it, or of what an abort has withdrawn."""
        self._lose(slot)
        self.due[slot] = due_ns

    def _lose(self, slot: Slot) -> None:
        """Out of flight; whether its application had received it, only the consumer knows."""
        consumer = self.holder.pop(slot, None)
        if consumer is not None and slot in {each for each, _ in consumer.queue}:
            self.times[slot] -= 1
        if consumer is not None and slot in consumer.handed_again:
            self.unsure.add(slot)

    # The order of a key (invariant 21)

    def _key(self, slot: Slot) -> bytes | None:
        """The key whose order a message is part of; None if there is no such key, or order."""
        is_message = self.topic.is_delivered(slot[0], self.level)
        return (
            self.topic.message(slot).key if is_message and self.type is SubscriptionType.KEY_SHARED else None
        )

    def _earlier(self, slot: Slot) -> list[Slot]:
        """Earlier messages of its key that are not acknowledged."""
        key = self._key(slot)
        same = [each for each in self.unread() if each < slot and not self.is_acked(each)]
        return [each for each in same if key is not None and self._key(each) == key and self.holds_key(each)]

    def _earlier_queued(self, slot: Slot) -> list[Slot]:
        """The same, of those that hold their key against what is queued."""
        return list(filter(self.holds_queues, self._earlier(slot)))

    def send_back_behind(self, consumer: ModelConsumer, given_back: Slot) -> None:
        """Later ones of its key in the consumer's queue go back with it."""
        waiting = [slot for slot, _ in consumer.queue if given_back in self._earlier_queued(slot)]
        self._send_back(consumer, waiting)

    def send_back_held(self, consumer: ModelConsumer) -> None:
        """The same for all that holds a key, whoever did it: the consumer looks before it hands out more."""
        waiting = [
            slot
            for slot, _ in consumer.queue
            if any(self.holder.get(each) is not consumer for each in self._earlier_queued(slot))
        ]
        self._send_back(consumer, waiting)

    def _send_back(self, consumer: ModelConsumer, slots: list[Slot]) -> None:
        consumer.queue = [each for each in consumer.queue if each[0] not in slots]
        for slot in slots:
            if self.holder.get(slot) is consumer:
                self._untouch(consumer, slot)

    def _untouch(self, consumer: ModelConsumer, slot: Slot) -> None:
        """It counts as never handed out."""
        del self.holder[slot]
        self.times[slot] -= 1
        if slot in consumer.handed_again:
            self.withdrawn.add(slot)

    def overtaken(self, consumer: ModelConsumer, received: list[Slot]) -> list[Slot]:
        """Whom these overtake as the application receives them: nobody, or the order of a key is broken."""
        queue = {slot for slot, _ in consumer.queue}
        return [
            each
            for slot in received
            for each in self._earlier_queued(slot)
            if self.holder.get(each) is not consumer or each in queue
        ]

    def detach(self, consumer: ModelConsumer, untouched: bool) -> None:
        """A consumer is gone, and its queue counts as never handed out; with `untouched` it tells so itself."""
        queue = {slot for slot, _ in consumer.queue}
        for slot in [slot for slot, holder in self.holder.items() if holder is consumer]:
            if slot in queue and untouched:
                self._untouch(consumer, slot)
            elif untouched:
                del self.holder[slot]
            else:
                self._lose(slot)
        self.consumers.remove(consumer)

    # Acknowledging

    def _message_problems(self, slots: list[Slot]) -> Problems:
        """Of acknowledging these, whatever else: there must be such messages, and they must be deliverable."""
        topic, found = self.topic, Problems()
        for slot in slots:
            if slot[0] >= len(topic.log) or slot[1] >= len(topic.log[slot[0]].messages):
                found.must.add("MessageNotFound")
                continue
            is_beyond = slot[0] > topic.bound(RU if self.skips else self.level)
            if self.skips:
                is_behind = slot not in self.holder and self.open_before(slot)
                is_beyond |= topic.state(slot[0]) is OPEN or is_behind
            if is_beyond or not topic.is_delivered(slot[0], self.level):
                # What is acknowledged already may be refused or pass: nothing changes either way.
                (found.may if self.is_acked(slot) else found.must).add("NotDeliverable")
        return found

    def acknowledge_problems(self, slots: list[Slot], txn: int, force: bool) -> Problems:
        found = self._message_problems(slots)
        for slot in slots:
            if (txn and self.is_acked(slot)) or (self.pending_in(slot) and (txn or not force)):
                found.must.add("TransactionConflict")
        return found

    def acknowledge_in(self, slots: list[Slot], txn: int) -> None:
        for slot in slots:
            self._forget(slot)
            self.delayed.discard(slot)
            self.parted.add(slot)
            self.pending[slot] = txn

    def slots_through(self, last: Slot) -> list[Slot]:
        """Every slot up to and including one, markers too."""
        return [
            slot
            for index in range(self.start + 1, last[0] + 1)
            for slot in self.topic.slots(index)
            if slot <= last
        ]

    def cumulative_problems(self, last: Slot, txn: int, force: bool) -> Problems:
        if not self.is_ordered:
            return Problems({"InvalidValue"}, {"MessageNotFound", "NotDeliverable"})
        found = self._message_problems([last])
        if found.must:
            return found
        others = {self.pending_in(slot) for slot in self.slots_through(last)} - {0, txn}
        if txn:
            if last[0] <= self.mark_delete():
                found.must.add("TransactionConflict")
            if self.cumulative and (self.cumulative[0] != txn or last <= self.cumulative[1]):
                found.must.add("TransactionConflict")
            if others:
                found.must.add("TransactionConflict")
        elif others and not force:
            found.must.add("TransactionConflict")
        below = {slot for slot in self.slots_through(last) if not self.is_acked(slot)}
        if self.withdrawn & below:
            (found.may if force else found.must).add("NotDeliverable")
        if self.unsure & below:
            found.may.add("NotDeliverable")
        return found

    def acknowledge_cumulative_in(self, last: Slot, txn: int) -> None:
        if all(map(self.is_acked, self.slots_through(last))):
            return  # nothing is left to be pending
        for slot in self.slots_through(last):
            self._forget(slot)
            if self.pending.get(slot) == txn:
                del self.pending[slot]
        self.cumulative = (txn, last)

    def decide(self, txn: int, committed: bool) -> None:
        """Apply all that a transaction acknowledged here, or release it."""
        mine = [slot for slot, holder in self.pending.items() if holder == txn]
        released = self.pending_slots(txn)
        is_cumulative = self.cumulative is not None and self.cumulative[0] == txn
        through = self.slots_through(self.cumulative[1]) if is_cumulative and self.cumulative else []
        for slot in mine:
            del self.pending[slot]
        if is_cumulative:
            self.cumulative = None
        if committed:
            self.acknowledge(mine + through)
        elif released and self.is_ordered:
            self._withdraw(released)

    def _withdraw(self, released: list[Slot]) -> None:
        """Delivery restarts at the first released message; what is in flight from there on is taken back."""
        first = min(released)
        for slot in [slot for slot in self.holder if slot >= first]:
            self.times[slot] -= slot in {each for each, _ in self.holder[slot].queue}
            del self.holder[slot]
            self.withdrawn.add(slot)
        self.withdrawn |= {slot for slot in released if self.times.get(slot, 0)}
        # What was not in flight, or never handed out, the contract does not name; delivery restarts before it too.
        every = {slot for index in range(first[0], len(self.topic.log)) for slot in self.topic.slots(index)}
        self.unsure |= {
            slot for slot in every if slot >= first and not self.pending_in(slot)
        } - self.withdrawn

    # Administration

    def take_in(self) -> None:
        """At READ_COMMITTED: markers and aborted messages directly after markDeletePosition are acknowledged."""
        while self.level is RC:
            following = self.mark_delete() + 1
            if following > self.topic.max_read() or self.topic.is_delivered(following, RC):
                return
            self.pass_over(following)
            if self.mark_delete() < following:
                return

    def change_level(self, level: IsolationLevel) -> None:
        self.delayed.clear()
        self.take_in()
        self.level = level
        self.take_in()

    def begin_to_pass(self) -> None:
        """What was passed over is found again, by the new type, level or on-open."""
        self.delayed.clear()
        self.passing = Passing(self.mark_delete())

    def seek(self, start: int, acked: list[Slot]) -> None:
        """Begin again after an entry, without the first messages of the next one."""
        self.start = start
        self.acked = set(acked)
        for mapping in (self.pending, self.holder, self.times, self.due):
            mapping.clear()
        self.withdrawn.clear()
        self.unsure.clear()
        self.parted.clear()
        self.begin_to_pass()
        for consumer in self.consumers:
            consumer.queue = []

    def skip(self, count: int, beyond_max_read: bool) -> int:
        """Acknowledge the next visible messages; how many."""
        topic, skipped = self.topic, 0
        if self.skips:
            return self._skip_shown(count)
        through = topic.bound(RU if beyond_max_read and self.level is RU else RC)
        for index in range(self.mark_delete() + 1, through + 1):
            if skipped == count:
                break
            if not topic.is_delivered(index, self.level):
                self.pass_over(index)
                continue
            for slot in topic.slots(index):
                if skipped < count and not self.is_acked(slot) and not self.pending_in(slot):
                    self.acknowledge([slot])
                    skipped += 1
        return skipped

    def _skip_shown(self, count: int) -> int:
        """With on-open skip: what is undecided or waits for its key stays, and the marker that dispatch goes by."""
        topic, skipped = self.topic, 0
        for index in range(self.mark_delete() + 1, len(topic.log)):
            if skipped == count:
                break
            is_awaited = topic.log[index].kind != "messages" and topic.log[index].txn in self.passing.awaited
            if not topic.is_delivered(index, RC) and not is_awaited:
                self.pass_over(index)
            for slot in topic.slots(index):
                if skipped < count and self.is_shown(slot):
                    self.acknowledge([slot])
                    skipped += 1
        return skipped
