"""Key_Shared with on-open skip keeps the order of each key, by random programs against a list (invariant 21).

A message is handed out only when every earlier message of its key is acknowledged, aborted, in flight at the same
consumer, of an open transaction that began behind it, or still before its delivery time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import EARLIEST, Consumer, MessageId, OnOpen, Store, SubscriptionType, TxnID
from storage.errors import NotDeliverable
from storage.process.clock import ManualClock
from storage.subscription.dispatch import next_messages, walk_work
from tests.model_runs import examples

_DELAY_S = 5
_messages = st.lists(st.tuples(st.sampled_from([0, 0, 1]), st.booleans()), min_size=1, max_size=3)
_one = st.integers(0, 1)
_plain = st.tuples(st.just("send"), st.just(0), _messages)
_in_txn = st.tuples(st.just("send"), st.integers(1, 2), _messages)
_receive = st.tuples(st.just("receive"), _one, st.integers(1, 3))
_settle = st.tuples(st.sampled_from(["acknowledge", "acknowledge", "give back"]), _one, _one)
_rounds = st.tuples(
    st.lists(_in_txn, min_size=1, max_size=2),
    st.lists(_plain, min_size=1, max_size=2),
    st.lists(_receive, min_size=1, max_size=2),
    st.lists(st.one_of(_settle, st.tuples(st.just("rejoin"), _one)), max_size=1),
    st.lists(
        st.tuples(st.sampled_from(["commit", "commit", "abort"]), st.integers(1, 2)), min_size=1, max_size=2
    ),
    st.lists(st.tuples(st.just("operator"), st.integers(0, 2)), min_size=1, max_size=2),
    st.lists(st.one_of(st.just(("later",)), _plain), max_size=2),
    st.lists(st.one_of(_receive, _settle), min_size=1, max_size=4),
)
"""The steps between a send and the deliveries behind an end, in the order that leads anywhere."""
_programs = st.lists(_rounds, min_size=1, max_size=4).map(
    lambda rounds: [step for parts in rounds for part in parts for step in part]
)


class Sent:
    """A message in the order of the log."""

    def __init__(self, message_id: MessageId, key: int, is_delayed: bool, txn: TxnID | None) -> None:
        self.message_id, self.key, self.is_delayed, self.txn = message_id, key, is_delayed, txn
        self.is_gone = False
        """Acknowledged, or aborted."""
        self.holder = -1


class Program:
    """One program: a store, up to three open transactions, two consumers, and the list of what was sent."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        Store.create(path, clock=self.clock)
        self.store = Store.open(path, clock=self.clock)
        self.store.create_topic("t", ledger_entries_max=7)
        self.producer = self.store.create_producer("t")
        self.sent: list[Sent] = []
        self.txns: dict[int, TxnID] = {}
        self.consumers: list[Consumer] = [self._join(), self._join()]

    def _join(self) -> Consumer:
        return self.store.subscribe(
            "t", "a", subscription_type=SubscriptionType.KEY_SHARED, on_open=OnOpen.SKIP,
            initial_position=EARLIEST, receiver_queue_size=1,
        )  # fmt: skip

    def send(self, number: int, messages: list[tuple[int, bool]]) -> None:
        txn = self.txns.setdefault(number, self.store.begin_transaction(timeout=86_400)) if number else None
        ids = self.producer.send_batch(
            [b"x"] * len(messages), keys=[b"kl"[key : key + 1] for key, _ in messages], txn=txn,
            deliver_after=[_DELAY_S if is_delayed else None for _, is_delayed in messages],
        )  # fmt: skip
        for message_id, message in zip(ids, messages, strict=True):
            self.sent.append(Sent(message_id, *message, txn))

    def end(self, what: str, number: int) -> None:
        txn = self.txns.pop(number, None)
        if txn is None:
            return
        if what == "commit":
            self.store.commit_transaction(txn)
        else:
            self.store.admin.transactions.abort_transaction(txn)
        for message in self.sent:
            if message.txn == txn:
                message.txn = None
                message.is_gone |= what == "abort"

    def receive(self, consumer: int, number: int) -> None:
        for received in self.consumers[consumer].receive_batch(number, timeout=0):
            (message,) = [each for each in self.sent if each.message_id == received.message_id]
            assert not message.is_gone
            assert message.txn is None
            for earlier in self.sent[: self.sent.index(message)]:
                is_before = earlier.key == message.key and not earlier.is_delayed and not earlier.is_gone
                assert not is_before or earlier.holder == consumer, (earlier.message_id, message.message_id)
            message.holder = consumer

    def held(self, consumer: int) -> list[Sent]:
        """What the application of a consumer has received."""
        return [message for message in self.sent if message.holder == consumer and not message.is_gone]

    def settle(self, what: str, consumer: int, place: int) -> None:
        for message in self.held(consumer)[place : place + 1]:
            if what == "acknowledge":
                self.consumers[consumer].acknowledge(message.message_id)
                message.is_gone = True
            else:
                self.consumers[consumer].negative_acknowledge(message.message_id, delay=0)
                message.holder = -1

    def operator(self, place: int) -> None:
        left = [message for message in self.sent if not message.is_gone and message.txn is None]
        for message in left[place : place + 1]:
            with suppress(NotDeliverable):
                self.store.admin.acknowledgements.acknowledge_messages("t", "a", [message.message_id])
                message.is_gone, message.holder = True, -1

    def rejoin(self, consumer: int) -> None:
        self.consumers[consumer].close()
        for message in self.held(consumer):
            message.holder = -1
        self.consumers[consumer] = self._join()

    def play(self, step: tuple[Any, ...]) -> None:
        """Play one step."""
        what, *numbers = step
        if what == "send":
            self.send(*numbers)
        elif what in ("commit", "abort"):
            self.end(what, *numbers)
        elif what == "receive":
            self.receive(*numbers)
        elif what in ("acknowledge", "give back"):
            self.settle(what, *numbers)
        elif what == "operator":
            self.operator(*numbers)
        elif what == "rejoin":
            self.rejoin(*numbers)
        elif what == "later":
            self.clock.advance(_DELAY_S + 1)

    def finish(self) -> None:
        """End all transactions: each message comes, in the order of its key, and nothing is left."""
        for number in list(self.txns):
            self.end("commit", number)
        self.clock.advance(_DELAY_S + 1)
        self.rejoin(0)
        self.rejoin(1)
        for _ in range(4 * len(self.sent) + 8):
            for consumer in (0, 1):
                self.receive(consumer, 3)
                self.settle("acknowledge", consumer, 0)
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

    @settings(max_examples=examples(40))
    @given(_programs)
    def check(program: list[tuple[Any, ...]]) -> None:
        played = Program(tmp_path_factory.mktemp("order") / "store")
        for step in program:
            played.play(step)
        played.finish()

    check()
