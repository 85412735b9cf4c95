"""Reading rows from one view: a key or a page, at a timestamp or as committed now.

A snapshot read that meets an intent in progress raises MustPush: the transaction pushes the intent and reads again.
Nothing here writes, records, or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from storage.disk.codec import corrupt, key1
from storage.disk.schema import ROWS, VERSIONS
from storage.disk.view import ReadView
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.table import row as rows, state as states
from storage.table.key_range import KeyRange
from storage.table.visibility import Look, StateOf, StoredRow, Version, latest, snapshot
from storage.txn import record as records
from storage.txn.options import CheckMode

Pick = Callable[[bytes, StoredRow], Version | None]
"""Chooses the visible version of a row, given with its key in the table, a deletion included; None for none."""


class MustPush(Exception):
    """A snapshot read met an intent in progress: its transaction, and its key."""

    def __init__(self, txn: int, table_id: int, key: bytes) -> None:
        super().__init__(f"an intent of transaction {txn} stands in the way")
        self.txn = txn
        self.table_id = table_id
        self.key = key


def state_of(view: ReadView) -> StateOf:
    """Make a look-up of transaction states in a view (K2's transaction record holder), each read once."""
    known: dict[int, int] = {}

    def look_up(txn: int) -> int:
        code = known.get(txn)
        if code is None:
            code = known[txn] = records.state_code(view, txn)
        return code

    return look_up


def at_timestamp(view: ReadView, table_id: int, at: int, me: int) -> Pick:
    """Make the choice of a reader at a timestamp.

    Args:
        me: the reader's transaction; 0 if the reader has written no intents.

    Raises:
        MustPush: by the choice.
    """
    look_up = state_of(view)

    def pick(key: bytes, row: StoredRow) -> Version | None:
        version = snapshot(row, at, me, look_up)
        if version is Look.PUSH:
            assert row.intent is not None, "only an intent is pushed"
            raise MustPush(row.intent.txn, table_id, key)
        if version is Look.OLDER:
            return superseded(view, table_id, key, at)
        assert version is None or isinstance(version, Version), "a push and what is older were dealt with"
        return version

    return pick


def as_committed(view: ReadView, check: CheckMode, start: int) -> Pick:
    """Make the choice of a read-committed reader that began when `start` was the last timestamp issued."""
    look_up = state_of(view)
    return lambda _, row: latest(row, check, start, look_up)


def superseded(view: ReadView, table_id: int, key: bytes, at: int) -> Version | None:
    """The newest superseded version of a key at or below a timestamp."""
    record = view.first(VERSIONS, rows.old_prefix(table_id, key), rows.old_key(table_id, key, at))
    return None if record is None else rows.decode_old(*record)


def one(view: ReadView, table_id: int, key: bytes, pick: Pick) -> Version | None:
    """The visible version of one key, None if the key is deleted or was never written."""
    stored = key1(table_id) + key
    payload = view.get(ROWS, stored)
    if payload is None:
        return None
    version = pick(key, rows.decode(stored, payload))
    return None if version is None or version.value is None else version


def page(
    view: ReadView, table_id: int, key_range: KeyRange, pick: Pick, limit: int
) -> tuple[list[tuple[bytes, Version]], KeyRange | None]:
    """Read some rows of a range in its direction; return rows and the rest of the range, None after the last row.

    Raises:
        CorruptStore: a whole table, read in one state of the store, has fewer rows than it counts, or more.
    """
    visible: list[tuple[bytes, Version]] = []
    seen = size = 0
    for key, payload in _walk(view, table_id, key_range):
        version = pick(key[8:], rows.decode(key, payload))
        seen, size = seen + 1, size + len(payload)
        if version is not None and version.value is not None:
            visible.append((key[8:], version))
        if len(visible) >= limit or seen >= PAGE_ENTRIES or size >= PAGE_BYTES:
            rest = key_range.after(key[8:])
            rest.walked = _walked(view, key_range, seen)
            return visible, rest
    walked = _walked(view, key_range, seen)
    if walked is not None:
        _check_rows(view, table_id, walked[1])
    return visible, None


def _walked(view: ReadView, key_range: KeyRange, seen: int) -> tuple[int, int] | None:
    """Commit and number of the rows of a table walked up to the end of a page; None where this is not known."""
    commit, before = key_range.walked or (view.commit, 0)
    is_known = key_range.walked is not None or key_range.is_whole
    return (commit, before + seen) if is_known and commit == view.commit else None


def _check_rows(view: ReadView, table_id: int, rows_found: int) -> None:
    state = states.find(view, table_id)
    if state is not None and state.rows != rows_found:
        why = f"{rows_found} rows are found; the table has {state.rows}"
        raise corrupt(ROWS, key1(table_id), why)


def _walk(view: ReadView, table_id: int, key_range: KeyRange) -> Iterator[tuple[bytes, memoryview]]:
    prefix = key1(table_id)
    if key_range.is_empty:
        return
    if key_range.reverse:
        before = prefix + key_range.end if key_range.end is not None else key1(table_id + 1)
        low = prefix + key_range.start
        for key, payload in view.scan_back(ROWS, prefix, before):
            if key < low:
                return
            yield key, payload
        return
    for key, payload in view.scan(ROWS, prefix, prefix + key_range.start):
        if key_range.end is not None and key[8:] >= key_range.end:
            return
        yield key, payload
