"""Reading rows from one view: a key or a page, at a timestamp or as committed now.

A snapshot read that meets an intent in progress raises MustPush: the transaction pushes the intent and reads again.
Nothing here writes, records, or waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from struct import error as struct_error
from zlib import crc32

from storage.disk.codec import U64_MAX, corrupt, key1, unseal
from storage.disk.schema import ROWS, VERSIONS
from storage.disk.view import ReadView
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.table import row as rows, state as states
from storage.table.catalogue import TableEntry
from storage.table.key_range import KeyRange
from storage.table.visibility import Look, Row, StateOf, StoredRow, Version, latest, snapshot
from storage.txn import record as records
from storage.txn.options import CheckMode

_ALWAYS = U64_MAX
"""Later than every version."""


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


class Pick(ABC):
    """The version of a row that a reader of one view sees.

    Attributes:
        until: a row without an intent is seen as it is up to this version; any other row is for `pick`.
        passed: heads of intents (`row.intent_head`) that the reader passes over: their rows are as rows without one.
    """

    __slots__ = ("_known", "_view", "passed", "until")

    def __init__(self, view: ReadView, until: int) -> None:
        self._view = view
        self._known: StateOf | None = None
        self.until = until
        self.passed: set[bytes] = set()

    @abstractmethod
    def pick(self, key: bytes, row: StoredRow) -> Version | None:
        """Choose the visible version of a row, given with its key in the table, a deletion included; None for none.

        Raises:
            MustPush
        """

    def _state_of(self, txn: int) -> int:
        if self._known is None:
            self._known = state_of(self._view)
        return self._known(txn)


class AtTimestamp(Pick):
    """The choice of a reader at a timestamp.

    Args:
        me: the reader's transaction; 0 if the reader has written no intents.
    """

    __slots__ = ("_me", "_table_id")

    def __init__(self, view: ReadView, table_id: int, at: int, me: int) -> None:
        super().__init__(view, at)
        self._table_id = table_id
        self._me = me

    def pick(self, key: bytes, row: StoredRow) -> Version | None:
        version = snapshot(row, self.until, self._me, self._state_of)
        if version is Look.PUSH:
            assert row.intent is not None, "only an intent is pushed"
            raise MustPush(row.intent.txn, self._table_id, key)
        if version is Look.OLDER:
            return superseded(self._view, self._table_id, key, self.until)
        assert version is None or isinstance(version, Version), "a push and what is older were dealt with"
        return version


class AsCommitted(Pick):
    """The choice of a read-committed reader that began when `start` was the last timestamp issued."""

    __slots__ = ("_check", "_start")

    def __init__(self, view: ReadView, check: CheckMode, start: int) -> None:
        super().__init__(view, _ALWAYS)
        self._check = check
        self._start = start

    def pick(self, key: bytes, row: StoredRow) -> Version | None:  # noqa: ARG002  the key is for a push
        return latest(row, self._check, self._start, self._state_of)


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
    plain = rows.plain_version(payload, pick.until)
    version = pick.pick(key, rows.decode(stored, payload)) if plain is None else plain
    return None if version is None or version.value is None else version


def at_timestamp(view: ReadView, table: TableEntry, key: bytes, at: int, me: int) -> Version | None:
    """The version of one key that a reader at a timestamp sees, None if the key is deleted or was never written.

    Args:
        me: the reader's transaction; 0 if the reader has written no intents.

    Raises:
        MustPush
    """
    stored = table.prefix + key
    data = view.fetch(ROWS, (stored,))[0]
    if data is None:
        return None
    row = rows.decode_stored(stored, data)
    version = row.committed
    if row.intent is not None or version is None or version.version > at:
        version = AtTimestamp(view, table.table_id, at, me).pick(key, row)
    return None if version is None or version.value is None else version


def page(
    view: ReadView, table_id: int, key_range: KeyRange, pick: Pick, limit: int
) -> tuple[list[Row], KeyRange | None]:
    """Read some rows of a range in its direction; return rows and the rest of the range, None after the last.

    Raises:
        CorruptStore: a whole table, read in one state of the store, has fewer rows than it counts, or more.
    """
    visible, last, seen = _walk(view, table_id, key_range, pick, limit)
    walked = _walked(view, key_range, seen)
    if last is not None:
        rest = key_range.after(last)
        rest.walked = walked
        return visible, rest
    if walked is not None:
        _check_rows(view, table_id, walked[1])
    return visible, None


def _walk(
    view: ReadView, table_id: int, key_range: KeyRange, pick: Pick, limit: int
) -> tuple[list[Row], bytes | None, int]:
    """The visible rows of a page, the key that ends the page (None: the range is walked to its end), all rows seen.

    Most rows have one finalised value and nothing else. They are checked and decoded in the loop, as `unseal` and
    `decode` do, because a call for each of these steps would cost most of a scan.
    """
    visible: list[Row] = []
    seen = size = 0
    prefix, until, seed, new_tuple = key1(table_id), pick.until, ROWS.seed, tuple.__new__
    unpack, value_at, plain, one_value = rows.STORED.unpack_from, rows.STORED.size, rows.PLAIN, rows.ONE_VALUE
    start = prefix + key_range.start
    end = key1(table_id + 1) if key_range.end is None else prefix + key_range.end
    reverse, looks_at, bytes_max, add = (
        key_range.reverse,
        min(limit, PAGE_ENTRIES),
        PAGE_BYTES,
        visible.append,
    )
    key = b""
    try:
        for key, data in view.stored(ROWS, end if reverse else start, reverse=reverse):
            if key >= end or key < start:
                break
            seen += 1
            flags = data[4:5]
            if flags == plain:
                checksum, version, txn, length = unpack(data)
                if checksum != crc32(key + data[4:], seed):
                    raise corrupt(ROWS, key, "the checksum does not agree")
                size += length
                if version <= until:
                    add(new_tuple(Row, (key[8:], data[value_at:], version, txn)))
                else:
                    visible += _picked(pick, key, data)
            else:
                size += len(data)
                visible += _beside_intent(pick, key, data) if flags in one_value else _picked(pick, key, data)
            if (seen >= looks_at or size >= bytes_max) and (
                len(visible) >= limit or seen >= PAGE_ENTRIES or size >= bytes_max
            ):
                return visible, key[8:], seen
    except struct_error as problem:
        raise corrupt(ROWS, key, f"it cannot be decoded: {problem}") from None
    return visible, None, seen


def _beside_intent(pick: Pick, key: bytes, data: bytes) -> list[Row]:
    """As `_picked`, of a row with a finalised value and an intent, which the reader often passes over."""
    checksum, version, txn, length = rows.STORED.unpack_from(data)
    if checksum != crc32(key + data[4:], ROWS.seed):
        raise corrupt(ROWS, key, "the checksum does not agree")
    intent_at = rows.STORED.size + length
    if version <= pick.until and data[intent_at : intent_at + 16] in pick.passed:
        return [Row(key[8:], data[rows.STORED.size : intent_at], version, txn)]
    return _picked(pick, key, data)


def _picked(pick: Pick, key: bytes, data: bytes) -> list[Row]:
    """The row that the reader sees of a stored row whose newest version is not simply seen; none or one."""
    row = rows.decode(key, unseal(ROWS, key, data))
    version = pick.pick(key[8:], row)
    if row.intent is not None and version is row.committed:
        pick.passed.add(rows.intent_head(row.intent))
    if version is None or version.value is None:
        return []
    return [Row(key[8:], version.value, version.version, version.txn)]


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
