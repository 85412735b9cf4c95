"""The changes of a table between two versions: every version that is kept, in the order of versions. Reads views only.

The index names versions and keys; values are where reads in the past find them: in the row, in the intent of a
committed transaction, or among the superseded versions. Of a change above the horizon the version before it is kept
too, as gc removes a version only below a newer one whose entry has been removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.actions import Action, Hint
from storage.disk.codec import corrupt
from storage.disk.schema import CHANGES, ROWS, VERSIONS
from storage.disk.view import ReadView
from storage.errors import RequestTooOld
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.table import change_index, row as rows
from storage.table.catalogue import TableEntry
from storage.table.read import state_of
from storage.table.visibility import ABORTED, COMMITTED, StateOf, Version
from storage.values.named_tuple import NamedTuple
from storage.values.timestamps import rfc3339
from storage.values.txn_id import TxnID

INSERT, UPDATE, DELETE = "insert", "update", "delete"
_NS_PER_MS = 1_000_000


class Change(NamedTuple):
    """A change of a key.

    Attributes:
        kind: `insert` where the key had no value before, `update`, or `delete`, of a key that may have had no value.
        value: the new value; None of a deletion.
        previous_value: the value before; None where there was none.
        version_ns: the version, the timestamp of the transaction.
    """

    kind: str
    key: bytes
    value: bytes | None
    previous_value: bytes | None
    version_ns: int
    version_at_ms: int
    txn_id: TxnID


class ChangeBound(NamedTuple):
    """A place among the changes of a table: those of the version from that key on, and of later versions."""

    version: int
    key: bytes = b""


def check_kept(view: ReadView, table: TableEntry, bound: ChangeBound) -> None:
    """Check that the changes from a place on are kept.

    Raises:
        RequestTooOld: some of them were removed; the error names the oldest version to start after.
    """
    oldest = change_index.horizon(view, table.table_id)
    if bound.version <= oldest:
        raise too_old(table.name, bound.version - 1, oldest)


def too_old(table: str, since: int, oldest: int) -> RequestTooOld:
    """The error of a start before the changes that are kept."""
    shown = rfc3339(oldest // _NS_PER_MS)
    return RequestTooOld(
        f"changes of table {table} after version {since} are not kept any more; "
        f"the oldest start is {oldest} ({shown})",
        hint=Hint(
            "Read the whole table at a version, then the changes after it. `{}` sets for how long changes are kept.",
            Action("store.admin.settings.set_table_retention"),
        ),
        table=table,
        oldestVersion=str(oldest),
    )


def page(
    view: ReadView, table: TableEntry, start: ChangeBound, until: int, limit: int
) -> tuple[list[Change], ChangeBound | None]:
    """Read some changes from a place on; return them and the place of the rest, None after the last.

    Raises:
        RequestTooOld: as `check_kept`.
        CorruptStore: an entry of the index has no version.
    """
    check_kept(view, table, start)
    look_up = state_of(view)
    changes: list[Change] = []
    size = 0
    entries = change_index.walk(view, table.table_id, start.version, start.key, until)
    for seen, entry in enumerate(entries):
        if len(changes) >= limit or seen >= PAGE_ENTRIES or size >= PAGE_BYTES:
            return changes, _place(entry)
        change = _change(view, entry, look_up)
        if change is not None:
            changes.append(change)
            size += len(change.value or b"") + len(change.previous_value or b"")
    return changes, None


def _place(entry: bytes) -> ChangeBound:
    return ChangeBound(change_index.version_in(entry), change_index.key_in(entry))


def _change(view: ReadView, entry: bytes, look_up: StateOf) -> Change | None:
    """The change of an entry; None of an intent of an aborted transaction."""
    table_id, number = int.from_bytes(entry[:8], "big"), change_index.version_in(entry)
    key, stored = change_index.key_in(entry), entry[:8] + change_index.key_in(entry)
    payload = view.get(ROWS, stored)
    row = None if payload is None else rows.decode(stored, payload)
    written: Version | None = None
    before: Version | None = None
    if row is not None and row.intent is not None and row.intent.version == number:
        state = look_up(row.intent.txn)
        if state == ABORTED:
            return None
        if state == COMMITTED:
            written, before = row.intent, row.committed
    elif row is not None and row.committed is not None and row.committed.version == number:
        written, before = row.committed, next(_superseded(view, table_id, key), None)
    else:
        older = _superseded(view, table_id, key, number)
        superseded = next(older, None)
        if superseded is not None and superseded.version == number:
            written, before = superseded, next(older, None)
    if written is None:
        raise corrupt(CHANGES, entry, "no committed version is stored under its key")
    return _described(key, written, before)


def _superseded(view: ReadView, table_id: int, key: bytes, version: int = (1 << 64) - 1) -> Iterator[Version]:
    """Yield the superseded versions of a key at or below a version, the newest first."""
    records = view.scan(VERSIONS, rows.old_prefix(table_id, key), rows.old_key(table_id, key, version))
    return (rows.decode_old(stored, payload) for stored, payload in records)


def _described(key: bytes, written: Version, before: Version | None) -> Change:
    previous = None if before is None else before.value
    kind = DELETE if written.value is None else INSERT if previous is None else UPDATE
    version = written.version
    return Change(kind, key, written.value, previous, version, version // _NS_PER_MS, TxnID(written.txn))


def places(
    view: ReadView, table: TableEntry, start: ChangeBound, until: int, limit: int
) -> list[ChangeBound]:
    """The places of at most `limit` changes from a place on, the changes of aborted intents included; no row is read.

    Raises:
        RequestTooOld: as `check_kept`.
    """
    check_kept(view, table, start)
    entries = change_index.walk(view, table.table_id, start.version, start.key, until)
    return [_place(entry) for entry in islice(entries, limit)]
