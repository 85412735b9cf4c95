"""Reading rows from one view: a key or a page, at a timestamp or as committed now.

A snapshot read that meets an intent in progress says so and stops: the caller pushes it and reads again. Nothing here
writes, records, or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from storage.disk.codec import key1
from storage.disk.schema import ROWS, VERSIONS
from storage.disk.view import ReadView
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.table import row as rows
from storage.table.key_range import KeyRange
from storage.table.visibility import Look, Row, StateOf, Version, latest, snapshot
from storage.txn import record as records
from storage.txn.options import CheckMode

Pick = Callable[[bytes, Row], Version | None]
"""The version of a row (by its key in the table) that is seen, a deletion included; None for none."""


class MustPush(Exception):
    """A snapshot read met an intent in progress: whose, and under which key."""

    def __init__(self, txn: int, table_id: int, key: bytes) -> None:
        super().__init__(f"an intent of transaction {txn} stands in the way")
        self.txn = txn
        self.table_id = table_id
        self.key = key


def state_of(view: ReadView) -> StateOf:
    """Looks up the record of a transaction in a view (K2's transaction record holder), each once."""
    known: dict[int, int] = {}

    def look_up(txn: int) -> int:
        code = known.get(txn)
        if code is None:
            code = known[txn] = records.state_code(view, txn)
        return code

    return look_up


def at_timestamp(view: ReadView, table_id: int, at: int, me: int, *, pushes: bool = True) -> Pick:
    """Picks what a reader at a timestamp sees.

    Args:
        me: its transaction; 0 if it has written no intents.
        pushes: whether an intent in progress is pushed; else it counts as nothing.

    Raises:
        MustPush: from the picking.
    """
    look_up = state_of(view)

    def pick(key: bytes, row: Row) -> Version | None:
        found = snapshot(row, at, me, look_up)
        if found is Look.PUSH:
            assert row.intent is not None, "only an intent is pushed"
            if pushes:
                raise MustPush(row.intent.txn, table_id, key)
            found = snapshot(Row(row.committed, None), at, me, look_up) if row.committed else None
        if found is Look.OLDER:
            return superseded(view, table_id, key, at)
        assert found is None or isinstance(found, Version), "a push and what is older were dealt with"
        return found

    return pick


def as_committed(view: ReadView, check: CheckMode, start: int) -> Pick:
    """Picks what a read-committed reader sees that began when `start` was the last timestamp issued."""
    look_up = state_of(view)
    return lambda _, row: latest(row, check, start, look_up)


def superseded(view: ReadView, table_id: int, key: bytes, at: int) -> Version | None:
    """The newest superseded version of a key at or below a timestamp."""
    found = view.first(VERSIONS, rows.old_prefix(table_id, key), rows.old_key(table_id, key, at))
    return None if found is None else rows.decode_old(*found)


def one(view: ReadView, table_id: int, key: bytes, pick: Pick) -> Version | None:
    """The version of one key that is seen, None if it is deleted or was never there."""
    stored = key1(table_id) + key
    payload = view.get(ROWS, stored)
    if payload is None:
        return None
    found = pick(key, rows.decode(stored, payload))
    return None if found is None or found.value is None else found


def page(
    view: ReadView, table_id: int, wanted: KeyRange, pick: Pick, limit: int
) -> tuple[list[tuple[bytes, Version]], KeyRange | None]:
    """Some rows of a range in its direction, with what is left of the range; None if it was read to its end."""
    found: list[tuple[bytes, Version]] = []
    seen = size = 0
    for key, payload in _walk(view, table_id, wanted):
        version = pick(key[8:], rows.decode(key, payload))
        seen, size = seen + 1, size + len(payload)
        if version is not None and version.value is not None:
            found.append((key[8:], version))
        if len(found) >= limit or seen >= PAGE_ENTRIES or size >= PAGE_BYTES:
            return found, wanted.after(key[8:])
    return found, None


def _walk(view: ReadView, table_id: int, wanted: KeyRange) -> Iterator[tuple[bytes, memoryview]]:
    prefix = key1(table_id)
    if wanted.is_empty:
        return
    if wanted.reverse:
        before = prefix + wanted.end if wanted.end is not None else key1(table_id + 1)
        low = prefix + wanted.start
        for key, payload in view.scan_back(ROWS, prefix, before):
            if key < low:
                return
            yield key, payload
        return
    for key, payload in view.scan(ROWS, prefix, prefix + wanted.start):
        if wanted.end is not None and key[8:] >= wanted.end:
            return
        yield key, payload
