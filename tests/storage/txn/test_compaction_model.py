"""Compaction as a property of random histories beside a simple model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from storage import (
    EARLIEST,
    Consumer,
    Store,
    TxnID,
)
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.txn import compaction
from tests.model_runs import examples
from tests.storage.conftest import check_whole
from tests.storage.txn.compaction_steps import Row, compact, one_step, read, rows

KEYS = [None, "a", "b", "c"]
SEND = st.tuples(
    st.just("send"), st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=4)
)
OFTEN = st.tuples(
    st.sampled_from(["begin", "txn-send", "txn-send", "commit", "abort", "step", "receive"]),
    st.integers(0, 3),
)
SELDOM = st.tuples(
    st.sampled_from(["compact", "trim", "wait", "join", "reopen", "reopen", "truncate"]), st.integers(0, 3)
)
steps = st.lists(st.one_of(SEND, SEND, OFTEN, OFTEN, SELDOM), min_size=20, max_size=40)
UPKEEP_S = 2
"""The writers' upkeep, compaction among it, is due after that."""
UPKEEP_STEPS = 6
"""Behind the begin of each transaction, and behind so many steps. Not behind each step, for then the write that begins a
transaction has compacted the log before, and no step meets the first open message.
"""
NEVER_BYTES = 1 << 40
"""A threshold that no example reaches: an operator compacts."""
WHOLE_PAGE = 1000
"""Messages of a step, more than any example sends: only maxReadPosition ends the step of a writer. Steps of two messages
end near it by themselves, as a writer asks after each whether enough is left to compact.
"""


@settings(max_examples=examples(150), deadline=None)
@given(
    steps=steps,
    limit=st.integers(1, 4),
    threshold=st.sampled_from([NEVER_BYTES, NEVER_BYTES, 1, 1, 100, 400]),
    step_messages=st.sampled_from([2, WHOLE_PAGE]),
)
def test_a_compacted_topic_agrees_with_a_simple_model(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, object]],
    limit: int,
    threshold: int,
    step_messages: int,
) -> None:
    """Readers see the model's messages after every step, and a subscription gets the newest of each key in the end."""
    path, clock = str(tmp_path_factory.mktemp("compacted") / "store"), ManualClock()
    Store.create(path, clock=clock)
    with pytest.MonkeyPatch.context() as patch, Store.open(path, clock=clock) as store:
        patch.setattr(compaction, "COMPACTION_STEP_MESSAGES", step_messages)
        history = _History(store, clock, limit, threshold)
        for what, argument in steps:
            history.do(what, argument)
            history.compare()
        history.drain()
    check_whole(path, clock)


class _Sent:
    """A message of the model."""

    def __init__(self, row: Row, txn: TxnID | None) -> None:
        self.row = row
        self.txn = txn
        self.place = _place(row[0])
        self.entered_ms: int | None = None


def _place(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(":"))
    return numbers if len(numbers) == 3 else (*numbers, 0)


class _History:
    """A topic, and the plain list of what was sent to it.

    Args:
        threshold: in bytes, from which writers compact on their way, transactions open or not; tombstones then stay, for
            no step says in which write they went.
    """

    def __init__(self, store: Store, clock: ManualClock, limit: int, threshold: int) -> None:
        self.store, self.clock = store, clock
        self.sent: list[_Sent] = []
        self.open: list[TxnID] = []
        self.aborted: set[TxnID] = set()
        self.acknowledged: list[Row] = []
        self.consumer: Consumer | None = None
        self.expired: set[str | None] = set()
        self.number = self.steps = 0
        store.create_topic("t", ledger_entries_max=limit)
        store.admin.topics.set_retention("t", time_ms=0)
        self.compacts_on_the_way = threshold != NEVER_BYTES
        self.tombstone_ms = 365 * 86_400_000 if self.compacts_on_the_way else 60_000
        store.admin.topics.set_compaction("t", threshold=threshold, tombstone_retention_ms=self.tombstone_ms)
        store.admin.subscriptions.create_subscription("t", "log", initial_position=EARLIEST)

    def do(self, what: str, argument: object) -> None:
        self._step(what, argument)
        if self.compacts_on_the_way and (what == "begin" or self.steps % UPKEEP_STEPS == 0):
            self.clock.advance(UPKEEP_S)

    def _step(self, what: str, argument: object) -> None:
        number = argument if isinstance(argument, int) else 0
        self.steps += 1
        if what == "send":
            self._send(argument, None)  # type: ignore[arg-type]
        elif what in ("join", "reopen", "receive"):
            self._consume(what, number)
        elif what == "begin" and len(self.open) < 3:
            self.open.append(self.store.begin_transaction())
            self._send([(KEYS[number], True)], self.open[-1])
        elif what in ("txn-send", "commit", "abort"):
            self._go_on(what, number)
        elif what == "compact":
            compact(self.store)
            self._note_entered(expires=True)
        elif what == "step":
            one_step(self.store)
            self._note_entered(expires=False)
        elif what == "trim":
            self.store.admin.subscriptions.clear_backlog("t", "log")
            self.store.admin.topics.trim_topic("t")
        elif what == "wait":
            self.clock.advance(25)
        elif what == "truncate" and not self.open:
            self.store.admin.topics.truncate_topic("t", force=True)
            self.sent, self.acknowledged = [], []

    def _go_on(self, what: str, number: int) -> None:
        """Go on with an open transaction; begin one where none is open."""
        if not self.open:
            self.do("begin", number)
        elif what == "txn-send":
            self._send([(KEYS[number], True)], self.open[number % len(self.open)])
        else:
            self._end(what, self.open.pop(number % len(self.open)))

    def _consume(self, what: str, number: int) -> None:
        if what == "join" and self.consumer is None:
            self._attach()
        elif what == "reopen" and self.consumer is not None:
            self.consumer.close()
            self._attach()
        elif what == "receive" and self.consumer is not None:
            self._receive(number)

    def _attach(self) -> None:
        self.consumer = self.store.subscribe(
            "t", "state", initial_position=EARLIEST, read_compacted=True, receiver_queue_size=3
        )

    def _send(self, pairs: list[tuple[str | None, bool]], txn: TxnID | None) -> None:
        rows = []
        for key, has_value in pairs:
            self.number += 1
            rows.append((key, str(self.number) if has_value else None))
        with self.store.create_producer("t", connected=False) as producer:
            values = [None if value is None else value.encode() for _, value in rows]
            receipts = producer.send_batch(values, keys=[key for key, _ in rows], txn=txn)
        ids = [str(message_id) for message_id in receipts]
        self.sent += [_Sent((place, *row), txn) for place, row in zip(ids, rows, strict=True)]

    def _end(self, what: str, txn: TxnID) -> None:
        if what == "commit":
            self.store.commit_transaction(txn)
        else:
            self.store.admin.transactions.abort_transaction(txn)
            self.aborted.add(txn)

    def _receive(self, number: int) -> None:
        assert self.consumer is not None
        messages = self.consumer.receive_batch(number + 1, 0)
        for message in messages if number % 2 else messages[:1]:
            self.consumer.acknowledge(message)
            (row,) = rows([message])
            assert row not in self.acknowledged, "acknowledged messages do not come again"
            self.acknowledged.append(row)

    # The model of the view

    def _visible(self) -> list[_Sent]:
        """Committed messages up to maxReadPosition, in order."""
        firsts = [sent.place for sent in self.sent if sent.txn in self.open]
        through = min(firsts, default=(1 << 60,))
        return [sent for sent in self.sent if sent.place < through and sent.txn not in self.aborted]

    def _end_of_view(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last place of the view that readers see, and the last one that compaction has taken in."""
        with self.store.connection.view() as view:
            state = compaction_state.load(view, topics.get(view, "t").topic_id)
        assert state is not None
        if state.horizon is None:
            horizon: tuple[int, ...] = (0, -1, 1 << 30)
        else:
            horizon = (*state.horizon, 1 << 30)
        beyond = sorted({sent.place[:2] for sent in self._visible() if sent.place > horizon})
        taken = (*beyond[0], state.partial - 1) if state.partial else horizon
        return horizon, taken

    def _note_entered(self, *, expires: bool) -> None:
        """Note the messages that came into the view, and those that the run removed for their age."""
        now_ms = self.clock.wall_ms()
        _, taken = self._end_of_view()
        for sent in self._visible():
            if sent.place <= taken and sent.entered_ms is None:
                sent.entered_ms = now_ms
        if expires:
            for sent in self._newest(taken):
                if self._is_tombstone(sent) and sent.entered_ms <= now_ms - self.tombstone_ms:  # type: ignore[operator]
                    sent.row = ("gone", sent.row[1], None)
                    self.expired.add(sent.row[1])

    @staticmethod
    def _is_tombstone(sent: _Sent) -> bool:
        return sent.row[1] is not None and sent.row[2] is None

    def _newest(self, through: tuple[int, ...]) -> list[_Sent]:
        newest: dict[object, _Sent] = {}
        for sent in self._visible():
            if sent.place <= through:
                newest[sent.row[1] if sent.row[1] is not None else sent.place] = sent
        return sorted(newest.values(), key=lambda sent: sent.place)

    def compare(self) -> None:
        """A reader of the compacted topic sees the view and the tail; one of the log never sees less than the tail."""
        horizon, taken = self._end_of_view()
        view = [sent for sent in self._newest(taken) if sent.place <= horizon and sent.row[0] != "gone"]
        tail = [sent for sent in self._visible() if sent.place > horizon]
        assert read(self.store) == [sent.row for sent in view + tail]
        log = [row for row in read(self.store, compacted=False) if _place(row[0]) > horizon]
        assert log == [sent.row for sent in tail]

    def drain(self) -> None:
        """The subscription ends with the newest message of each key, whatever was compacted and trimmed meanwhile."""
        for txn in self.open:
            self.store.commit_transaction(txn)
        self.open = []
        if self.consumer is None:
            return
        # What was received and not acknowledged comes again to the next consumer.
        self.consumer.close()
        self._attach()
        while messages := self.consumer.receive_batch(3, 0):
            for row in rows(list(messages)):
                assert row not in self.acknowledged
                self.acknowledged.append(row)
            self.consumer.acknowledge(messages)
        last: dict[str | None, Row] = {}
        for row in sorted(self.acknowledged, key=lambda row: _place(row[0])):
            last[row[1]] = row
        for sent in self._newest((1 << 60,)):
            if sent.row[1] is not None and sent.row[1] not in self.expired:
                assert last[sent.row[1]] == sent.row
        plain = {row for row in self.acknowledged if row[1] is None}
        assert {sent.row for sent in self._visible() if sent.row[1] is None} <= plain
        stats = self.store.reports.subscription_stats("t", "state").row.stats
        assert stats.msg_backlog == 0
        self.consumer.close()
