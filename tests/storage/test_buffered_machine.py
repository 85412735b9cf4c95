"""A rule machine: several transactions of one process keep messages of several producers, and end in every way.

The model is a list a topic: what a transaction keeps joins it when it is written, all of it at once and in the order of
the sends. Writes are interrupted at random, before and after their commit, and the process dies now and then. The long
form:

    MODEL_EXAMPLES=500 python -m pytest tests/storage/test_buffered_machine.py --timeout=0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import note, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from storage import (
    EARLIEST,
    BatchReceipt,
    IsolationLevel,
    MessageId,
    Producer,
    Store,
    SubscriptionType,
    Transaction,
    TransactionState,
    faults,
)
from storage.errors import SequenceConflict
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.modelled_store import ModelledStore

OPEN, COMMITTED = TransactionState.OPEN, TransactionState.COMMITTED
PRODUCERS = {"named": "t", "unnamed": "t", "elsewhere": "u"}
OPEN_MAX = 3
WEIGHTS = {
    "begin": 4, "send": 14, "put": 3, "acknowledge": 4, "look": 3, "flush": 3, "end": 4, "interrupt": 8,
    "let_a_second_pass": 2, "die": 1,
}  # fmt: skip
STEPS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
seldom = st.sampled_from([False, False, False, True])
POINTS = ["environment.before_change", "environment.before_commit", "environment.after_commit"]


class Sent:
    """A message as it was sent: value, sequence id that the caller gave, and its id once it is known."""

    def __init__(self, value: bytes, topic: str, number: int | None) -> None:
        self.value = value
        self.topic = topic
        self.number = number
        self.is_duplicate = False


class Txn:
    """A transaction: what it keeps of which producer, and what it does besides."""

    def __init__(self, handle: Transaction) -> None:
        self.handle = handle
        self.state = OPEN
        self.kept: list[tuple[str, Sent]] = []
        self.keys: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self.receipts: list[tuple[BatchReceipt, list[Sent]]] = []


class KeptMachine(ModelledStore, RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: dict[str, list[tuple[Sent, Txn | None]]] = {"t": [], "u": []}
        self.used: dict[int, Txn | None] = {}
        self.txns: list[Txn] = []
        self.keepers: dict[str, Txn | None] = {}
        self.count = 0

    def teardown(self) -> None:
        faults.disarm()
        self.finish()

    @initialize(data=st.data(), has_table=st.booleans())
    def set_up(self, data: st.DataObject, has_table: bool) -> None:
        """Two topics, and perhaps a table: without one transactions begin without a timestamp."""
        for topic in self.logs:
            self.store.create_topic(topic, ledger_entries_max=3)
        if has_table:
            self.store.create_table("books")
        self._attach()
        for _ in range(2):
            self.begin(data)
            self.send(data)

    def _attach(self) -> None:
        self.producers: dict[str, Producer] = {
            name: self.store.create_producer(topic, producer_name="p" if name == "named" else None)
            for name, topic in PRODUCERS.items()
        }
        self.consumer = self.store.subscribe(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )

    # The model

    def _write_kept(self, txn: Txn) -> None:
        """All that a transaction keeps takes its place, or nothing does.

        Raises:
            SequenceConflict
        """
        used, stored = dict(self.used), []
        for _, sent in txn.kept:
            if sent.number is not None and sent.number in used:
                if used[sent.number] not in (None, txn):
                    raise SequenceConflict("as the model says")
                stored.append((sent, True))
                continue
            if sent.number is not None:
                used[sent.number] = txn
            stored.append((sent, False))
        self.used, txn.kept = used, []
        for sent, is_duplicate in stored:
            sent.is_duplicate = is_duplicate
            if not is_duplicate:
                self.logs[sent.topic].append((sent, txn))

    def _end(self, txn: Txn, state: TransactionState) -> None:
        txn.state, txn.kept = state, []
        for number, holder in list(self.used.items()):
            if holder is txn:
                if state is COMMITTED:
                    self.used[number] = None
                else:
                    del self.used[number]

    def _both(self, what: str, call: Callable[[], Any], predict: Callable[[], None]) -> bool:
        """Take a step on both sides; whether it went well."""
        expected = None
        try:
            predict()
        except SequenceConflict as conflict:
            expected = conflict
        try:
            call()
        except SequenceConflict as conflict:
            note(f"{what} -> {conflict}")
            assert expected is not None, f"{what} must go well"
            return False
        note(f"{what} -> ok")
        assert expected is None, f"{what} must be refused"
        return True

    def _open(self, data: st.DataObject) -> Txn | None:
        found = [txn for txn in self.txns if txn.state is OPEN]
        index = data.draw(st.integers(0, len(found) - 1), label="txn") if found else 0
        return found[index] if found else None

    def _go_on_in(self, name: str, txn: Txn | None) -> None:
        """A producer sends elsewhere: what is kept of it is written before. Who would be refused is given up."""
        keeper = self.keepers.get(name)
        self.keepers[name] = txn
        if keeper is not None and keeper is not txn:
            try:
                self._write_kept(keeper)
            except SequenceConflict:
                self._give_up(keeper)

    def _give_up(self, txn: Txn) -> None:
        note(f"{txn} is aborted: what it keeps is refused")
        txn.handle.abort()
        self._end(txn, TransactionState.ABORTED)

    # Steps

    @rule(data=st.data(), what=st.sampled_from(STEPS))
    def step(self, data: st.DataObject, what: str) -> None:
        """One thing that applications do, the usual ones more often."""
        getattr(self, what)(data)

    def begin(self, data: st.DataObject) -> None:
        """Attached to this process."""
        if sum(txn.state is OPEN for txn in self.txns) < OPEN_MAX:
            self.txns.append(Txn(self.store.transaction(timeout=86_400)))

    def send(self, data: st.DataObject) -> None:
        """A batch, in a transaction mostly, where the store keeps it."""
        name = data.draw(st.sampled_from(list(PRODUCERS)), label="producer")
        count = data.draw(st.integers(1, 3), label="count")
        txn = self._open(data) if data.draw(st.sampled_from([True] * 4 + [False]), label="in one") else None
        numbers: list[int] | None = None
        if name == "named":
            numbers = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
        batch = []
        for index in range(count):
            self.count += 1
            number = None if numbers is None else numbers[index]
            batch.append(Sent(b"%d" % self.count, PRODUCERS[name], number))
        self._go_on_in(name, txn)
        how: dict[str, Any] = {"sequence_ids": numbers, "txn": None if txn is None else txn.handle}
        receipts: list[BatchReceipt] = []

        def predict() -> None:
            alone = Txn(self.store) if txn is None else txn  # type: ignore[arg-type]
            alone.kept += [(name, sent) for sent in batch]
            if txn is None:
                self._write_kept(alone)
                self._end(alone, COMMITTED)

        is_done = self._both(
            f"{name} sends {[sent.value for sent in batch]} ids {numbers} in {txn}",
            lambda: receipts.append(self.producers[name].send_batch([s.value for s in batch], **how)),
            predict,
        )
        if is_done and txn is not None:
            assert receipts[0].is_buffered
            txn.receipts.append((receipts[0], batch))
        elif is_done:
            self._check_receipt(receipts[0], batch)

    def put(self, data: st.DataObject) -> None:
        """A key of its own, which nobody else touches."""
        txn = self._open(data)
        if txn is not None and self.store.has_table("books") and not txn.acknowledged:
            self.count += 1
            key = b"k%d" % self.count
            self.store.table("books").put(key, b"v", txn=txn.handle)
            txn.keys.append(key)

    def acknowledge(self, data: st.DataObject) -> None:
        """One message; before any table is used, so that it is never too new."""
        txn = self._open(data)
        if txn is None or txn.keys:
            return
        for message in self.consumer.receive_batch(1, 0):
            self.consumer.acknowledge(message, txn=txn.handle)
            txn.acknowledged.append(message.value or b"")

    def look(self, data: st.DataObject) -> None:
        """At a receipt: it has everything written that its transaction keeps."""
        txn = self._open(data)
        if txn is not None and txn.receipts:
            receipt, batch = data.draw(st.sampled_from(txn.receipts), label="receipt")
            if self._both(
                f"look at {batch[0].value!r} of {txn}",
                lambda: receipt.count,
                lambda: self._look(txn, receipt),
            ):
                self._check_receipt(receipt, batch)

    def _look(self, txn: Txn, receipt: BatchReceipt) -> None:
        if receipt.is_buffered:
            self._write_kept(txn)

    def flush(self, data: st.DataObject) -> None:
        """Messages and puts."""
        txn = self._open(data)
        if txn is not None:
            self._both(f"flush {txn}", txn.handle.flush, lambda: self._write_kept(txn))

    def end(self, data: st.DataObject) -> None:
        """Commit, or abort."""
        txn = self._open(data)
        if txn is None:
            return
        if data.draw(seldom, label="abort"):
            txn.handle.abort()
            self._end(txn, TransactionState.ABORTED)
            return
        before = int(row_json(self.store.reports.store_info())["commits"])
        if self._both(f"commit {txn}", txn.handle.commit, lambda: self._write_kept(txn)):
            assert int(row_json(self.store.reports.store_info())["commits"]) - before <= 1
            self._end(txn, COMMITTED)
            self._check_committed(txn)

    def interrupt(self, data: st.DataObject) -> None:
        """Ctrl-C in a flush or a commit, which is then repeated."""
        point = data.draw(st.sampled_from(POINTS), label="point")
        call = data.draw(st.sampled_from(["flush", "flush", "commit"]), label="call")
        txn = self._open(data)
        if txn is None or not txn.kept:
            return

        def stop() -> None:
            faults.disarm()
            raise KeyboardInterrupt

        def twice() -> None:
            faults.arm(point, stop)
            try:
                getattr(txn.handle, call)()
            except KeyboardInterrupt:
                getattr(txn.handle, call)()
            finally:
                faults.disarm()

        is_done = self._both(f"{call} {txn}, interrupted at {point}", twice, lambda: self._write_kept(txn))
        if is_done and call == "commit":
            self._end(txn, COMMITTED)
            self._check_committed(txn)

    def let_a_second_pass(self, data: st.DataObject) -> None:
        """Whatever is kept is written, or refused and kept."""
        self.clock.advance(1.0)
        refused = []
        for txn in sorted((each for each in self.txns if each.kept), key=_first_kept):
            try:
                self._write_kept(txn)
            except SequenceConflict:
                refused.append(txn)
        for txn in refused:
            self._give_up(txn)

    def die(self, data: st.DataObject) -> None:
        """The process ends, and with it what was attached to it."""
        if data.draw(seldom, label="really"):
            note("close and open")
            self.store.close()
            self.store = Store.open(self.path, clock=self.clock)
            while any(row["attached"] for row in row_json(self.store.reports.list_transactions())):
                self.store.admin.transactions.reap_transactions()
            for txn in self.txns:
                if txn.state is OPEN:
                    self._end(txn, TransactionState.ABORTED)
            self.txns, self.keepers = [], {}
            self._attach()

    # What must hold

    def _check_receipt(self, receipt: BatchReceipt, batch: list[Sent]) -> None:
        """It has the ids under which its messages can be read."""
        stored = [sent for sent in batch if not sent.is_duplicate]
        assert (receipt.count, receipt.duplicates) == (len(stored), len(batch) - len(stored))
        reader = self.store.reader(batch[0].topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        places: dict[MessageId, bytes | None] = {each.message_id: each.value for each in reader}
        assert [places[each] for each in receipt] == [sent.value for sent in stored]

    def _check_committed(self, txn: Txn) -> None:
        for receipt, batch in txn.receipts:
            self._check_receipt(receipt, batch)
        for key in txn.keys:
            assert self.store.table("books").get(key) == b"v"

    @invariant()
    def agree(self) -> None:
        """Both levels of both topics are those of the model, and so are the states."""
        if not self.store.has_topic("u"):
            return
        for topic, log in self.logs.items():
            dirty = self.store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
            assert [message.value for message in dirty] == [sent.value for sent, _ in log], topic
            visible = []
            for sent, txn in log:
                if txn is not None and txn.state is OPEN:
                    break
                if txn is None or txn.state is COMMITTED:
                    visible.append(sent.value)
            assert [message.value for message in self.store.reader(topic)] == visible, topic
        for txn in self.txns:
            assert txn.handle.state is txn.state


def _first_kept(txn: Txn) -> int:
    return int(txn.kept[0][1].value)


def test_what_transactions_keep_is_what_the_model_says() -> None:
    """Every message stands once, in its order, at both levels, whatever became of the writes."""
    run_state_machine_as_test(
        KeptMachine, settings=settings(max_examples=examples(60), stateful_step_count=40)
    )
