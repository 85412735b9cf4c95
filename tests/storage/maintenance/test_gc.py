"""A dry run of gc tells the numbers of the real one, whatever the tables hold.

Each example is a random past of two tables: writes and deletions, alone and in transactions that committed, aborted or
are still open, finalised or not, hours apart; a retention; a wall clock that was moved; a table whose deletion was
killed. gc is tried, then run, and run again: then nothing is left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from storage import Store, Table, TxnID, faults
from storage.errors import Conflict
from storage.json_form import camel_case
from storage.maintenance.table_gc import TableCounts
from storage.process.clock import ManualClock
from storage.table import catalogue as tables, intent, retention
from storage.txn import outcome_retention
from tests.model_runs import examples
from tests.processes.memory import directory_in_memory
from tests.row_json import row_json

KEYS = st.sampled_from([b"a", b"a\0", b"b", b"b\xff", b"cccccccc", b"ccccccccc"])
STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 1), KEYS, st.booleans()),
    st.tuples(st.just("begin")),
    st.tuples(st.just("place"), st.integers(0, 1), KEYS, st.booleans(), st.integers(0, 3)),
    st.tuples(st.just("end"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("send"), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.sampled_from([1, 1800, 3601, 30_000, 90_000])),
    st.tuples(st.just("jump"), st.sampled_from([-600, 30, 7200])),
    st.tuples(st.just("gc")),
)

COUNTS = tuple(camel_case(name) for name in TableCounts._fields)
"""The counts of a run, as the command line prints them."""


@pytest.fixture(scope="module", autouse=True)
def _small_steps() -> Iterator[None]:
    """Few intents are left to gc already, and it takes many steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intent, "FINALIZE_INLINE_MAX", 1)
        for module in (retention, outcome_retention):
            patch.setattr(module, "GC_STEP_RECORDS", 3)
            patch.setattr(module, "GC_LOOK_RECORDS", 4)
        patch.setattr(tables, "GC_STEP_RECORDS", 2)
        yield


class Past:
    """Two tables and a topic as they came to be."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self._store = store
        self._clock = clock
        for name in ("one", "two"):
            store.create_table(name)
        self._tables = [store.table(name) for name in ("one", "two")]
        self._open: list[TxnID] = []
        store.create_topic("t")

    def run(self, verb: str, *words: Any) -> None:
        """One step; that it meets a conflict is part of the past."""
        with suppress(Conflict):
            getattr(self, f"_{verb}")(*words)

    def _put(self, table: int, key: bytes, deletes: bool, txn: TxnID | None = None) -> None:
        if deletes:
            self._tables[table].delete(key, txn=txn)
        else:
            self._tables[table].put(key, b"v", txn=txn)

    def _begin(self) -> None:
        self._open.append(self._store.begin_transaction(timeout=86_400))

    def _place(self, table: int, key: bytes, deletes: bool, number: int) -> None:
        if self._open:
            self._put(table, key, deletes, self._open[number % len(self._open)])

    def _end(self, number: int, commits: bool) -> None:
        if self._open:
            txn = self._open.pop(number % len(self._open))
            (self._store.commit_transaction if commits else self._store.admin.transactions.abort_transaction)(
                txn
            )

    def _send(self, number: int) -> None:
        if self._open:
            producer = self._store.create_producer("t", connected=False)
            producer.send(b"m", txn=self._open[number % len(self._open)])

    def _wait(self, seconds: int) -> None:
        self._clock.advance(seconds)

    def _jump(self, seconds: int) -> None:
        self._clock.wall_now_ns += seconds * 1_000_000_000

    def _gc(self) -> None:
        self._store.maintenance.collect_garbage()

    def drop(self, table: int) -> None:
        """Delete a table, and be killed before its rows are gone."""
        faults.arm("table.between_purge_steps", _interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                self._store.admin.tables.delete_table(("one", "two")[table], force=True)
        finally:
            faults.disarm()


def _interrupt() -> None:
    raise KeyboardInterrupt


def counts(result: dict[str, Any]) -> dict[str, Any]:
    """What a dry run can know."""
    return {name: value for name, value in result.items() if name not in ("purgeSteps", "dryRun")}


@settings(max_examples=examples(150))
@given(
    st.lists(STEPS, max_size=40),
    st.none() | st.integers(0, 1),
    st.sampled_from([1, 3600, 40_000]),
    st.booleans(),
)
@example([("put", 0, b"a", False), ("put", 0, b"a", False), ("wait", 3601)], 0, 3600, False)
@example(
    [("put", 0, b"a", False), ("begin",), ("place", 0, b"a", True, 0), ("place", 0, b"b", True, 0),
     ("end", 0, True), ("wait", 3601)], None, 3600, False,
)  # fmt: skip
def test_the_numbers_of_a_dry_run_are_those_of_the_real_one(
    steps: list[tuple[Any, ...]], dropped: int | None, retention_s: int, trusts: bool
) -> None:
    """And what it would not remove is all that a second run finds: nothing."""
    clock = ManualClock()
    with directory_in_memory() as directory:
        Store.create(f"{directory}/store", clock=clock)
        with Store.open(f"{directory}/store", clock=clock) as store:
            store.admin.settings.set_reap_policy("manual")
            store.admin.settings.set_table_retention(retention_s * 1000)
            past = Past(store, clock)
            for step in steps:
                past.run(*step)
            if dropped is not None:
                past.drop(dropped)
            dry = row_json(store.maintenance.collect_garbage(trust_clock=trusts, dry_run=True))
            assert dry["dryRun"]
            assert counts(dry) == counts(row_json(store.maintenance.collect_garbage(trust_clock=trusts)))
            assert not any(row_json(store.maintenance.collect_garbage(dry_run=True))[name] for name in COUNTS)
            assert not any(row_json(store.maintenance.collect_garbage())[name] for name in COUNTS)
            assert store.maintenance.verify_store() == []


def test_every_count_is_met(store: Store, table: Table, clock: ManualClock) -> None:
    """A past in which each of them is more than nothing, and a dry run changes nothing of it."""
    store.admin.settings.set_reap_policy("manual")
    table.put(b"a", b"1")
    table.put(b"b", b"1")
    done, dropped = store.begin_transaction(), store.begin_transaction()
    for key in (b"a", b"c"):
        table.delete(key, txn=done)
    for key in (b"b", b"d"):
        table.put(key, b"2", txn=dropped)
    store.commit_transaction(done)
    store.admin.transactions.abort_transaction(dropped)
    clock.advance(86_401)
    with store.connection.view() as view:
        before = view.superblock.commits
    dry = row_json(store.maintenance.collect_garbage(dry_run=True))
    assert [dry[name] for name in COUNTS] == [4, 1, 2, 4]
    with store.connection.view() as view:
        assert view.superblock.commits == before
    assert counts(row_json(store.maintenance.collect_garbage())) == counts(dry)
    assert [row.key for row in table.scan()] == [b"b"]


def test_while_the_clocks_disagree_nothing_goes_for_its_age(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Unless an operator trusts the wall clock: the dry run tells both."""
    table.put(b"a", b"1")
    table.put(b"a", b"2")
    clock.wall_now_ns += 7200 * 1_000_000_000
    for trusts, versions in ((False, 0), (True, 1)):
        dry = row_json(store.maintenance.collect_garbage(trust_clock=trusts, dry_run=True))
        assert (dry["versionsRemoved"], dry["clocksDisagree"]) == (versions, not trusts)
        assert counts(row_json(store.maintenance.collect_garbage(trust_clock=trusts))) == counts(dry)


def test_the_first_write_after_a_reboot_may_be_gc(
    store: Store, table: Table, path: str, clock: ManualClock
) -> None:
    """It starts the store clock, without which the clocks cannot agree; the dry run tells so."""
    table.put(b"a", b"1")
    table.put(b"a", b"2")
    clock.advance(7200)
    store.close()
    clock.boot, clock.boot_now_ns = b"manual-boot-0002", 5
    with Store.open(path, clock=clock) as again:
        for is_dry in (True, False):
            done = row_json(again.maintenance.collect_garbage(dry_run=is_dry))
            assert (done["versionsRemoved"], done["clocksDisagree"]) == (1, False)


def test_leftovers_of_dead_builders_are_removed(store: Store, path: str) -> None:
    """Of a compaction in the store, and of a backup beside it; not in a dry run."""
    left = [
        os.path.join(path, ".compacted.1234567.new"),
        os.path.join(os.path.dirname(path), ".backup.1234567.new"),
    ]
    for each in left:
        os.mkdir(each)
        shutil.copy(os.path.join(path, "data.mdb"), each)
    store.maintenance.collect_garbage(dry_run=True)
    assert [os.path.exists(each) for each in left] == [True, True]
    store.maintenance.collect_garbage()
    assert [os.path.exists(each) for each in left] == [False, False]


def test_an_empty_build_directory_in_a_store_is_removed(store: Store, path: str) -> None:
    """No other user makes one there; beside the store any user may have."""
    inside, beside = (os.path.join(place, ".store.1234567.new") for place in (path, os.path.dirname(path)))
    os.mkdir(inside)
    os.mkdir(beside)
    store.maintenance.collect_garbage()
    assert not os.path.exists(inside)
    assert os.path.exists(beside)
