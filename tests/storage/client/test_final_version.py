"""Final versions: `storage/client/final_version.py`; one version never has two answers."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store, Table, TransactionIsolation, TxnID
from storage.errors import InvalidValue, RequestTooOld, TransactionTimedOut
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.client.serializable_steps import Begin, put_and_commit

KEYS = 3000


def test_a_read_at_now_is_lowered_below_an_open_transaction(
    store: Store, table: Table, clock: ManualClock, begin: Begin
) -> None:
    """The writer began before the moment and commits after the read: the version read has one answer."""
    table.put(b"k", b"old")
    writer = begin()
    later = table.put(b"other", b"v")
    clock.advance(1)
    final = table.version_at(clock.wall_ns())
    assert final.version < later
    assert final.version == table.version_at(later).version == table.version_at().version
    assert (table.get(b"k", at=clock.wall_ns()), table.get(b"other", at=later)) == (b"old", None)
    put_and_commit(store, table, writer, b"k", b"new")
    for at in (final, final.version):
        assert (table.get(b"k", at=at), table.get(b"other", at=at)) == (b"old", None)
    assert (table.get(b"k", at=later), table.get(b"other", at=later)) == (b"new", b"v")


def test_the_pages_of_a_scan_show_all_of_a_transaction_or_nothing(store: Store, table: Table) -> None:
    """The writer commits between two pages."""
    table.import_rows((b"%05d" % n, b"old") for n in range(KEYS))
    writer = store.transaction()
    table.put(b"x", b"newer")
    rows = table.scan(at=table.put(b"y", b"newest"))
    values = [next(rows).value]
    for key in (b"00001", b"02999"):
        table.put(key, b"new", txn=writer)
    writer.commit()
    values += [row.value for row in rows]
    assert values == [b"old"] * KEYS


@pytest.mark.parametrize("end", ["commit", "abort", "forget", "record", "deadline"])
def test_a_transaction_without_a_record_is_waited_for_until_it_cannot_write(
    store: Store, table: Table, clock: ManualClock, end: str
) -> None:
    """Its end needs no record either; a record takes over; a forgotten transaction is collected, or times out."""
    version = table.put(b"k", b"v")
    reader = store.transaction(timeout=5)
    later = table.put(b"k", b"w")
    waits = table.version_at(later)
    assert (waits.version, waits.waits_for) == (reader.timestamp - 1, 0)
    assert version <= waits.version
    if end == "commit":
        reader.commit()
    elif end == "abort":
        reader.abort()
    elif end == "forget":
        del reader
        gc.collect()
    elif end == "record":
        assert reader.id == table.version_at(later).waits_for
        assert table.version_at(later).version == waits.version
        reader.commit()
    else:
        clock.advance(6)
        with pytest.raises(TransactionTimedOut):
            table.put(b"k", b"late", txn=reader)
    assert table.version_at(later)[::2] == (later, None)


def test_a_deadline_that_nobody_has_recorded_is_waited_for(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """After a reboot the rest of a deadline remains; the abort of the next writer settles the matter."""
    overdue = store.begin_transaction(timeout=1)
    later = table.put(b"k", b"v")
    clock.advance(2)
    assert table.version_at(later).waits_for == overdue
    table.put(b"k", b"w")
    assert table.version_at(later)[::2] == (later, None)


def test_readers_and_decided_transactions_are_not_waited_for(store: Store, table: Table) -> None:
    """A read-committed transaction writes nothing."""
    readers = [
        store.begin_transaction(isolation=TransactionIsolation.READ_COMMITTED),
        store.transaction(isolation=TransactionIsolation.READ_COMMITTED),
    ]
    store.commit_transaction(store.begin_transaction())
    later = table.put(b"k", b"v")
    assert table.version_at(later)[::2] == (later, None)
    assert len(readers) == 2


def test_the_newest_version_is_final_also_when_the_clock_is_set_back(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """A version between the last one and the clock could still be issued, so that none of those is answered at."""
    version = table.put(b"k", b"v")
    clock.advance(100)
    before = clock.wall_ns()
    final = table.version_at(before)
    assert version <= final.version < before - 99 * 1_000_000_000
    clock.wall_now_ns -= 50 * 1_000_000_000
    newer = table.put(b"k", b"w")
    assert final.version < newer < before
    assert table.get(b"k", at=final) == table.get(b"k", at=version) == b"v"


def test_after_loss_of_the_read_cache_the_newest_version_is_ahead_of_the_clock(
    store: Store, table: Table, path: str, clock: ManualClock
) -> None:
    """Acknowledged commits are read by the newest version, and by their own."""
    table.put(b"k", b"old")
    os.unlink(Path(path) / "reads.cache")
    version = table.put(b"k", b"new")
    assert version > clock.wall_ns()
    assert table.get(b"k", at=table.version_at()) == table.get(b"k", at=version) == b"new"
    assert table.version_at().version >= version


def test_open_transactions_are_waited_for_without_a_read_cache(store: Store, table: Table, path: str) -> None:
    """The locks of open transactions are not in the lost file."""
    table.put(b"k", b"v")
    reader = store.transaction()
    later = table.put(b"k", b"w")
    os.unlink(Path(path) / "reads.cache")
    assert table.version_at(later).version == reader.timestamp - 1


def test_a_store_without_writes_for_longer_than_the_retention_is_read_at_now(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """What the last version holds is kept: nothing has superseded it."""
    version = table.put(b"k", b"v")
    clock.advance(2 * 3600)
    final = table.version_at(clock.wall_ns())
    assert version <= final.version < version + 1000
    table.put(b"k", b"w")
    store.maintenance.collect_garbage()
    assert table.get(b"k", at=final) == b"v"
    with pytest.raises(RequestTooOld):
        table.get(b"k", at=version)


def test_a_transaction_older_than_the_retention_is_named(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """There is no version that is both final and kept."""
    old = store.begin_transaction(timeout=86_000)
    clock.advance(2 * 3600)
    with pytest.raises(RequestTooOld, match=f"transaction {old} can still write"):
        table.get(b"k", at=table.put(b"k", b"v"))


def test_a_version_is_checked(table: Table, clock: ManualClock) -> None:
    """A whole number, and not in the future; a final version goes to other processes."""
    for at in (0, -1, 1.5, clock.wall_ns() + 1_000_000):
        with pytest.raises(InvalidValue):
            table.version_at(at)  # type: ignore[arg-type]
    final = table.version_at()
    assert pickle.loads(pickle.dumps(final)) == final


def test_intents_that_are_not_finalised_are_read_at_their_version(
    store: Store, table: Table, write_many: Callable[[TxnID, dict[bytes, bytes]], None], unfinalized: TxnID
) -> None:
    """An intent of a committed transaction counts, an intent of an open one lies above every final version."""
    writer = store.begin_transaction()
    write_many(writer, {b"k2": b"newest"})
    later = table.put(b"z", b"v")
    assert row_json(table.stats())["intents"] > 65
    assert [row.value for row in table.scan(prefix=b"k", at=later)] == [b"new"]
    store.commit_transaction(writer)
    assert [row.value for row in table.scan(prefix=b"k", at=later)] == [b"new", b"newest"]
