"""Reads are recorded for all processes, and a cache that was emptied refuses older writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import Store, Transaction
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.session import Session
from storage.errors import WriteTooOld

Later = Callable[[Transaction], object]


@pytest.fixture
def table(store: Store) -> None:
    """A table with one row."""
    store.create_table("t")
    with store.transaction() as txn:
        store.table("t").put(b"k", b"v", txn=txn)


def test_a_write_below_a_read_is_refused(store: Store, table: None) -> None:
    """Of the key, or of a range over it; a key that was not read may be written."""
    old, older, reader = store.transaction(), store.transaction(), store.transaction()
    rows = store.table("t")
    assert rows.get(b"k", txn=reader) == b"v"
    assert [row.key for row in rows.scan(start=b"m", end=b"p", txn=reader)] == []
    rows.put(b"free", b"", txn=old)
    rows.put(b"k", b"", txn=old)
    with pytest.raises(WriteTooOld):
        old.commit()
    rows.put(b"n", b"", txn=older)
    with pytest.raises(WriteTooOld):
        older.commit()
    reader.commit()


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ({"start": b"c", "end": b"m"}, [b"c", b"e", b"l"], [b"b", b"m"]),
        ({"start": b"c", "end": b"m", "reverse": True}, [b"c", b"l"], [b"b", b"m"]),
        ({"prefix": b"k"}, [b"k", b"kz"], [b"j", b"l"]),
        ({"limit": 1}, [b"a", b"j", b"k"], [b"ka", b"z"]),
        ({"limit": 1, "reverse": True}, [b"k", b"z"], [b"j", b"a"]),
        ({}, [b"a", b"z"], []),
    ],
)
def test_a_write_into_a_range_that_was_read_is_refused(
    store: Store, table: None, bounds: dict[str, Any], inside: list[bytes], outside: list[bytes]
) -> None:
    """Each key of the range, present or not, up to the limit; keys beside the range may be written, and go on."""
    rows = store.table("t")
    older = {key: store.transaction() for key in inside + outside}
    reader = store.transaction()
    assert [row.key for row in rows.scan(txn=reader, **bounds)] == [b"k"]
    for key, txn in older.items():
        rows.put(key, b"new", txn=txn)
        if key in inside:
            with pytest.raises(WriteTooOld):
                txn.commit()
        else:
            txn.commit()
    assert [(row.key, row.value) for row in rows.scan(txn=reader, **bounds)] == [(b"k", b"v")]
    reader.commit()
    assert {row.key for row in rows.scan()} == {b"k", *outside}


def test_an_emptied_cache_refuses_every_older_write(store: Store, table: None, session: Session) -> None:
    """As after a crash of the server: the next write begins a generation behind a watermark."""
    old = store.transaction()
    assert old.timestamp > 0
    session.execute("TRUNCATE reads, read_keys, read_ranges, open_timestamps")
    store.table("t").put(b"k", b"", txn=old)
    with pytest.raises(WriteTooOld):
        old.commit()
    with store.transaction() as young:
        store.table("t").put(b"k", b"after", txn=young)
    assert store.table("t").get(b"k") == b"after"


def test_timestamps_grow_over_an_emptied_cache(store: Store, table: None, session: Session) -> None:
    """None is issued twice, though the last ones issued without a commit are forgotten."""
    issued = [store.transaction().timestamp for _ in range(3)]
    session.execute("TRUNCATE reads, read_keys, read_ranges, open_timestamps")
    issued += [store.transaction().timestamp for _ in range(3)]
    assert issued == sorted(set(issued))


def test_a_pass_that_records_a_read_is_counted(
    store: Store, table: None, environment: PostgresEnvironment
) -> None:
    """So that a batch made without the gate is refused behind it."""
    before = environment.read_tables.passes
    txn = store.transaction()
    assert store.table("t").get(b"k", txn=txn) == b"v"
    after = environment.read_tables.passes
    assert before is not None
    assert after == before + 2, "the timestamp and the read"
    txn.abort()
