"""The writer: one durable commit or nothing, with a prologue before, and what a failing disk leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lmdb
import pytest

from storage import EARLIEST, Store
from storage.disk.lmdb.writer import LmdbWriter
from storage.disk.schema import PURGES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, OutcomeUnknown, StoreClosed, StoreInvalid, TransactionNotFound
from storage.process.clock import ManualClock


def commits(store: Store) -> int:
    """How many commits the store has seen."""
    with store.connection.view() as view:
        return view.superblock.commits


def mark(batch: WriteBatch) -> str:
    """A change that leaves no trace in any object."""
    batch.superblock.changes += 1
    return "result"


def test_a_change_is_one_commit(store: Store) -> None:
    """Its result is that of the write."""
    before = commits(store)
    assert store.connection.write(mark) == "result"
    assert commits(store) == before + 1


def test_what_changed_nothing_is_not_committed(store: Store) -> None:
    """Nor is a dry run, nor a change that raises."""
    before = commits(store)
    assert store.connection.write(lambda batch: 1) == 1
    assert store.connection.write(mark, dry_run=True) == "result"
    with pytest.raises(ZeroDivisionError):
        store.connection.write(lambda batch: mark(batch) and 1 / 0)
    assert commits(store) == before
    assert store.connection.write(mark) == "result"


def refuse(batch: WriteBatch) -> None:
    """A change that is refused."""
    batch.put(PURGES, b"never stored", b"")
    raise AlreadyExists("there is one")


@pytest.mark.parametrize("change", [lambda batch: 1, refuse])
def test_the_first_change_of_a_boot_starts_the_store_clock(
    path: str, clock: ManualClock, change: Callable[[WriteBatch], object]
) -> None:
    """The change may change nothing or be refused; a dry run starts nothing."""
    clock.boot, clock.boot_now_ns = b"manual-boot-0002", 5
    with Store.open(path, clock=clock) as store:
        before = commits(store)
        store.connection.write(mark, dry_run=True)
        for _ in range(2):
            with suppress(AlreadyExists):
                store.connection.write(change)
            clock.advance(7)
        with store.connection.view() as view:
            assert (view.is_clock_running, view.now_ns, view.count(PURGES)) == (True, 14 * 10**9, 0)
        assert commits(store) == before + 1


def test_a_prologue_comes_first(store: Store) -> None:
    """In the same commit; it is told what the caller names."""
    writer = store.connection.environment.writer
    kept, seen = writer.prologue, []

    def prologue(batch: WriteBatch, is_due: bool) -> int:
        assert is_due
        seen.append(batch.naming)
        return 0

    writer.prologue, writer.prologue_due_ns = prologue, 0
    try:
        store.connection.write(lambda batch: seen.append(-1), naming=7)
    finally:
        writer.prologue = kept
    assert seen == [7, -1]


def test_a_recorded_view_is_noted_inside_the_gate(store: Store) -> None:
    """And read outside of it."""
    gate = store.connection.environment.locks.gate
    inside: list[bool] = []

    def record(view: ReadView, wall_ns: int) -> None:
        inside.append(gate._threads._is_owned())  # type: ignore[attr-defined]

    with store.connection.recorded_view(record) as view:
        inside.append(gate._threads._is_owned())  # type: ignore[attr-defined]
        assert view.count(PURGES) == 0
    assert inside == [True, False]


def test_a_note_that_fails_leaves_the_gate(store: Store) -> None:
    """And no view open."""

    def record(view: ReadView, wall_ns: int) -> None:
        raise ZeroDivisionError

    def read() -> None:
        with store.connection.recorded_view(record):
            pass

    with pytest.raises(ZeroDivisionError):
        read()
    assert store.connection.environment.data_map._views == set()
    store.connection.write(mark)


def test_for_reading_only_nothing_is_written(path: str) -> None:
    """Nor read serializably, which is recorded."""
    with Store.open(path, read_only=True) as store:
        with pytest.raises(StoreInvalid, match="for reading only"):
            store.connection.environment.write(mark)
        with pytest.raises(StoreInvalid, match="for reading only"):
            store.connection.environment.recorded_view(lambda view, wall_ns: None, 0, None).__enter__()


class FailingDisk:
    """LMDB, of which the commit fails; and the next batch as well, unless the disk has come to itself."""

    def __init__(self, writer: LmdbWriter, again: bool) -> None:
        self._raw, self._again = writer._map.raw, again
        self.calls = 0

    def begin(self, **options: Any) -> Any:
        self.calls += 1
        if self.calls > 1 and not self._again:
            raise lmdb.Error("Input/output error")
        return FailingCommit(self._raw.begin(**options)) if self.calls == 1 else self._raw.begin(**options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class FailingCommit:
    """A transaction of LMDB that cannot be committed."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def commit(self) -> None:
        self._raw.abort()
        raise lmdb.DiskError("mdb_txn_commit: Input/output error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@pytest.mark.parametrize("again", [True, False])
def test_a_commit_that_failed_is_refused_or_unknown(
    path: str, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Unknown where LMDB cannot go on, as its last page may be on disk: then the handle is latched."""
    with Store.open(path) as store:
        writer = store.connection.environment.writer
        from storage.disk.view import WriteBatch as Batch

        monkeypatch.setattr(writer, "prologue", None)
        monkeypatch.setattr(Batch, "__init__", unwrapping(Batch.__init__))
        raw = writer._map.raw
        writer._map.raw = FailingDisk(writer, again)  # type: ignore[assignment]
        try:
            with pytest.raises(StoreInvalid if again else OutcomeUnknown) as failed:
                store.connection.write(mark)
        finally:
            writer._map.raw = raw
        if again:
            assert store.connection.write(mark) == "result"
        else:
            hint = str(failed.value.hint)
            assert "same sequence id" in hint and "transaction" not in hint
            with pytest.raises(StoreClosed, match="a commit failed"):
                store.connection.write(mark)


def test_the_number_of_a_transaction_in_doubt_is_told(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a commit whose outcome is unknown: to ask by, while the handle is latched, and after its close."""
    with Store.open(path) as store:
        store.create_topic("orders")
        producer, txn = store.create_producer("orders"), store.transaction()
        producer.send(b"m", txn=txn)
        writer = store.connection.environment.writer
        from storage.disk.view import WriteBatch as Batch

        monkeypatch.setattr(writer, "prologue", None)
        monkeypatch.setattr(Batch, "__init__", unwrapping(Batch.__init__))
        raw = writer._map.raw
        writer._map.raw = FailingDisk(writer, again=False)  # type: ignore[assignment]
        try:
            with pytest.raises(OutcomeUnknown) as unknown:
                txn.commit()
        finally:
            writer._map.raw = raw
        told = txn.id
        assert f"show_transaction('{told}')" in str(unknown.value.hint)
    assert txn.id == told
    with Store.open(path) as store:
        with pytest.raises(TransactionNotFound):
            store.reports.show_transaction(told)
        assert store.begin_transaction() == told, "the lost commit gave its number to nobody"


def unwrapping(made: Any) -> Any:
    """A batch works on LMDB's own transaction."""

    def init(self: WriteBatch, raw: Any, *rest: Any) -> None:
        made(self, raw._raw if isinstance(raw, FailingCommit) else raw, *rest)

    return init


@pytest.mark.parametrize("wall_ms", [-1, 9_223_372_036_854, 9_223_372_036_855, 1 << 45, 253_402_300_800_000])
def test_a_wall_clock_out_of_bounds_refuses_writes_and_lets_read(
    path: str, tmp_path: Path, clock: ManualClock, wall_ms: int
) -> None:
    """Before 1970 or after 2261, by whatever path a time would be recorded; and all goes on when the clock is set."""
    with Store.open(path, clock=clock) as store:
        store.create_topic("t")
        store.create_table("a")
        table, producer, right_ns = store.table("a"), store.create_producer("t"), clock.wall_now_ns
        consumer, txn = store.subscribe("t", "s", initial_position=EARLIEST), store.begin_transaction()
        producer.send(b"x")
        message = consumer.receive(timeout=0)
        clock.wall_now_ns = wall_ms * 1_000_000
        attempts: list[Callable[[], object]] = [
            lambda: Store.create(tmp_path / "new", clock=clock),
            lambda: producer.send(b"y"),
            lambda: table.put(b"k", b"v"),
            lambda: table.get(b"k", txn=store.transaction()),
            lambda: store.create_topic("u"),
            lambda: consumer.acknowledge(message),
            lambda: store.commit_transaction(txn),
            lambda: store.maintenance.collect_garbage(trust_clock=True),
        ]
        for attempt in attempts:
            with pytest.raises(StoreInvalid, match="wall clock of this machine is not in the years"):
                attempt()
        assert [message.value for message in store.reader("t")] == [b"x"]
        assert table.get(b"k") is None
        clock.wall_now_ns = right_ns
        consumer.acknowledge(message)
        store.commit_transaction(txn)


def test_the_last_moment_of_the_wall_clock_can_be_written(path: str, clock: ManualClock) -> None:
    """Timestamps that run ahead of the clock, and the locks of open transactions, still have room."""
    clock.wall_now_ns = (1 << 63) - (1 << 53) - 1
    with Store.open(path, clock=clock) as store:
        store.create_topic("t")
        store.create_table("a")
        with store.transaction() as txn:
            store.table("a").get(b"k", txn=txn)
            store.table("a").put(b"k", b"v", txn=txn)
            store.create_producer("t").send(b"x", txn=txn)
        assert store.table("a").get(b"k") == b"v"
