"""A rule machine: transactions over a table, a topic and its subscription, in the store and in a model of it.

What the store refuses the model must refuse with that error; what it returns, and what everybody can see of it after
each step (rows in every check mode, messages, the backlog, whose intents stand where, the state of every
transaction) must be what the model says. The long form:

    MODEL_EXAMPLES=2000 python -m pytest tests/storage/test_table_model.py --timeout=0
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import note, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from storage import (
    EARLIEST,
    CheckMode,
    Consumer,
    IsolationLevel,
    Store,
    SubscriptionType,
    Table,
    Transaction,
    TransactionState,
    TxnctlError,
    TxnID,
)
from storage.client.final_version import FinalVersion
from storage.process.background_flush import WRITE_BEHIND_NS
from storage.table import intent
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.model_table import (
    COMMITTED,
    INLINE_MAX,
    OPEN,
    PRIORITIES,
    Message,
    Refused,
    TableModel,
    Txn,
    Value,
)
from tests.storage.modelled_store import ModelledStore

SECOND = 10**9
RETENTION_S = 100
KEYS = [b"a", b"ab", b"b", b"c", b"\xff"]
OPEN_MAX = 4
WEIGHTS = {
    "begin": 10, "begin_reader": 3, "put": 16, "get": 12, "scan": 8, "put_if": 6, "flush": 3, "end": 14, "put_plainly": 5,
    "read_in_reader": 5, "read_in_the_past": 4, "send": 14, "consume": 12, "collect": 2, "forget": 1, "let_time_pass": 4,
    "begin_anew": 1,
}  # fmt: skip
STEPS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]

keys = st.sampled_from(KEYS)
bounds = st.sampled_from([b"", b"a", b"b", b"bb", b"\xff", b"\xff\xff"])
Handle = Transaction | TxnID


class TableMachine(ModelledStore, RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TableModel(RETENTION_S * SECOND)
        self.handles: dict[Txn, Handle] = {}
        self.count = 0
        self.read_generation = 0
        self.finals: dict[FinalVersion, list[tuple[bytes, Value]]] = {}

    def teardown(self) -> None:
        self.finish()

    @initialize()
    def set_up(self) -> None:
        """A table, and a topic with a Shared subscription."""
        self.store.create_topic("t", ledger_entries_max=3)
        self.store.create_table("accounts")
        self.store.admin.settings.set_table_retention(RETENTION_S * 1000)
        self._attach()

    def _attach(self) -> None:
        self.table: Table = self.store.table("accounts")
        self.consumer: Consumer = self.store.subscribe(
            "t",
            "s",
            subscription_type=SubscriptionType.SHARED,
            initial_position=EARLIEST,
            receiver_queue_size=1,
        )

    @rule(data=st.data(), what=st.sampled_from(STEPS))
    def step(self, data: st.DataObject, what: str) -> None:
        """One thing that users do, the usual ones more often."""
        getattr(self, f"_{what}")(data)

    # Both sides of a step

    def attempt(
        self, what: str, call: Callable[[], Any], predict: Callable[[], Any], named: Txn | None = None
    ) -> tuple[Any, Any, bool]:
        """Take a step in the store, then in the model; both results, and whether it went well."""
        result, raised = None, None
        try:
            result = call()
        except TxnctlError as error:
            raised = type(error).__name__
            note(f"{what} -> {raised}: {error}")
        else:
            note(f"{what} -> {result if isinstance(result, (bytes, int, list, TxnID)) else 'ok'}")
        self._look_at_clock()
        self._notice_reaped(named)
        self._notice_forgotten_reads()
        self.model.came_to = raised
        predicted, expected = None, None
        try:
            predicted = predict()
        except Refused as refused:
            expected = refused
        if expected is None:
            assert raised is None, f"{what} raised {raised}, and must go well"
        else:
            assert raised in expected.names, f"{what} came to {raised}; it must raise one of {expected.names}"
        return result, predicted, raised is None

    def _look_at_clock(self) -> None:
        self.model.now_ns = self.now_ns
        self.model.wall_ns = self.clock.wall_now_ns

    def _notice_reaped(self, named: Txn | None) -> None:
        """End in the model what a writer on its way ended in the store: what is overdue, but never `named`."""
        for txn in self.model.open_transactions():
            is_overdue = self.model.now_ns >= txn.deadline_ns
            if txn is not named and is_overdue and self._state(txn) is TransactionState.ABORTED:
                note(f"  ({txn} was reaped)")
                self.model.end(txn, committed=False)

    def _notice_forgotten_reads(self) -> None:
        """See in the store whether it has begun a new file of reads; when it looks for the file is its own choice."""
        with self.store.connection.view() as view:
            generation, watermark = view.superblock.read_generation, view.superblock.read_watermark
        if generation != self.read_generation and self.read_generation:
            self.model.notice(watermark)
        self.read_generation = generation

    def _state(self, txn: Txn) -> TransactionState:
        handle = self.handles[txn]
        if isinstance(handle, Transaction):
            return handle.state
        return TransactionState(row_json(self.store.reports.show_transaction(handle))["state"])

    # What a step picks from

    def _txn(self, data: st.DataObject, check: bool = False) -> Txn | None:
        """A transaction, mostly an open one: serializable, or with `check` read-committed."""
        found = [txn for txn in self.handles if (txn.check is not None) == check]
        choices = [txn for txn in found if txn.state is OPEN] * 4 + [
            each for each in found if each.state is not OPEN
        ][-2:]
        return data.draw(st.sampled_from(choices), label="txn") if choices else None

    def _value(self, data: st.DataObject) -> Value:
        self.count += 1
        return (
            None if data.draw(st.sampled_from([False] * 4 + [True]), label="delete") else b"%d" % self.count
        )

    # Transactions

    def _begin(self, data: st.DataObject) -> None:
        if len(self.model.open_transactions()) >= OPEN_MAX:
            self._end(data)
            return
        attached = data.draw(st.booleans(), label="attached")
        priority = data.draw(st.sampled_from(["medium"] * 4 + PRIORITIES), label="priority")
        timeout = data.draw(st.sampled_from([3600, 3600, 40, 5]), label="timeout")
        begin: Callable[..., Handle] = self.store.transaction if attached else self.store.begin_transaction
        handle, at, _ = self.attempt(
            f"begin {'attached' if attached else 'detached'} {priority} {timeout} s",
            lambda: begin(priority=priority, timeout=timeout),
            self.model.tick,
        )
        txn = self.model.begin(Txn(at, self._version(handle), attached, priority))
        txn.deadline_ns = self.model.now_ns + timeout * SECOND
        assert all(each.version < txn.version for each in self.handles if each.version), "timestamps grow"
        assert self.model.watermark < txn.version, "the watermark is an issued timestamp"
        self.handles[txn] = handle

    def _version(self, handle: Handle) -> int:
        if isinstance(handle, Transaction):
            return handle.timestamp
        return int(row_json(self.store.reports.show_transaction(handle))["timestamp"])

    def _begin_reader(self, data: st.DataObject) -> None:
        attached = data.draw(st.booleans(), label="attached")
        check = data.draw(st.sampled_from(CheckMode), label="check")
        begin: Callable[..., Handle] = self.store.transaction if attached else self.store.begin_transaction
        handle, _, _ = self.attempt(
            f"begin reader {check.value}", lambda: begin(isolation="read-committed", check=check), set
        )
        # One that is attached takes no timestamp: it has begun with the last one that was issued.
        txn = Txn(self.model.now if attached else self.model.tick(), 0, attached)
        txn.check = check
        self.handles[self.model.begin(txn)] = handle

    def _end(self, data: st.DataObject) -> None:
        txn = self._txn(data, check=data.draw(st.sampled_from([False] * 5 + [True]), label="reader"))
        if txn is None:
            return
        handle = self.handles[txn]
        commits = data.draw(st.sampled_from([True, True, False]), label="commit")
        of: Any = handle if isinstance(handle, Transaction) else None
        call = (of.commit if commits else of.abort) if of else None
        step = self.store.commit_transaction if commits else self.store.admin.transactions.abort_transaction
        if txn.check is not None and txn.attached:
            self.attempt(f"end {txn}", lambda: call and call(), lambda: self._end_reader(txn, commits), txn)
            return
        self.attempt(
            f"{'commit' if commits else 'abort'} {txn}",
            call or (lambda: step(handle)),
            lambda: self.model.commit(txn) if commits else self.model.abort(txn),
            txn,
        )

    def _end_reader(self, txn: Txn, committed: bool) -> None:
        """One that has no record: repeating the end that there was does nothing, and the other end is refused."""
        if txn.state is OPEN:
            self.model.end(txn, committed)
        elif committed is not (txn.state is COMMITTED):
            raise Refused("TransactionNotOpen")

    # Tables

    def _put(self, data: st.DataObject) -> None:
        txn = self._txn(data)
        if txn is None:
            return
        key, value = data.draw(keys, label="key"), self._value(data)
        self.attempt(
            f"put {key!r} {value!r} in {txn}",
            lambda: self._write(key, value, txn=self.handles[txn]),
            lambda: self.model.put(txn, key, value),
            txn,
        )

    def _write(self, key: bytes, value: Value, **how: Any) -> int:
        return self.table.delete(key, **how) if value is None else self.table.put(key, value, **how)

    def _put_if(self, data: st.DataObject) -> None:
        txn = self._txn(data)
        if txn is None:
            return
        key, value = data.draw(keys, label="key"), self._value(data)
        row = self.model.rows.get(key)
        versions = [each.version for each, _ in row.versions] if row else []
        wanted = data.draw(st.sampled_from([0, txn.version, *versions[-3:]]), label="wanted")

        def predict() -> None:
            if self.model.read(txn, key)[1] != wanted:
                raise Refused("ConditionFailed")
            self.model.put(txn, key, value)

        self.attempt(
            f"put {key!r} {value!r} if {wanted} in {txn}",
            lambda: self._write(key, value, txn=self.handles[txn], if_version=wanted),
            predict,
            txn,
        )

    def _put_plainly(self, data: st.DataObject) -> None:
        key, value = data.draw(keys, label="key"), self._value(data)
        alone = Txn(0, 1 << 63, attached=True)  # begins within the step: its timestamp is above all others
        alone.kept[key] = value

        def predict() -> None:
            alone.at = self.model.tick()
            self.model.commit(alone)

        version, _, is_done = self.attempt(f"put {key!r} {value!r}", lambda: self._write(key, value), predict)
        if is_done:
            alone.version = version

    def _flush(self, data: st.DataObject) -> None:
        txn = self._txn(data)
        if txn is None:
            return
        handle = self.handles[txn]
        if isinstance(handle, Transaction) and txn.state is OPEN:
            self.attempt(f"flush {txn}", handle.flush, lambda: self.model.flush(txn), txn)

    def _get(self, data: st.DataObject) -> None:
        txn = self._txn(data)
        if txn is None:
            return
        key = data.draw(keys, label="key")
        row, seen, is_done = self.attempt(
            f"get {key!r} in {txn}",
            lambda: self.table.get_row(key, txn=self.handles[txn]),
            lambda: self.model.read(txn, key),
            txn,
        )
        if is_done:
            value, version = seen
            assert (None if row is None else (row.value, row.version)) == (
                None if value is None else (value, version)
            )

    def _range(self, data: st.DataObject) -> tuple[bytes, bytes | None, dict[str, Any]]:
        start, end = data.draw(bounds, label="start"), data.draw(st.none() | bounds, label="end")
        reverse = data.draw(st.booleans(), label="reverse")
        return start, end, {"start": start, "end": end, "reverse": reverse}

    def _scan(self, data: st.DataObject) -> None:
        txn = self._txn(data)
        if txn is None:
            return
        start, end, how = self._range(data)
        # With own writes in the way it is the store's business how far it looks beyond a limit.
        limit = None if txn.kept else data.draw(st.sampled_from([None, None, 0, 1, 2]), label="limit")
        rows, seen, is_done = self.attempt(
            f"scan {how} limit {limit} in {txn}",
            lambda: [(r.key, r.value) for r in self.table.scan(**how, limit=limit, txn=self.handles[txn])],
            lambda: self.model.scan(txn, start, end, how["reverse"], limit),
            txn,
        )
        assert not is_done or rows == seen

    def _read_in_reader(self, data: st.DataObject) -> None:
        txn = self._txn(data, check=True)
        if txn is None or (txn.attached and txn.state is not OPEN):
            return
        assert txn.check is not None
        check = txn.check

        def predict() -> list[tuple[bytes, Value]]:
            self.model.check_open(txn)
            found = [(key, self.model.committed_now(key, check, txn.at)[0]) for key in KEYS]
            return sorted(each for each in found if each[1] is not None)

        how = {"txn": self.handles[txn]}
        rows, seen, is_done = self.attempt(
            f"scan in reader {txn}", lambda: [(r.key, r.value) for r in self.table.scan(**how)], predict, txn
        )
        if is_done:
            assert rows == seen
            assert [(key, self.table.get(key, **how)) for key in KEYS] == [
                (key, dict(seen).get(key)) for key in KEYS
            ]

    def _read_in_the_past(self, data: st.DataObject) -> None:
        versions = [txn.version for txn in self.handles if txn.version]
        versions += [
            txn.version for row in self.model.rows.values() for txn, _ in row.versions if txn.version
        ]
        if not versions:
            return
        at = data.draw(st.sampled_from(sorted(versions)), label="version") - data.draw(
            st.sampled_from([0, 1]), label="before"
        )

        final = self.table.version_at(at)
        self._check_final(at, final)
        before = data.draw(st.sampled_from([final, *self.finals]), label="final version")
        self._read_at(final, at)
        self._read_at(before, before)

    def _check_final(self, at: int, final: FinalVersion) -> None:
        """That nothing can still write at the version, and that nothing else has lowered it."""
        writers = [txn for txn in self.model.open_transactions() if txn.check is None]
        in_time = [txn.version for txn in writers if self.model.now_ns < txn.deadline_ns]
        assert all(version > final.version for version in in_time)
        shown = [txn.version for row in self.model.rows.values() for txn, _ in row.committed()]
        assert final.version <= at
        assert final.version + 1 in [txn.version for txn in writers] or not any(
            final.version < version <= at for version in shown
        )

    def _read_at(self, final: FinalVersion, at: int | FinalVersion) -> None:
        """A read at a version that was found final before has the answer that it had then."""

        def predict() -> list[tuple[bytes, Value]]:
            found = [(key, self.model.in_the_past(key, final.version, final.unchanged_until)) for key in KEYS]
            return sorted(each for each in found if each[1] is not None)

        rows, seen, is_done = self.attempt(
            f"scan at {at}", lambda: [(r.key, r.value) for r in self.table.scan(at=at)], predict
        )
        if is_done:
            assert rows == seen == self.finals.setdefault(final, seen)
            assert [self.table.get(key, at=at) for key in KEYS] == [dict(seen).get(key) for key in KEYS]

    # Messages

    def _send(self, data: st.DataObject) -> None:
        txn = self._txn(data) if data.draw(st.booleans(), label="in a transaction") else None
        self.count += 1
        value, how = b"%d" % self.count, {"txn": self.handles[txn]} if txn else {}
        self.attempt(
            f"send {value!r} in {txn}",
            lambda: self.store.create_producer("t", connected=False).send(value, **how),
            lambda: self.model.send(value, txn),
            txn,
        )

    def _consume(self, data: st.DataObject) -> None:
        """Receive a message, perhaps for a transaction, and acknowledge it in that, plainly, or give it back."""
        txn = (
            self._txn(data)
            if data.draw(st.sampled_from([True, True, False]), label="in a transaction")
            else None
        )
        is_told = txn is not None and data.draw(st.booleans(), label="says for which")
        how = {"txn": self.handles[txn]} if txn and is_told else {}
        found, _, _ = self.attempt(
            f"receive {f'for {txn}' if is_told else ''}",
            lambda: list(self.consumer.receive_batch(1, 0, **how)),
            set,
        )
        deliverable = self.model.deliverable()
        bound = txn.at if txn and is_told and txn.uses_tables else self.model.now
        if not found:
            assert all(each.readable > bound for each in deliverable) or any(
                each.readable > bound for each in deliverable
            )
            return
        (message,) = [each for each in self.model.messages if each.value == found[0].value]
        assert message in deliverable
        assert message.readable <= bound, "newer than the transaction that it is received for"
        self._decide(data, txn, message, found[0])

    def _decide(self, data: st.DataObject, txn: Txn | None, message: Message, received: Any) -> None:
        if data.draw(st.sampled_from([True] * 4 + [False]), label="acknowledge"):
            how = {"txn": self.handles[txn]} if txn else {}
            _, _, is_done = self.attempt(
                f"acknowledge {message.value!r} in {txn}",
                lambda: self.consumer.acknowledge(received, **how),
                lambda: self.model.acknowledge(message, txn),
                txn,
            )
            if is_done:
                return
        self.attempt("give back", lambda: self.consumer.negative_acknowledge(received, delay=0), set)

    # The rest

    def _collect(self, data: st.DataObject) -> None:
        decided = {key for key, txn in self.model.intents().items() if txn.state is not OPEN}

        def predict() -> None:
            left = {row.key for row in self.table.intents()}
            assert not decided & left
            self.model.collect(left)

        self.attempt("gc", self.store.maintenance.collect_garbage, predict)

    def _forget(self, data: st.DataObject) -> None:
        """The file of reads is removed under everybody."""
        place = os.path.join(self.path, "reads.cache")
        if os.path.exists(place):
            note("forget reads")
            os.unlink(place)
            if self.read_generation:
                self.model.forget_reads()

    def _let_time_pass(self, data: st.DataObject) -> None:
        """What has been kept for half a second is written meanwhile."""
        self.clock.advance(data.draw(st.sampled_from([0.5, 0.5, 6, 30, 60]), label="seconds"))
        self.model.write_overdue(WRITE_BEHIND_NS, self.now_ns)
        self._look_at_clock()
        self._notice_reaped(None)
        self._notice_forgotten_reads()

    def _begin_anew(self, data: st.DataObject) -> None:
        """The process ends, and what was attached to it; what is stored is there."""
        note("close and open")
        self.store.close()
        self.store = Store.open(self.path, clock=self.clock)
        gone = [txn for txn, handle in self.handles.items() if isinstance(handle, Transaction)]
        for txn in gone:
            del self.handles[txn]
            if txn.state is OPEN:
                self.model.end(txn, committed=False)
        while any(row["attached"] for row in row_json(self.store.reports.list_transactions())):
            self.store.admin.transactions.reap_transactions()
        self._attach()
        self._look_at_clock()
        self._notice_reaped(None)
        self._notice_forgotten_reads()

    @invariant()
    def agree(self) -> None:
        """What everybody can see is what the model says."""
        if not self.handles and not self.model.messages and not self.model.rows:
            return
        for txn in self.handles:
            assert self._state(txn) is txn.state, txn
        for check in CheckMode:
            rows = [(row.key, row.value, row.version) for row in self.table.scan(check=check)]
            wanted = [(key, *self.model.committed_now(key, check, self.model.now)) for key in KEYS]
            assert rows == [each for each in wanted if each[1] is not None], check
        intents = {
            row.key: (str(row.owner.version_ns), row.owner.state.value) for row in self.table.intents()
        }
        assert intents == {
            key: (str(txn.version), txn.state.value) for key, txn in self.model.intents().items()
        }
        assert [each.value for each in self.store.reader("t")] == [
            each.value for each in self.model.visible()
        ]
        assert [
            each.value for each in self.store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)
        ] == [each.value for each in self.model.messages]
        stats = row_json(self.store.reports.subscription_stats("t", "s"))
        assert stats["visible"] == len(self.model.deliverable())
        assert stats["pending"] == sum(each.pending is not None for each in self.model.messages)


@pytest.fixture(autouse=True)
def _few_inline() -> Iterator[None]:
    """Decisions leave intents behind early, so that what is not finalised is met often."""
    before = intent.FINALIZE_INLINE_MAX
    intent.FINALIZE_INLINE_MAX = INLINE_MAX
    yield
    intent.FINALIZE_INLINE_MAX = before


def test_the_store_does_what_the_model_says() -> None:
    """Transactions over tables, topics and acknowledgements: every answer is that of the model."""
    run_state_machine_as_test(
        TableMachine, settings=settings(max_examples=examples(60), stateful_step_count=40)
    )
