"""A rule machine: the store and its model are told the same things, and must answer the same.

What the store refuses the model must refuse with that error; what it returns, and all that can then be read of it
(both levels from any position, positions, classes, counters), must be what the model computes from nothing but the
log. The long form:

    MODEL_EXAMPLES=2000 python -m pytest tests/storage/test_model.py --timeout=0
"""

from __future__ import annotations

from typing import Any

from hypothesis import note, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage import DUPLICATE, EARLIEST, LATEST, MessageId, OnOpen, Position, SubscriptionType, TxnID
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.both import SECOND, Both, after_start, message_id, never_had, shown
from tests.storage.model import OPEN, RC, RU, ModelTopic, ModelTransaction, Slot
from tests.storage.model_subscription import ModelConsumer, ModelSubscription, Problems

TOPICS = st.sampled_from(["t", "t", "t", "u"])
NAMES = st.sampled_from(["a", "a", "b"])
WEIGHTS = {
    "read_from": 2, "send": 20, "begin": 5, "end": 7, "let_time_pass": 5, "subscribe": 6, "receive": 20, "acknowledge": 14,
    "acknowledge_cumulative": 9, "negative_acknowledge": 6, "lose_consumer": 3, "administer": 3, "begin_anew": 1,
}  # fmt: skip
KEY_WEIGHTS = {
    "send": 12, "begin": 5, "end": 8, "let_time_pass": 4, "subscribe": 4, "receive": 30, "acknowledge": 16,
    "negative_acknowledge": 16, "lose_consumer": 1, "administer": 1,
}  # fmt: skip
CONSUMER_STEPS = ("receive", "acknowledge", "acknowledge_cumulative", "negative_acknowledge", "lose_consumer")
Mode = tuple[SubscriptionType | None, Any, OnOpen | None]
SKIP_WEIGHTS = {
    "send": 20, "begin": 6, "end": 9, "let_time_pass": 2, "subscribe": 5, "receive": 25, "acknowledge": 18,
    "negative_acknowledge": 5, "lose_consumer": 2, "administer": 3,
}  # fmt: skip
OPEN_MAX = 4  # as many as one write ends on its way, so that the order in which they end is known

levels = st.sampled_from([RC, RU])
on_opens = st.sampled_from([None, OnOpen.BLOCK, OnOpen.SKIP, OnOpen.SKIP])
seldom = st.sampled_from([False, False, False, True])


def _weighted(weights: dict[str, int]) -> st.SearchStrategy[str]:
    return st.sampled_from([name for name, weight in weights.items() for _ in range(weight)])


class StoreMachine(RuleBasedStateMachine):
    """See the module."""

    steps = _weighted(WEIGHTS)
    keys = st.sampled_from([None, None, b"", b"k", b"l"])
    types = st.sampled_from(list(SubscriptionType))
    windows = st.sampled_from([1, 3, 1000])
    delays = st.sampled_from([None, None, None, 0, 3, 5])

    def __init__(self) -> None:
        super().__init__()
        self.both = Both()
        self.model, self.handles, self.attempt = self.both.model, self.both.handles, self.both.attempt
        self.sent = 0
        self.named = 0

    def teardown(self) -> None:
        self.both.finish()

    @invariant()
    def agree(self) -> None:
        """All that can be read of the store is what the model computes."""
        self.both.compare()

    # What a rule picks from

    def _topic(self, data: st.DataObject) -> ModelTopic:
        return self.model.topics[data.draw(TOPICS, label="topic")]

    def _txn(self, data: st.DataObject, none: bool = True) -> int:
        """A transaction, mostly an open one; 0 for none."""
        numbers = [txn.number for txn in self.model.open_transactions()]
        ended = [txn.number for txn in self.model.txns.values() if txn.state is not OPEN][-1:]
        choices = ([0] * (1 + len(numbers)) if none else []) + numbers * 3 + ended
        return data.draw(st.sampled_from(choices), label="txn") if choices else 0

    def _subscription(self, data: st.DataObject) -> ModelSubscription:
        return data.draw(st.sampled_from(self.model.subscriptions()).map(_Named), label="subscription").object

    def _consumer(self, data: st.DataObject) -> ModelConsumer:
        """A consumer, mostly one that is attached."""
        found = list(self.handles) + [each for each in self.handles if not each.evicted] * 3
        return data.draw(st.sampled_from(found).map(_Named), label="consumer").object

    def _slot(self, data: st.DataObject, consumer: ModelConsumer) -> Slot | None:
        """A slot of the consumer's topic: in flight at it mostly, pending in some transaction, or any, markers too."""
        mine = consumer.subscription
        found = {
            "in flight": lambda: [slot for slot, holder in mine.holder.items() if holder is consumer],
            "pending": mine.pending_slots,
            "any": lambda: [slot for index in range(len(mine.topic.log)) for slot in mine.topic.slots(index)],
        }[data.draw(st.sampled_from(["in flight"] * 4 + ["pending", "any"]), label="which")]()
        return data.draw(st.sampled_from(sorted(found)), label="slot") if found else None

    def _start(self, data: st.DataObject, topic: ModelTopic) -> Any:
        """Where to begin: an end, any entry, any message, or within what was trimmed or is not written yet."""
        trimmed = Position(max(1, topic.first_ledger - 1), 0)
        choices: list[Any] = [EARLIEST, LATEST, trimmed, MessageId(*trimmed, 1)]
        if topic.log:
            ledger_id, entry_id = topic.log[-1].at
            choices += [MessageId(ledger_id, entry_id + 1, 1), MessageId(ledger_id + 1, 0, 1)]
        choices += [Position(*entry.at) for entry in topic.log]
        choices += [
            message_id(topic, (index, place))
            for index, entry in enumerate(topic.log)
            for place in range(len(entry.messages))
        ]
        start = st.sampled_from([EARLIEST, EARLIEST, LATEST]) | st.sampled_from(choices)
        return data.draw(start, label="start")

    @initialize(
        data=st.data(),
        limits=st.lists(st.integers(1, 5), min_size=2, max_size=2),
        level=levels,
        redeliveries=st.sampled_from([None, None, 0, 1]),
    )
    def set_up(
        self,
        data: st.DataObject,
        limits: list[int],
        level: Any,
        redeliveries: int | None,
    ) -> None:
        """Two topics; a consumer and a transaction, so that most rules have something to do from the start."""
        for name, limit in zip("tu", limits, strict=True):
            self.both.store.create_topic(name, ledger_entries_max=limit)
            self.model.create_topic(name, limit)
        type_, window = data.draw(self.types, label="type"), data.draw(self.windows, label="window")
        on_open = data.draw(on_opens, label="on open")
        mode = type_, level, None if _is_refused(type_, level, on_open) else on_open
        self._attach(self.model.topics["t"], "a", mode, EARLIEST, window, redeliveries)
        self.begin(data)
        for _ in range(data.draw(st.integers(0, 4), label="sends")):
            self.send(data)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One thing that users do, the usual ones more often."""
        what = data.draw(self.steps, label="step")
        if what in CONSUMER_STEPS and not self.handles:
            what = "subscribe"
        if what == "administer" and not self.model.subscriptions():
            what = "send"
        getattr(self, what)(data)

    # Steps: topics and transactions

    def send(self, data: st.DataObject) -> None:
        topic, txn = self._topic(data), self._txn(data)
        producer = data.draw(st.sampled_from([None, None, "p", "q"]), label="producer")
        count = data.draw(st.integers(1, 4), label="count")
        ids = None
        if producer is not None and data.draw(st.booleans(), label="gives sequence ids"):
            ids = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count), label="ids")
        messages, delays = [], [None] * count
        if data.draw(self.delays.map(bool), label="delayed"):
            delays = data.draw(st.lists(self.delays, min_size=count, max_size=count), label="delays")
        keys = data.draw(st.lists(self.keys, min_size=count, max_size=count), label="keys")
        for key, delay in zip(keys, delays, strict=True):
            self.sent += 1
            due_ns = None if delay is None else self.both.now_ns + delay * SECOND
            messages.append((b"%d" % self.sent if self.sent % 10 else None, key, due_ns))
        handle = self.both.store.create_producer(topic.name, producer_name=producer, connected=False)
        receipt, is_done = self.attempt(
            f"send {topic.name} {producer} {messages} ids {ids} txn {txn}",
            lambda: handle.send_batch(
                [value for value, _, _ in messages],
                keys=[key for _, key, _ in messages],
                deliver_after=delays,
                sequence_ids=ids,
                txn=TxnID(txn) if txn else None,
            ),
            lambda: self.model.send_problems(topic.name, producer, ids, txn, self.both.now_ns),
            txn,
        )
        if is_done:
            stored = self.model.send(topic.name, producer, messages, ids, txn)
            assert list(receipt) == [message_id(topic, slot) for slot in stored]
            assert (receipt.count, receipt.duplicates) == (len(stored), count - len(stored))
            assert receipt.last_message_id == (list(receipt)[-1] if stored else DUPLICATE)

    def begin(self, data: st.DataObject) -> None:
        if len(self.model.open_transactions()) >= OPEN_MAX:
            return
        timeout = data.draw(st.sampled_from([3600, 3600, 60, 5]), label="timeout")
        attached = data.draw(st.booleans(), label="attached")
        store = self.both.store

        def call() -> TxnID:
            # An attached one is written when its id is asked for.
            return (
                store.transaction(timeout=timeout).id
                if attached
                else store.begin_transaction(timeout=timeout)
            )

        result, _ = self.attempt(f"begin {timeout} s{' attached' if attached else ''}", call, set)
        number = result.least
        assert number == len(self.model.txns) + 1
        self.model.txns[number] = ModelTransaction(number, self.both.now_ns + timeout * SECOND, attached)

    def end(self, data: st.DataObject) -> None:
        txn = self._txn(data, none=False)
        committed = data.draw(st.booleans(), label="commit")
        call = (
            self.both.store.commit_transaction
            if committed
            else self.both.store.admin.transactions.abort_transaction
        )
        was_open = self.model.txns[txn].state is OPEN
        result, is_done = self.attempt(
            f"{'commit' if committed else 'abort'} 0:{txn}",
            lambda: call(TxnID(txn)),
            lambda: self.model.end_problems(txn, committed, self.both.now_ns),
            txn,
            writes=was_open,
        )
        if is_done:
            assert (result is was_open) if committed else (result.already is not was_open)
            self.model.end(txn, committed)

    def let_time_pass(self, data: st.DataObject) -> None:
        seconds = data.draw(st.sampled_from([1, 4, 4, 70]), label="seconds")
        note(f"{seconds} s pass")
        self.both.clock.advance(seconds)

    # Steps: subscriptions and consumers

    def subscribe(self, data: st.DataObject) -> None:
        topic = self._topic(data)
        name = data.draw(NAMES, label="name")
        known = topic.subscriptions.get(name)
        mode: Mode = (None, None, None)
        if known is None or data.draw(seldom, label="another mode"):
            type_ = data.draw(self.types | st.none(), label="type")
            mode = type_, data.draw(levels | st.none(), label="level"), data.draw(on_opens, label="on open")
        start = self._start(data, topic) if known is None else LATEST
        window = data.draw(self.windows, label="window")
        redeliveries = data.draw(st.sampled_from([None, None, None, 0, 1]), label="redeliveries")
        self._attach(topic, name, mode, start, window, redeliveries)

    def _attach(
        self, topic: ModelTopic, name: str, mode: Mode, start: Any, window: int, redeliveries: int | None
    ) -> None:
        known = topic.subscriptions.get(name)
        type_, level, on_open = mode
        self.named += 1
        consumer_name = f"c{self.named}"

        def check() -> set[str]:
            if known is None:
                return never_had(topic, start) | (
                    {"InvalidValue"} if _is_refused(type_, level, on_open) else set()
                )
            has = (known.type, known.level, known.on_open)
            is_other = any(asked not in (None, one) for asked, one in zip(mode, has, strict=True))
            if known.consumers and (is_other or known.type is SubscriptionType.EXCLUSIVE):
                return {"SubscriptionBusy"}
            if _is_refused(type_ or known.type, level or known.level, on_open or known.on_open):
                return {"InvalidValue"}
            return {"ObjectHeld"} if type_ not in (None, known.type) and known.holders() else set()

        handle, is_done = self.attempt(
            f"subscribe {consumer_name} to {topic.name}/{name} {mode} from {start} window {window} "
            f"redeliveries {redeliveries}",
            lambda: self.both.store.subscribe(
                topic.name,
                name,
                subscription_type=type_,
                subscription_isolation_level=level,
                on_open=on_open,
                initial_position=start,
                consumer_name=consumer_name,
                receiver_queue_size=window,
                max_redeliver_count=redeliveries,
            ),
            check,
        )
        if not is_done:
            return
        if known is None:
            known = _new_subscription(topic, name, type_ or SubscriptionType.EXCLUSIVE, level or RC, start)
            known.on_open = on_open or OnOpen.BLOCK
        else:
            _change(known, mode)
        known.has_dead_consumers = False
        if redeliveries is not None:
            known.max_redeliver_count = redeliveries
        consumer = ModelConsumer(consumer_name, known, window)
        known.consumers.append(consumer)
        self.handles[consumer] = handle
        assert handle.subscription_type is known.type
        assert handle.subscription_isolation_level is known.level

    def receive(self, data: st.DataObject) -> None:
        """A whole window is handed out, of which the application takes some."""
        consumer = self._consumer(data)
        mine = consumer.subscription
        count = data.draw(st.integers(1, 6), label="count")
        patience = data.draw(st.sampled_from([0, 0, 0.001, 1]), label="patience")
        with self.both.rooms() as rooms:
            messages, is_done = self.attempt(
                f"{consumer.name} receives {count} within {patience} s",
                lambda: self.handles[consumer].receive_batch(count, timeout=patience),
                lambda: {"ConsumerEvicted"} if consumer.evicted else set(),
                writes=False,
            )
        if not is_done:
            return
        mine.drop_queued()
        mine.send_back_held(consumer)
        mine.give_back_wanted(consumer)
        if not consumer.queue:
            allowed = set(filter(mine.is_shown, mine.unread())) if mine.skips else set()
            room = rooms[-1] if rooms else consumer.window
            assert room == consumer.window or (len(mine.consumers) > 1 and 1 <= room < consumer.window)
            consumer.queue = mine.dispatch(consumer, room, self.both.now_ns)
            mine.number_window(consumer)
            if not consumer.queue:
                mine.ask()
            if mine.skips:
                assert allowed.issuperset(slot for slot, _ in consumer.queue)
                assert consumer.queue or not mine.could_be_handed(consumer, self.both.now_ns)
        wanted, consumer.queue = consumer.queue[:count], consumer.queue[count:]
        got = [(message.message_id, message.redelivery_count) for message in messages]
        assert got == [(message_id(mine.topic, slot), times) for slot, times in wanted]
        assert mine.overtaken(consumer, [slot for slot, _ in wanted]) == []
        for message, (slot, _) in zip(messages, wanted, strict=True):
            stored = mine.topic.message(slot)
            assert (message.value, message.key) == (stored.value, stored.key)
            if mine.level is RC:
                assert message.txn_state in (None, mine.topic.state(slot[0]))

    def acknowledge(self, data: st.DataObject) -> None:
        consumer, txn = self._consumer(data), self._txn(data)
        mine = consumer.subscription
        whole, force = data.draw(seldom, label="whole entry"), data.draw(seldom, label="force")
        many, by_operator = data.draw(st.integers(1, 3), label="many"), data.draw(seldom, label="by operator")
        chosen = [slot for _ in range(many) if (slot := self._slot(data, consumer)) is not None]
        if not chosen:
            return
        ids = [message_id(mine.topic, slot, whole) for slot in chosen]
        slots = sorted({each for slot in chosen for each in (mine.topic.slots(slot[0]) if whole else [slot])})
        forced = {mine.pending_in(slot) for slot in slots} - {0} if force and not txn else set()

        def call() -> None:
            within = TxnID(txn) if txn else None
            if by_operator:
                admin, place = self.both.store.admin, (mine.topic.name, mine.name)
                admin.acknowledgements.acknowledge_messages(*place, ids, txn=within, force=force)
            else:
                self.handles[consumer].acknowledge(ids, txn=within, force=force)

        def check() -> Problems | set[str]:
            if consumer.evicted and not by_operator:
                return {"ConsumerEvicted"}
            found = mine.acknowledge_problems(slots, txn, force)
            found.must |= self.model.use_problems(txn, self.both.now_ns)
            return found

        _, is_done = self.attempt(
            f"{'operator' if by_operator else consumer.name} acknowledges {shown(ids)} txn {txn} force {force}",
            call,
            check,
            txn,
            forced=forced,
        )
        if is_done and txn:
            mine.acknowledge_in(slots, txn)
        elif is_done:
            self.both.end_all(forced)
            mine.acknowledge(slots)

    def acknowledge_cumulative(self, data: st.DataObject) -> None:
        consumer, txn, force = self._consumer(data), self._txn(data), data.draw(seldom, label="force")
        mine, last = consumer.subscription, self._slot(data, consumer)
        if last is None:
            return
        slots = mine.slots_through(last)
        forced = {mine.pending_in(slot) for slot in slots} - {0} if force and not txn else set()

        def check() -> Problems | set[str]:
            if consumer.evicted:
                return {"ConsumerEvicted"}
            found = mine.cumulative_problems(last, txn, force)
            found.must |= self.model.use_problems(txn, self.both.now_ns)
            return found

        message = message_id(mine.topic, last)
        _, is_done = self.attempt(
            f"{consumer.name} acknowledges up to {message} txn {txn} force {force}",
            lambda: self.handles[consumer].acknowledge_cumulative(
                message, txn=TxnID(txn) if txn else None, force=force
            ),
            check,
            txn,
            forced=forced,
        )
        if is_done and txn:
            mine.acknowledge_cumulative_in(last, txn)
        elif is_done:
            self.both.end_all(forced)
            mine.acknowledge(slots)

    def negative_acknowledge(self, data: st.DataObject) -> None:
        consumer, delay = self._consumer(data), data.draw(st.sampled_from([0, 0, 3, 60]), label="delay")
        mine, slot = consumer.subscription, self._slot(data, consumer)
        if slot is None:
            return
        message, due_ns = message_id(mine.topic, slot), self.both.now_ns + delay * SECOND
        if (slot in mine.holder or slot in mine.withdrawn) and data.draw(seldom, label="by operator"):
            admin, place = self.both.store.admin, (mine.topic.name, mine.name)
            result, _ = self.attempt(
                f"operator gives {message} back for {delay} s",
                lambda: row_json(
                    admin.acknowledgements.negative_acknowledge_messages(*place, [message], delay=delay)
                ),
                set,
            )
            assert result["givenBack"] == 1
            mine.take_back(slot, due_ns)
            return
        _, is_done = self.attempt(
            f"{consumer.name} gives {message} back for {delay} s",
            lambda: self.handles[consumer].negative_acknowledge(message, delay=delay),
            lambda: {"ConsumerEvicted"} if consumer.evicted else mine.give_back_problems(slot),
        )
        if is_done:
            mine.give_back(consumer, slot, due_ns)

    # Steps: what happens seldom

    def lose_consumer(self, data: st.DataObject) -> None:
        """It closes, or is evicted and does not know it yet."""
        consumer = self._consumer(data)
        mine = consumer.subscription
        if not data.draw(seldom, label="evicted"):
            self.attempt(f"{consumer.name} closes", self.handles[consumer].close, set, writes=False)
            if not consumer.evicted:
                mine.drop_queued()
                mine.detach(consumer, untouched=True)
            del self.handles[consumer]
            return
        _, is_done = self.attempt(
            f"evict {consumer.name}",
            lambda: row_json(
                self.both.store.admin.subscriptions.evict_consumers(mine.topic.name, mine.name, consumer.name)
            ),
            lambda: {"ConsumerNotFound"} if consumer.evicted else set(),
        )
        if is_done:
            mine.detach(consumer, untouched=False)
            consumer.evicted = True

    def administer(self, data: st.DataObject) -> None:
        mine, force = self._subscription(data), data.draw(st.booleans(), label="force")
        what = data.draw(st.sampled_from(["seek", "skip", "skip", "delete"]), label="what")
        if what == "skip":
            self._skip(mine, data.draw(st.integers(1, 4) | st.none(), label="count"), beyond=force)
        elif what == "seek":
            self._seek(mine, self._start(data, mine.topic), force)
        else:
            self._delete_subscription(mine, force)

    def _skip(self, mine: ModelSubscription, count: int | None, beyond: bool) -> None:
        """Skip some, or clear the backlog."""
        admin, place = self.both.store.admin, (mine.topic.name, mine.name)
        result, _ = self.attempt(
            f"skip {count} of {mine.topic.name}/{mine.name} beyond {beyond}",
            lambda: (
                row_json(admin.subscriptions.clear_backlog(*place, beyond_max_read=beyond))
                if count is None
                else row_json(admin.subscriptions.skip_messages(*place, count, beyond_max_read=beyond))
            ),
            set,
        )
        assert result["skipped"] == mine.skip(1 << 30 if count is None else count, beyond)

    def _seek(self, mine: ModelSubscription, start: Any, force: bool) -> None:
        forced = mine.holders() if force else set()
        _, is_done = self.attempt(
            f"seek {mine.topic.name}/{mine.name} to {start} force {force}",
            lambda: row_json(
                self.both.store.admin.subscriptions.seek_subscription(
                    mine.topic.name, mine.name, start, force=force
                )
            ),
            lambda: {"ObjectHeld"} if mine.holders() and not force else never_had(mine.topic, start),
            forced=forced,
        )
        if is_done:
            self.both.end_all(forced)
            mine.seek(*after_start(mine.topic, start, mine.level))

    def _delete_subscription(self, mine: ModelSubscription, force: bool) -> None:
        forced = mine.holders() if force else set()

        def check() -> set[str]:
            busy = {"SubscriptionBusy"} if mine.consumers else set()
            return set() if force else busy | ({"ObjectHeld"} if mine.holders() else set())

        _, is_done = self.attempt(
            f"delete {mine.topic.name}/{mine.name} force {force}",
            lambda: row_json(
                self.both.store.admin.subscriptions.delete_subscription(
                    mine.topic.name, mine.name, force=force
                )
            ),
            check,
            forced=forced,
        )
        if is_done:
            self.both.end_all(forced)
            del mine.topic.subscriptions[mine.name]
            self.both.drop_handles(mine)

    def begin_anew(self, data: st.DataObject) -> None:
        """A topic is deleted and created again, or the whole store is closed and opened."""
        if not data.draw(seldom, label="topic"):
            self.both.close_and_open()
            return
        topic, force = self._topic(data), data.draw(st.booleans(), label="force")
        limit = data.draw(st.integers(1, 5), label="limit")
        forced = self.model.topic_holders(topic.name) if force else set()

        def check() -> set[str]:
            attached = any(each.consumers for each in topic.subscriptions.values())
            is_held = attached or self.model.topic_holders(topic.name)
            return {"ObjectHeld"} if is_held and not force else set()

        _, is_done = self.attempt(
            f"delete {topic.name} force {force}",
            lambda: row_json(self.both.store.admin.topics.delete_topic(topic.name, force=force)),
            check,
            forced=forced,
        )
        if is_done:
            self.both.end_all(forced)
            for mine in topic.subscriptions.values():
                self.both.drop_handles(mine)
            assert not self.both.store.has_topic(topic.name)
            self.model.delete_topic(topic.name)
            self.both.store.create_topic(topic.name, ledger_entries_max=limit)
            self.model.create_topic(topic.name, limit)

    def read_from(self, data: st.DataObject) -> None:
        """A reader from anywhere."""
        topic, level = self._topic(data), data.draw(levels, label="level")
        start = self._start(data, topic)
        note(f"read {topic.name} from {start} {level}")
        after, left_out = after_start(topic, start, level)
        wanted = [slot for slot in topic.visible(level, after) if slot not in left_out]
        self.both.compare_read(topic, level, start, wanted)


def _is_refused(type_: SubscriptionType | None, level: Any, on_open: OnOpen | None) -> bool:
    """Whether skip does not go with the rest."""
    is_shared = type_ in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
    return on_open is OnOpen.SKIP and not (is_shared and level in (None, RC))


def _change(mine: ModelSubscription, mode: Mode) -> None:
    """A subscription that nobody is attached to, as somebody asks for it."""
    type_, level, on_open = mode
    before, skipped = (mine.type, mine.level, mine.on_open), mine.skips
    mine.type = type_ or mine.type
    if level not in (None, mine.level):
        mine.change_level(level)
    mine.on_open = on_open or mine.on_open
    if before != (mine.type, mine.level, mine.on_open) and (skipped or mine.skips):
        mine.begin_to_pass()
    if mine.is_ordered:
        mine.delayed.clear()


def _new_subscription(
    topic: ModelTopic, name: str, type_: SubscriptionType, level: Any, start: Position | MessageId | Any
) -> ModelSubscription:
    after, inside = after_start(topic, start, level)
    made = ModelSubscription(topic, name, type_, level, after)
    made.acked.update(inside)
    topic.subscriptions[name] = made
    return made


class _Named:
    """Something of the model by its name, for the report of a failing example."""

    def __init__(self, object_: Any) -> None:
        self.object = object_

    def __repr__(self) -> str:
        topic = getattr(self.object, "topic", None)
        return f"{topic.name}/{self.object.name}" if topic else str(self.object.name)


class KeySharedMachine(StoreMachine):
    """The same, where most messages share a key, and consumers that keep its order give much back (invariant 21)."""

    steps = _weighted(KEY_WEIGHTS)
    keys = st.sampled_from([None, b"", b"k", b"k", b"k"])
    types = st.sampled_from([SubscriptionType.KEY_SHARED] * 4 + [SubscriptionType.SHARED])
    windows = st.sampled_from([1, 3, 1000, 1000])


class SkippingMachine(KeySharedMachine):
    """The same, where most subscriptions skip what is open, and transactions end often (invariants 2, 7, 8, 21)."""

    steps = _weighted(SKIP_WEIGHTS)
    keys = st.sampled_from([None, b"k", b"k", b"l"])
    types = st.sampled_from(
        [SubscriptionType.KEY_SHARED, SubscriptionType.KEY_SHARED, SubscriptionType.SHARED]
    )


TestStore = StoreMachine.TestCase
TestStore.settings = settings(stateful_step_count=50, max_examples=examples(200))
TestKeyShared = KeySharedMachine.TestCase
TestKeyShared.settings = settings(stateful_step_count=50, max_examples=examples(100))
TestSkipping = SkippingMachine.TestCase
TestSkipping.settings = settings(stateful_step_count=50, max_examples=examples(100))
