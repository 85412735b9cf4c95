"""Key_Shared keeps the order of each key, by random programs against the rule of docs/SEMANTICS.md (invariant 21).

The rule knows the time, and of each message: transaction, delivery time, delay after it was given back, and where the
message is. After each step the deliveries of the store tell which messages dispatch has handed out to which consumer;
each must have been free, and behind no message that holds its key. A consumer that receives nothing must have been
owed nothing.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import EARLIEST, Consumer, IsolationLevel, MessageId, OnOpen, Store, SubscriptionType, TxnID
from storage.errors import NotDeliverable, TransactionConflict
from storage.process.clock import ManualClock
from storage.subscription import catalogue, delivery as deliveries, message_set
from storage.subscription.dispatch import delay_walk, next_messages, walk_work
from tests.model_runs import examples

STEP_S = 4
RC, RU = IsolationLevel
MODES = [(RC, OnOpen.SKIP), (RC, OnOpen.SKIP), (RC, OnOpen.BLOCK), (RU, OnOpen.BLOCK)]

_messages = st.lists(
    st.tuples(st.sampled_from([b"k", b"k", b"l", None]), st.sampled_from([0, 0, 0, 3, 5, 10])),
    min_size=1,
    max_size=3,
)
_one = st.integers(0, 1)
_ends = st.tuples(st.sampled_from(["commit", "commit", "abort"]), st.integers(1, 3))
_sends = st.tuples(st.just("send"), st.sampled_from([0, 0, 0, 1, 2, 3]), _messages)
_receive = st.tuples(st.just("receive"), _one, st.integers(1, 3))
_settle = st.one_of(
    st.tuples(st.just("acknowledge"), _one, _one, st.sampled_from([0, 0, 1, 2, 3])),
    st.tuples(st.just("give back"), _one, _one, st.sampled_from([0, 3])),
)
_operator = st.tuples(st.just("operator"), st.integers(0, 3), st.sampled_from([0, 1, 2, 3]))
_rejoin = st.tuples(st.sampled_from(["rejoin", "rejoin", "evict", "switch"]), _one, st.integers(1, 3))
_rounds = st.tuples(
    st.lists(_sends, min_size=1, max_size=3),
    st.lists(_receive, max_size=2),
    st.lists(st.one_of(_settle, _rejoin, _settle), max_size=2),
    st.lists(_ends, max_size=2),
    st.lists(st.one_of(st.just(("later",)), _operator, _sends), max_size=2),
    st.lists(st.one_of(_receive, _receive, _settle), max_size=4),
)
"""The steps between a send and the deliveries behind an end, in the order that leads anywhere."""
_programs = st.lists(_rounds, min_size=1, max_size=5).map(
    lambda rounds: [step for parts in rounds for part in parts for step in part]
)
_opening = st.none() | st.tuples(st.integers(0, 1), _messages, st.integers(0, 2))


class Sent:
    """A message, in the order of the log.

    Attributes:
        place: ledger, entry and batch index.
        txn: its transaction while that is open.
        is_gone: acknowledged, or aborted and left out.
        pending: the transaction in which it is acknowledged.
        holder: the consumer to which dispatch has handed it out.
        handed_ms: when dispatch did so.
        receiver: the consumer whose application has received it.
        again_ms: when it may come again; None where no application has received it.
    """

    def __init__(self, message_id: MessageId, key: bytes | None, due_ms: int, txn: TxnID | None) -> None:
        self.message_id, self.key, self.due_ms, self.txn = message_id, key, due_ms, txn
        self.place = (message_id.ledger_id, message_id.entry_id, max(message_id.batch_index, 0))
        self.is_gone = False
        self.pending: TxnID | None = None
        self.holder: Consumer | None = None
        self.handed_ms = 0
        self.receiver: Consumer | None = None
        self.again_ms: int | None = None

    def __repr__(self) -> str:
        return f"{self.message_id}"


class Program:
    """One program: a store, up to three open transactions, two consumers, and the list of what was sent."""

    def __init__(
        self,
        path: Path,
        mode: tuple[IsolationLevel, OnOpen],
        windows: tuple[int, int],
        opening: tuple[int, list[tuple[bytes | None, int]], int] | None = None,
    ) -> None:
        self.clock = ManualClock()
        Store.create(path, clock=self.clock)
        self.store = Store.open(path, clock=self.clock)
        self.store.create_topic("t", ledger_entries_max=7)
        self.producer = self.store.create_producer("t")
        self.level, self.on_open = mode
        self.sent: list[Sent] = []
        self.txns: dict[int, TxnID] = {}
        start: Any = EARLIEST
        if opening is not None:
            number, messages, place = opening
            self.send(number, messages)
            first = min(place, len(messages) - 1)
            start = self.sent[first].message_id
            for message in self.sent[:first]:
                message.is_gone = True
        self.consumers = [self._join(window, start) for window in windows]

    def _join(self, window: int, start: Any = EARLIEST) -> Consumer:
        return self.store.subscribe(
            "t", "a", subscription_type=SubscriptionType.KEY_SHARED, on_open=self.on_open,
            subscription_isolation_level=self.level, initial_position=start, receiver_queue_size=window,
        )  # fmt: skip

    # The rule

    def holds(self, message: Sent, consumer: Consumer) -> bool:
        """Whether a message holds its key against later ones for a consumer."""
        if message.is_gone or message.holder is consumer:
            return False
        if message.holder is not None or message.pending is not None or message.again_ms is not None:
            return True
        return message.due_ms <= self.clock.wall_ms()

    def holders(self, message: Sent, consumer: Consumer) -> list[Sent]:
        """The earlier messages of its key that hold the key against a message."""
        if message.key is None:
            return []
        before = self.sent[: self.sent.index(message)]
        return [each for each in before if each.key == message.key and self.holds(each, consumer)]

    def is_free(self, message: Sent) -> bool:
        """Whether a message may be handed out, for all that is no matter of its key."""
        is_out = message.is_gone or message.pending is not None
        now_ms = self.clock.wall_ms()
        is_early = message.again_ms is None and message.due_ms > now_ms
        if is_out or is_early or (message.again_ms or 0) > now_ms or (message.txn and self.level is RC):
            return False
        is_blocking = self.level is RC and self.on_open is OnOpen.BLOCK
        return not (is_blocking and any(each.txn for each in self.sent[: self.sent.index(message)]))

    def in_flight(self) -> dict[tuple[int, int, int], Consumer]:
        """The messages that dispatch has handed out."""
        holders = {consumer._attachment.consumer_id: consumer for consumer in self.consumers}
        with self.store.connection.view() as view:
            subscription = catalogue.get(view, self.consumers[0]._attachment.topic, "a")
            return {
                (*record.at, index): holders[part.holder]
                for record in deliveries.every(view, subscription.subscription_id)
                for part in record.parts
                if part.holder > 0
                for index in message_set.indexes(part.messages)
            }

    def judge(self) -> None:
        """See that the last step has handed out nothing that had to wait."""
        held, now_ms = self.in_flight(), self.clock.wall_ms()
        new: list[Sent] = []
        for message in self.sent:
            holder = held.get(message.place)
            if holder is not message.holder:
                if holder is not None:
                    assert self.is_free(message), f"{message} is handed out, and is not free"
                    new.append(message)
                message.holder, message.handed_ms = holder, now_ms
        for message in new:
            assert message.holder is not None
            assert self.holders(message, message.holder) == [], f"{message} is handed out before these"

    # Steps

    def send(self, number: int, messages: list[tuple[bytes | None, int]]) -> None:
        txn = self.txns.setdefault(number, self.store.begin_transaction(timeout=86_400)) if number else None
        ids = self.producer.send_batch(
            [b"x"] * len(messages), keys=[key for key, _ in messages], txn=txn,
            deliver_after=[delay or None for _, delay in messages],
        )  # fmt: skip
        now_ms = self.clock.wall_ms()
        for message_id, (key, delay) in zip(ids, messages, strict=True):
            self.sent.append(Sent(message_id, key, now_ms + delay * 1000 if delay else 0, txn))

    def end(self, what: str, number: int) -> None:
        txn = self.txns.pop(number, None)
        if txn is None:
            return
        if what == "commit":
            self.store.commit_transaction(txn)
        else:
            self.store.admin.transactions.abort_transaction(txn)
        for message in self.sent:
            if message.pending == txn:
                message.pending = None
                message.is_gone |= what == "commit"
            if message.txn == txn:
                message.txn = None
                message.is_gone |= what == "abort" and self.level is RC

    def receive(self, place: int, number: int) -> None:
        consumer = self.consumers[place]
        before = self.in_flight()
        batch = list(consumer.receive_batch(number, timeout=0))
        self.judge()
        for received in batch:
            (message,) = [each for each in self.sent if each.message_id == received.message_id]
            assert message.holder is consumer
            for earlier in self.sent[: self.sent.index(message)]:
                if earlier.key is None or earlier.key != message.key or earlier.is_gone:
                    continue
                came_late = earlier.again_ms is None and message.handed_ms < earlier.due_ms
                is_elsewhere = before.get(earlier.place) not in (None, consumer)
                is_before = earlier.receiver is consumer or (came_late and not is_elsewhere)
                assert is_before, f"{message} is received before {earlier}"
            message.receiver, message.again_ms = consumer, 0
        owed = [] if batch else [each for each in self.sent if self.is_free(each) and each.holder is None]
        assert [each for each in owed if not self.holders(each, consumer)] == []

    def received(self, consumer: Consumer) -> list[Sent]:
        """What the application of a consumer has received, and not settled."""
        mine = [message for message in self.sent if message.receiver is consumer]
        return [message for message in mine if not message.is_gone and message.pending is None]

    def acknowledge(self, place: int, which: int, number: int) -> None:
        consumer = self.consumers[place]
        txn = self.txns.setdefault(number, self.store.begin_transaction(timeout=86_400)) if number else None
        for message in self.received(consumer)[which : which + 1]:
            with suppress(TransactionConflict):
                consumer.acknowledge(message.message_id, txn=txn)
                self._take(message, txn)

    def _take(self, message: Sent, txn: TxnID | None) -> None:
        message.receiver, message.pending = None, txn
        message.is_gone = txn is None

    def give_back(self, place: int, which: int, delay: int) -> None:
        consumer = self.consumers[place]
        for message in self.received(consumer)[which : which + 1]:
            consumer.negative_acknowledge(message.message_id, delay=delay)
            message.receiver, message.again_ms = None, self.clock.wall_ms() + delay * 1000

    def operator(self, place: int, number: int) -> None:
        """An operator acknowledges a message, wherever it is."""
        txn = self.txns.setdefault(number, self.store.begin_transaction(timeout=86_400)) if number else None
        left = [message for message in self.sent if not message.is_gone]
        for message in left[place : place + 1]:
            with suppress(NotDeliverable, TransactionConflict):
                self.store.admin.acknowledgements.acknowledge_messages(
                    "t", "a", [message.message_id], txn=txn
                )
                self._take(message, txn)

    def rejoin(self, place: int, window: int) -> None:
        consumer = self.consumers[place]
        consumer.close()
        for message in self.sent:
            if message.receiver is consumer:
                message.receiver = None
        self.consumers[place] = self._join(window)

    def evict(self, place: int, window: int) -> None:
        """An operator takes everything from a consumer, whose next call fails."""
        consumer = self.consumers[place]
        self.store.admin.subscriptions.evict_consumers("t", "a", consumer.consumer_name)
        self.rejoin(place, window)

    def switch(self, place: int, window: int) -> None:
        """All consumers leave, and on-open changes, where the level knows it."""
        if self.level is RC:
            for consumer in self.consumers:
                consumer.close()
            self.on_open = OnOpen.BLOCK if self.on_open is OnOpen.SKIP else OnOpen.SKIP
            self.store.admin.subscriptions.update_subscription("t", "a", on_open=self.on_open)
            self.rejoin(1 - place, window)
        self.rejoin(place, window)

    def later(self) -> None:
        self.clock.advance(STEP_S)

    def play(self, step: tuple[Any, ...]) -> None:
        """Play one step."""
        what, *rest = step
        if what in ("commit", "abort"):
            self.end(what, *rest)
        else:
            getattr(self, what.replace(" ", "_"))(*rest)
        if what != "receive":
            self.judge()

    def finish(self) -> None:
        """End all transactions: each message comes, in the order of its key, and nothing is left."""
        for number in list(self.txns):
            self.end("commit", number)
        for _ in range(3):
            self.later()
        self.rejoin(0, 1)
        self.rejoin(1, 1)
        for _ in range(4 * len(self.sent) + 8):
            for place in (0, 1):
                self.receive(place, 3)
                self.acknowledge(place, 0, 0)
        assert [message.message_id for message in self.sent if not message.is_gone] == []
        self.store.close()
        with Store.open(self.store.path, clock=self.clock) as store:
            assert store.maintenance.verify_store(full=True) == []


@pytest.mark.parametrize("budget", [1, 4000])
def test_the_order_of_each_key_is_kept(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    """Whatever is acknowledged by whom, and wherever a walk is cut."""
    monkeypatch.setattr(walk_work, "DISPATCH_WORK_MAX", budget)
    monkeypatch.setattr(next_messages, "DISPATCH_SCAN_ENTRIES_MAX", max(2, budget))
    monkeypatch.setattr(delay_walk, "DUE_TOGETHER_MAX", budget)
    windows = st.tuples(st.integers(1, 3), st.integers(1, 3))

    @settings(max_examples=examples(60))
    @given(st.sampled_from(MODES), windows, _opening, _programs)
    def check(mode: Any, windows: Any, opening: Any, program: list[tuple[Any, ...]]) -> None:
        played = Program(tmp_path_factory.mktemp("order") / "store", mode, windows, opening)
        for step in program:
            played.play(step)
        played.finish()

    check()
