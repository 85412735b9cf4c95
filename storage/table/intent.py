"""Intents: place, finalise and remove write intents, supersede versions, keep the counters.

Invariants: 18, at most one intent per key, newer than the key's committed versions; 23, counters equal a recount. A
decision changes the transaction's record only. A few intents are finalised in the same batch, many by later writers
that meet them, and by gc.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.disk.codec import corrupt, key1, key2, pack, part_key, unpack
from storage.disk.schema import PART_TABLE, ROWS, TXN_KEYS, TXN_PARTS, VERSIONS
from storage.disk.shared_state import ReadPlace
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError
from storage.limits import FINALIZE_INLINE_MAX, WRITE_BYTES_TARGET
from storage.table import catalogue as tables, change_index, row as rows
from storage.table.catalogue import TableEntry
from storage.table.state import TableState
from storage.table.visibility import StoredRow, Version
from storage.txn.participant import TableEffect, TableWorkDone
from storage.values.txn_id import TxnID

_NOWHERE = StoredRow(None, None)


class RowWriter:
    """The rows of one table within one batch.

    Attributes:
        state: the counters of the table; None of a deleted table.
    """

    __slots__ = ("_batch", "_prefix", "state", "table_id")

    def __init__(self, batch: WriteBatch, table: TableEntry) -> None:
        self._batch = batch
        self._prefix = table.prefix
        self.state = None if table.state is None else batch.open(*table.state, TableState.decode)
        self.table_id = table.table_id

    def load_all(self, places: Sequence[ReadPlace]) -> list[StoredRow]:
        """The rows under the keys of places in this table, as `load`."""
        prefix = self._prefix
        stored_keys: list[bytes] = []
        for place in places:
            stored_keys += (prefix + place.key,)
        loaded: list[StoredRow] = []
        for key, data in zip(stored_keys, self._batch.fetch(ROWS, stored_keys), strict=True):
            loaded += (_NOWHERE if data is None else rows.decode_stored(key, data),)
        return loaded

    def load(self, key: bytes) -> StoredRow:
        """The row under a key; both parts None if there is none."""
        stored = self._prefix + key
        payload = self._batch.get(ROWS, stored)
        return _NOWHERE if payload is None else rows.decode(stored, payload)

    def _store(self, key: bytes, before: StoredRow, after: StoredRow) -> None:
        """Replace a row, and count the difference."""
        stored = self._prefix + key
        version, superseded, state = after.committed, before.committed, self.state
        is_there = version is not None or after.intent is not None
        if is_there:
            self._batch.put(ROWS, stored, rows.encode(after))
        else:
            self._batch.delete(ROWS, stored)
        if state is not None:
            is_value = version is not None and version.value is not None
            state.keys += is_value - (superseded is not None and superseded.value is not None)
            state.rows += is_there - (superseded is not None or before.intent is not None)
            state.intents += (after.intent is not None) - (before.intent is not None)

    def _supersede(self, key: bytes, version: Version | None) -> None:
        if version is not None:
            stored = rows.old_key(self.table_id, key, version.version)
            self._batch.put(VERSIONS, stored, rows.encode_old(version))
            if self.state is not None:
                self.state.versions += 1

    def _forget_intent(self, key: bytes, txn: int) -> None:
        self._batch.delete(TXN_KEYS, key2(txn, self.table_id) + key)

    def finalize(self, key: bytes, row: StoredRow, committed: bool) -> StoredRow:
        """Make the intent of a decided transaction a version, or remove the intent; return the new row."""
        intent = row.intent
        assert intent is not None, "there is an intent to finalise"
        self._forget_intent(key, intent.txn)
        if committed:
            self._supersede(key, row.committed)
            after = StoredRow(intent, None)
        else:
            change_index.forget(self._batch, self.table_id, intent.version, key)
            after = StoredRow(row.committed, None)
        self._store(key, row, after)
        return after

    def place(self, key: bytes, row: StoredRow, written: Version) -> bool:
        """Leave a write intent; whether the transaction had none under this key before."""
        is_new = row.intent is None
        assert is_new or row.intent.txn == written.txn, "at most one intent a key"  # type: ignore[union-attr]
        if is_new:
            self._batch.put(TXN_KEYS, key2(written.txn, self.table_id) + key, b"")
            change_index.note(self._batch, self.table_id, written.version, key)
        self._store(key, row, StoredRow(row.committed, written))
        return is_new

    def write(self, writes: Sequence[tuple[bytes, StoredRow, bytes | None]], version: int, txn: int) -> None:
        """Write committed versions, of a transaction that is decided in this batch.

        Args:
            writes: keys, each with its row and the new value, None to delete the key.
            version, txn: of the transaction.
        """
        prefix, keys, rows_new, intents, versions = self._prefix, 0, 0, 0, 0
        changed: list[bytes] = []
        superseded: list[tuple[bytes, Version]] = []
        for key, row, value in writes:
            before = row.committed
            if row.intent is None:
                changed += (key,)
                rows_new += before is None
            else:
                assert row.intent.txn == txn, "a foreign intent was resolved before"
                self._forget_intent(key, txn)
                intents += 1
            if before is not None:
                superseded += ((key, before),)
                keys -= before.value is not None
                versions += 1
            keys += value is not None
        batch, state = self._batch, self.state
        if changed:
            change_index.note_all(batch, self.table_id, version, changed)
        if superseded:
            batch.put_all(VERSIONS, rows.old_records(prefix, superseded))
        batch.put_all(ROWS, rows.committed_records(prefix, writes, version, txn))
        if state is not None:
            state.keys += keys
            state.rows += rows_new
            state.intents -= intents
            state.versions += versions

    def note_removed(self, *, versions: int = 0, rows: int = 0) -> None:
        """Count superseded versions, and rows of deleted keys, that gc has removed."""
        if self.state is not None:
            self.state.versions -= versions
            self.state.rows -= rows


def count_of(view: ReadView, txn: int, table_id: int) -> int:
    """Count the keys of a table for which a transaction has written intents."""
    payload = view.get(TXN_PARTS, part_key(txn, PART_TABLE, table_id))
    return 0 if payload is None else int(unpack(payload, 1)[0])


def save_count(batch: WriteBatch, txn: int, table_id: int, count: int) -> None:
    """Write the number of keys of a table for which a transaction has written intents."""
    batch.put(TXN_PARTS, part_key(txn, PART_TABLE, table_id), pack([count, []]))


def keys_of(view: ReadView, txn: int, table_id: int, limit: int) -> list[bytes]:
    """The first keys of a table with an intent of a transaction, at most `limit`."""
    keys: list[bytes] = []
    for key in view.keys(TXN_KEYS, key2(txn, table_id)):
        if len(keys) == limit:
            break
        keys.append(key[16:])
    return keys


def finalize_keys(batch: WriteBatch, txn: int, table_id: int, committed: bool, keys: Sequence[bytes]) -> int:
    """Finalise the intents of a decided transaction under keys of a table, as far as a batch goes; return the number.

    Values may be long: the bytes of a batch are bounded as well as the number of keys.
    """
    writer, done = RowWriter(batch, tables.by_number(table_id)), 0
    for key in keys:
        if batch.bytes >= WRITE_BYTES_TARGET:
            break
        row = writer.load(key)
        if row.intent is None or row.intent.txn != txn:
            raise corrupt(
                ROWS, key1(table_id) + key, f"it has no intent of transaction {TxnID(txn)}, which names it"
            )
        writer.finalize(key, row, committed)
        done += 1
    return done


KEYS_SHOWN_MAX = 100
"""Keys of a transaction that reports show."""


class TableIntents:
    """A table as a participant of the coordinator."""

    kind = PART_TABLE

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:  # noqa: ARG002
        """The writer of an intent has checked all conflicts; a later loser is aborted at that conflict."""
        return None

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> TableEffect:
        """Finalise the intents if they are few. Readers resolve the rest by the transaction's record."""
        count = int(unpack(part, 1)[0])
        is_few = count <= FINALIZE_INLINE_MAX
        if is_few:
            # Reports show the written keys as long as the outcome is kept, when the intents are gone.
            firsts = keys_of(batch, txn, object_id, KEYS_SHOWN_MAX) if committed else []
            batch.put(TXN_PARTS, part_key(txn, PART_TABLE, object_id), pack([count, firsts]))
            keys = keys_of(batch, txn, object_id, FINALIZE_INLINE_MAX)
            is_few = finalize_keys(batch, txn, object_id, committed, keys) == len(keys)
        return TableEffect(object_id, count, is_few)

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TableWorkDone:
        """Table, number of keys, and the keys that are not finalised."""
        left, fields = keys_of(view, txn, object_id, KEYS_SHOWN_MAX), unpack(part, 2)
        return TableWorkDone(
            object_id, int(fields[0]), left or [bytes(key) for key in fields[1]], finalized=not left
        )
