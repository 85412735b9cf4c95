"""Writing rows: intents placed, finalised and removed, versions superseded, counters kept.

Invariants: 18, at most one intent a key, newer than its committed versions; 23, counters equal a recount. A decision
flips the transaction's record only. Its intents are finalised with it where they are few, else by whoever meets them
while writing, and by gc.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.disk.codec import key1, key2, pack, part_key, unpack
from storage.disk.schema import PART_TABLE, ROWS, TXN_KEYS, TXN_PARTS, VERSIONS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError
from storage.limits import FINALIZE_INLINE_MAX, WRITE_BYTES_TARGET
from storage.table import row as rows, state
from storage.table.visibility import Row, Version
from storage.txn.participant import TableEffect, TableWorkDone

_NOWHERE = Row(None, None)


class RowWriter:
    """The rows of one table within one batch. `finish` writes the counters; a deleted table has none."""

    __slots__ = ("_batch", "_changed", "_head", "_prefix", "table_id")

    def __init__(self, batch: WriteBatch, table_id: int) -> None:
        self._batch = batch
        self._prefix = key1(table_id)
        self._head = state.find(batch, table_id)
        self._changed = False
        self.table_id = table_id

    @property
    def exists(self) -> bool:
        return self._head is not None

    def load(self, key: bytes) -> Row:
        """What stands under a key; both parts None if nothing does."""
        stored = self._prefix + key
        payload = self._batch.get(ROWS, stored)
        return _NOWHERE if payload is None else rows.decode(stored, payload)

    def _store(self, key: bytes, before: Row, after: Row) -> None:
        """Write a row in place of another, and count what that changes."""
        stored = self._prefix + key
        if after.committed is None and after.intent is None:
            self._batch.delete(ROWS, stored)
        else:
            self._batch.put(ROWS, stored, rows.encode(after))
        head = self._head
        if head is None:
            return
        keys = _is_value(after) - _is_value(before)
        records = _is_there(after) - _is_there(before)
        intents = (after.intent is not None) - (before.intent is not None)
        if keys or records or intents:
            head.keys += keys
            head.rows += records
            head.intents += intents
            self._changed = True

    def _supersede(self, key: bytes, version: Version | None) -> None:
        if version is not None:
            stored = rows.old_key(self.table_id, key, version.version)
            self._batch.put(VERSIONS, stored, rows.encode_old(version))
            if self._head is not None:
                self._head.versions += 1
                self._changed = True

    def _forget_intent(self, key: bytes, txn: int) -> None:
        self._batch.delete(TXN_KEYS, key2(txn, self.table_id) + key)

    def finalize(self, key: bytes, row: Row, committed: bool) -> Row:
        """Make the intent of a decided transaction a version, or remove it; the row after it."""
        intent = row.intent
        assert intent is not None, "there is an intent to finalise"
        self._forget_intent(key, intent.txn)
        if committed:
            self._supersede(key, row.committed)
            after = Row(intent, None)
        else:
            after = Row(row.committed, None)
        self._store(key, row, after)
        return after

    def place(self, key: bytes, row: Row, written: Version) -> bool:
        """Leave a write intent; whether its transaction had none here before."""
        is_new = row.intent is None
        assert is_new or row.intent.txn == written.txn, "at most one intent a key"  # type: ignore[union-attr]
        if is_new:
            self._batch.put(TXN_KEYS, key2(written.txn, self.table_id) + key, b"")
        self._store(key, row, Row(row.committed, written))
        return is_new

    def write(self, key: bytes, row: Row, written: Version) -> None:
        """Write a committed version, of a transaction that is decided in this batch."""
        if row.intent is not None:
            assert row.intent.txn == written.txn, "a foreign intent was resolved before"
            self._forget_intent(key, written.txn)
        self._supersede(key, row.committed)
        self._store(key, row, Row(written, None))

    def note_removed(self, *, versions: int = 0, rows: int = 0) -> None:
        """gc removed so many superseded versions, and so many rows of deleted keys."""
        if self._head is not None and (versions or rows):
            self._head.versions -= versions
            self._head.rows -= rows
            self._changed = True

    def finish(self) -> None:
        """Write the counters if they changed."""
        if self._changed and self._head is not None:
            state.save(self._batch, self.table_id, self._head)


def _is_value(row: Row) -> int:
    return row.committed is not None and row.committed.value is not None


def _is_there(row: Row) -> int:
    return row.committed is not None or row.intent is not None


def count_of(view: ReadView, txn: int, table_id: int) -> int:
    """How many keys of a table a transaction has written intents for."""
    payload = view.get(TXN_PARTS, part_key(txn, PART_TABLE, table_id))
    return 0 if payload is None else int(unpack(payload)[0])


def save_count(batch: WriteBatch, txn: int, table_id: int, count: int) -> None:
    """Note how many keys of a table a transaction has written intents for."""
    batch.put(TXN_PARTS, part_key(txn, PART_TABLE, table_id), pack([count, []]))


def keys_of(view: ReadView, txn: int, table_id: int, limit: int) -> list[bytes]:
    """Keys of a table with an intent of a transaction, in order, at most so many."""
    found: list[bytes] = []
    for key in view.keys(TXN_KEYS, key2(txn, table_id)):
        if len(found) == limit:
            break
        found.append(key[16:])
    return found


def finalize_keys(batch: WriteBatch, txn: int, table_id: int, committed: bool, keys: Sequence[bytes]) -> int:
    """Finalise the intents of a decided transaction under these keys of a table, as far as a batch goes; how many.

    Values may be long, and their bytes bound a batch as much as their number does.
    """
    writer, done = RowWriter(batch, table_id), 0
    for key in keys:
        if batch.bytes >= WRITE_BYTES_TARGET:
            break
        row = writer.load(key)
        assert row.intent is not None and row.intent.txn == txn, "an intent is found both ways"
        writer.finalize(key, row, committed)
        done += 1
    writer.finish()
    return done


KEYS_SHOWN_MAX = 100
"""Keys of a transaction that reports name."""


class TableIntents:
    """A table as a participant of the coordinator."""

    kind = PART_TABLE

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:  # noqa: ARG002
        """Whatever an intent could lose to was looked at when it was written; who loses later is aborted then."""
        return None

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> TableEffect:
        """Finalise the intents if they are few. What is left follows the record, whoever looks at it."""
        count = int(unpack(part)[0])
        is_few = count <= FINALIZE_INLINE_MAX
        if is_few:
            # What it wrote is shown for as long as its outcome is kept; its intents tell no longer.
            firsts = keys_of(batch, txn, object_id, KEYS_SHOWN_MAX) if committed else []
            batch.put(TXN_PARTS, part_key(txn, PART_TABLE, object_id), pack([count, firsts]))
            keys = keys_of(batch, txn, object_id, FINALIZE_INLINE_MAX)
            is_few = finalize_keys(batch, txn, object_id, committed, keys) == len(keys)
        return TableEffect(object_id, count, is_few)

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TableWorkDone:
        """Keys in a table: the intents, and once these are finalised the keys noted in the part."""
        left, fields = keys_of(view, txn, object_id, KEYS_SHOWN_MAX), unpack(part)
        return TableWorkDone(
            object_id, int(fields[0]), left or [bytes(key) for key in fields[1]], finalized=not left
        )
