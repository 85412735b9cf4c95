"""A range that was read stays as it was read, whatever its bounds: nothing comes into it, changes in it, or goes.

Each example is drawn: keys that are there, a range with prefix, start, end, direction and limit, and a key that an
older transaction then writes. It is refused inside the part of the range that was read, and passes outside that part.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given, strategies as st

from storage import Store, Table
from storage.errors import InvalidValue, LostConflict, WriteTooOld
from storage.limits import PAGE_ENTRIES
from storage.process.clock import ManualClock
from tests.processes.memory import directory_in_memory

BYTES = st.binary(max_size=3) | st.lists(st.sampled_from([b"\0", b"a", b"b", b"\xff"]), max_size=3).map(
    b"".join
)
KEYS = BYTES.filter(bool)
NUMBERS = itertools.count(1)


class Bounds:
    """What a scan is asked for."""

    def __init__(
        self, prefix: bytes, start: bytes | None, end: bytes | None, reverse: bool, limit: int | None
    ) -> None:
        self.prefix, self.start, self.end, self.reverse, self.limit = prefix, start, end, reverse, limit

    def __repr__(self) -> str:
        return f"Bounds({self.prefix!r}, {self.start!r}, {self.end!r}, {self.reverse}, {self.limit})"

    def has(self, key: bytes) -> bool:
        """Said without any arithmetic of keys."""
        is_after = self.start is None or key >= self.start
        return key.startswith(self.prefix) and is_after and (self.end is None or key < self.end)

    def of(self, keys: set[bytes]) -> list[bytes]:
        """The rows that it must return."""
        return sorted(filter(self.has, keys), reverse=self.reverse)[: self.limit]

    def has_read(self, key: bytes, rows: list[bytes]) -> bool:
        """Whether a key lies in the part that a limit let it read."""
        if not self.has(key) or self.limit is None or len(rows) < self.limit:
            return self.has(key)
        if not rows:
            return False
        return key >= rows[-1] if self.reverse else key <= rows[-1]


BOUNDS = st.builds(
    Bounds, BYTES, st.none() | BYTES, st.none() | BYTES, st.booleans(), st.sampled_from([None, None, 0, 1, 2])
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A store for all examples, in memory: each has a table of its own."""
    clock = ManualClock()
    with directory_in_memory() as directory:
        Store.create(f"{directory}/store", clock=clock)
        with Store.open(f"{directory}/store", clock=clock) as opened:
            yield opened
            assert opened.maintenance.verify_store(full=True) == []


@given(st.sets(KEYS, max_size=6), BOUNDS, KEYS, st.booleans(), st.booleans())
@example({b"\xff"}, Bounds(b"\xff", None, None, False, None), b"\xff\xff", False, False)
@example({b"a\xff"}, Bounds(b"a\xff", None, None, True, None), b"b", False, True)
@example(set(), Bounds(b"", None, None, True, None), b"\xff\xff\xff", True, False)
@example({b"a", b"b"}, Bounds(b"", b"b", b"a", False, None), b"a", False, False)
def test_an_older_writer_is_refused_in_what_was_read_and_passes_outside(
    store: Store, keys: set[bytes], bounds: Bounds, key: bytes, is_attached: bool, deletes: bool
) -> None:
    """By prefix and by bounds, in both directions, with limits."""
    table = a_table(store, keys)
    writer = store.transaction() if is_attached else store.begin_transaction()
    reader = store.begin_transaction()
    rows = scan(table, bounds, reader)
    assert rows == bounds.of(keys)
    is_refused = False
    try:
        if deletes:
            table.delete(key, txn=writer)
        else:
            table.put(key, b"phantom", txn=writer)
        store.commit_transaction(writer)
    except WriteTooOld:
        is_refused = True
    assert is_refused == bounds.has_read(key, rows)
    assert scan(table, bounds, reader) == rows
    store.commit_transaction(reader)


@given(st.sets(KEYS, max_size=6), BOUNDS, KEYS, st.booleans())
def test_a_newer_writer_passes_and_is_not_seen(
    store: Store, keys: set[bytes], bounds: Bounds, key: bytes, deletes: bool
) -> None:
    """The range that was read does not change for its reader: it comes before the writer."""
    table = a_table(store, keys)
    reader, writer = store.begin_transaction(), store.begin_transaction()
    rows = scan(table, bounds, reader)
    if deletes:
        table.delete(key, txn=writer)
    else:
        table.put(key, b"later", txn=writer)
    assert scan(table, bounds, reader) == rows
    store.commit_transaction(writer)
    assert scan(table, bounds, reader) == rows
    store.commit_transaction(reader)
    after = keys - {key} if deletes else keys | {key}
    assert [row.key for row in scan_rows(table, bounds)] == bounds.of(after)


@given(st.sets(KEYS, max_size=6), BOUNDS, st.dictionaries(KEYS, st.booleans(), max_size=4), st.booleans())
def test_own_writes_are_in_the_range_as_the_others_are(
    store: Store, keys: set[bytes], bounds: Bounds, own: dict[bytes, bool], is_attached: bool
) -> None:
    """Puts and deletions of the reader itself, buffered or as intents, with every bound, direction and limit."""
    table = a_table(store, keys)
    txn = store.transaction() if is_attached else store.begin_transaction()
    for key, deletes in own.items():
        if deletes:
            table.delete(key, txn=txn)
        else:
            table.put(key, b"own", txn=txn)
    seen = (keys - {key for key, deletes in own.items() if deletes}) | {k for k, d in own.items() if not d}
    assert scan(table, bounds, txn) == bounds.of(seen)
    assert [row.key for row in scan_rows(table, bounds)] == bounds.of(keys)
    store.commit_transaction(txn)
    assert [row.key for row in scan_rows(table, bounds)] == bounds.of(seen)


def a_table(store: Store, keys: set[bytes]) -> Table:
    """A fresh table with these keys."""
    name = f"t{next(NUMBERS)}"
    store.create_table(name)
    table = store.table(name)
    table.import_rows((key, b"v") for key in keys)
    return table


def scan(table: Table, bounds: Bounds, txn: object) -> list[bytes]:
    return [row.key for row in scan_rows(table, bounds, txn)]


def scan_rows(table: Table, bounds: Bounds, txn: object = None) -> list:  # type: ignore[type-arg]
    return list(
        table.scan(
            prefix=bounds.prefix, start=bounds.start, end=bounds.end, reverse=bounds.reverse, limit=bounds.limit,
            txn=txn,  # type: ignore[arg-type]
        )
    )  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "limit", [PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 2 * PAGE_ENTRIES + 5, 9000]
)
def test_the_bound_of_a_limited_scan_over_several_pages(store: Store, limit: int, reverse: bool) -> None:
    """Up to the last row nothing passes, just beyond it everything does; read to the end, the whole range is kept."""
    count = 2 * PAGE_ENTRIES + 100
    table = a_table(store, {b"%05d" % (2 * number) for number in range(count)})
    inside, beyond, reader = store.begin_transaction(), store.begin_transaction(), store.begin_transaction()
    rows = list(table.scan(start=b"00000", end=b"99999", limit=limit, reverse=reverse, txn=reader))
    assert len(rows) == min(limit, count)
    last = int(rows[-1].key)
    within, after = (last + 1, last - 1) if reverse else (last - 1, last + 1)
    with pytest.raises(WriteTooOld):
        table.put(b"%05d" % within, b"phantom", txn=inside)
    if limit < count:
        table.put(b"%05d" % after, b"later", txn=beyond)
        store.commit_transaction(beyond)
    else:
        with pytest.raises(WriteTooOld):
            table.put(b"99998" if reverse else b"90000", b"phantom", txn=beyond)
    store.commit_transaction(reader)


def test_reading_on_with_limits_protects_each_part(store: Store) -> None:
    """A queue that is read from its head: whoever appends is not in the way, whoever inserts before is."""
    table = a_table(store, {b"q1", b"q2", b"q3"})
    appends, inserts, reader = store.begin_transaction(), store.begin_transaction(), store.begin_transaction()
    assert [row.key for row in table.scan(prefix=b"q", limit=1, txn=reader)] == [b"q1"]
    assert [row.key for row in table.scan(prefix=b"q", start=b"q1\0", limit=1, txn=reader)] == [b"q2"]
    table.put(b"q4", b"v", txn=appends)
    store.commit_transaction(appends)
    with pytest.raises(WriteTooOld):
        table.put(b"q11", b"v", txn=inserts)
    store.commit_transaction(reader)


def test_a_limited_scan_meets_no_intent_beyond_its_bound(store: Store) -> None:
    """Whoever writes there is not pushed; one within the bound is, and the older of the two is aborted."""
    table = a_table(store, {b"a", b"b", b"c"})
    beyond, within, reader = store.begin_transaction(), store.begin_transaction(), store.begin_transaction()
    table.put(b"c", b"new", txn=beyond)
    table.put(b"b", b"new", txn=within)
    assert [row.value for row in table.scan(limit=2, txn=reader)] == [b"v", b"v"]
    store.commit_transaction(beyond)
    with pytest.raises(LostConflict):
        store.commit_transaction(within)
    store.commit_transaction(reader)


@pytest.mark.parametrize("is_prefix", [True, False])
def test_bounds_longer_than_any_key_protect_what_they_say(store: Store, is_prefix: bool) -> None:
    """They may be refused, with an error of ours; if they are taken, no phantom passes, also after other ranges."""
    table = a_table(store, {b"a" * 399})
    long, longer = b"a" * 1000, b"b" * 1000
    writer, reader = store.begin_transaction(), store.begin_transaction()
    try:
        if is_prefix:
            assert list(table.scan(prefix=long, txn=reader)) == []
        else:
            assert list(table.scan(start=long, end=longer, txn=reader)) == []
    except InvalidValue:
        return
    for number in range(3):
        list(table.scan(prefix=b"other%d" % number, txn=reader))
    inside = b"b" * 400
    if is_prefix:
        table.put(inside, b"", txn=writer)
    else:
        with pytest.raises(WriteTooOld):
            table.put(inside, b"phantom", txn=writer)


@pytest.mark.parametrize("length", [400, 401, 1000, 70_000])
def test_bounds_of_any_length_are_taken_or_refused_cleanly(store: Store, length: int) -> None:
    """In every kind of read; a bound is no reason for a traceback, and nothing of other ranges is lost."""
    table = a_table(store, {b"k"})
    for options in (
        {"prefix": b"x" * length},
        {"start": b"x" * length},
        {"start": b"a", "end": b"x" * length},
    ):
        for txn in (None, store.begin_transaction(), store.begin_transaction(isolation="read-committed")):
            try:
                rows = [row.key for row in table.scan(**options, txn=txn)]  # type: ignore[arg-type]
            except InvalidValue:
                continue
            assert rows == ([b"k"] if "end" in options else [])
