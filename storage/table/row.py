"""The bytes of rows and versions, and stored keys that sort in the order of the table's keys.

A row: u8 flags; if it has a finalised version: u64 version, u64 transaction, u32 length, value; if it has an intent:
u64 version, u64 transaction, value to the end. A superseded version: u8 deleted, u64 transaction, value.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import Final
from zlib import crc32

from storage.disk.codec import corrupt, key1, unseal
from storage.disk.schema import ROWS, TXNS, VERSIONS, Database
from storage.errors import CorruptStore, InvalidValue
from storage.limits import TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from storage.table.visibility import StoredRow, Version

Records = list[tuple[bytes, bytes]]

COMMITTED: Final = 1
COMMITTED_DELETED: Final = 2
INTENT: Final = 4
INTENT_DELETED: Final = 8

_COMMITTED = Struct(">BQQI")
_INTENT = Struct(">QQ")
_OLD = Struct(">BQ")
_U64_MAX = (1 << 64) - 1
_GROUP_ENDS: Final = [bytes(8 - rest) + bytes((rest,)) for rest in range(8)]
"""The zeros and the number that end the last group of a key, by the number of key bytes in the group."""
VALUE_AT: Final = _COMMITTED.size
"""The offset in the payload of a row at which the finalised value begins."""

PLAIN: Final = bytes((COMMITTED,))
"""The flags of a row of one finalised value."""

ONE_VALUE: Final = (bytes((COMMITTED | INTENT,)), bytes((COMMITTED | INTENT | INTENT_DELETED,)))
"""The flags of rows of a finalised value with an intent."""

STORED: Final = Struct(">IxQQI")
"""A stored row with a finalised version, before the value: checksum, version, transaction, length; not the flags."""

_STORED_VALUE_AT: Final = STORED.size


def check_key(key: object) -> bytes:
    """Return `key`, checked as the key of a row.

    Raises:
        InvalidValue
    """
    if type(key) is not bytes:
        raise InvalidValue(f"a table's key is bytes, not {type(key).__name__}")
    if not 0 < len(key) <= TABLE_KEY_BYTES_MAX:
        raise InvalidValue(f"a table's key has 1 to {TABLE_KEY_BYTES_MAX} bytes, not {len(key)}")
    return key


def check_value(value: object) -> bytes:
    """Return `value`, checked as the value of a row.

    Raises:
        InvalidValue
    """
    if type(value) is not bytes:
        raise InvalidValue(f"a table's value is bytes, not {type(value).__name__}")
    if len(value) > TABLE_VALUE_BYTES_MAX:
        raise InvalidValue(
            f"a value of {len(value):,} bytes is too long", hint=f"At most {TABLE_VALUE_BYTES_MAX:,}."
        )
    return value


def encode(row: StoredRow) -> bytes:
    """Encode a row."""
    committed, intent, flags = row.committed, row.intent, 0
    assert committed is not None or intent is not None, "an empty row is not stored"
    if intent is not None:
        flags = INTENT if intent.value is not None else INTENT | INTENT_DELETED
    if committed is not None:
        value = committed.value
        flags |= COMMITTED if value is not None else COMMITTED | COMMITTED_DELETED
        value = value or b""
        data = _COMMITTED.pack(flags, committed.version, committed.txn, len(value)) + value
    else:
        data = bytes((flags,))
    return data if intent is None else data + _INTENT.pack(intent.version, intent.txn) + (intent.value or b"")


def decode(key: bytes, payload: bytes | memoryview) -> StoredRow:
    """Decode the row stored under `key` (table and key).

    Raises:
        CorruptStore
    """
    try:
        flags, at, committed, intent = payload[0], 1, None, None
        if flags & COMMITTED:
            _, version, txn, length = _COMMITTED.unpack_from(payload)
            at = VALUE_AT + length
            value = None if flags & COMMITTED_DELETED else bytes(payload[VALUE_AT:at])
            committed = Version(version, txn, value)
        if flags & INTENT:
            version, txn = _INTENT.unpack_from(payload, at)
            intent = Version(
                version, txn, None if flags & INTENT_DELETED else bytes(payload[at + _INTENT.size :])
            )
        return StoredRow(committed, intent)
    except (error, IndexError, CorruptStore) as problem:
        raise corrupt(ROWS, key, str(problem)) from None


def decode_stored(key: bytes, data: bytes) -> StoredRow:
    """Check and decode the row stored under `key` (table and key), given with its checksum.

    Raises:
        CorruptStore
    """
    if data[4:5] != PLAIN:
        return decode(key, unseal(ROWS, key, data))
    try:
        checksum, version, txn, length = STORED.unpack_from(data)
    except error as problem:
        raise corrupt(ROWS, key, str(problem)) from None
    if checksum != crc32(key + data[4:], ROWS.seed):
        raise corrupt(ROWS, key, "the checksum does not agree")
    return StoredRow(Version(version, txn, data[_STORED_VALUE_AT : _STORED_VALUE_AT + length]), None)


def committed_records(
    prefix: bytes, writes: Sequence[tuple[bytes, StoredRow, bytes | None]], version: int, txn: int
) -> Records:
    """The records of rows of one finalised version, and no intent: stored keys and payloads.

    Args:
        prefix: of the table.
        writes: keys, each with its row before and the new value, None of a deleted key.
        version, txn: of the transaction that writes the rows.
    """
    records: Records = []
    for key, _, value in writes:
        if value is None:
            payload = _COMMITTED.pack(COMMITTED | COMMITTED_DELETED, version, txn, 0)
        else:
            payload = _COMMITTED.pack(COMMITTED, version, txn, len(value)) + value
        records += ((prefix + key, payload),)
    return records


def plain_version(payload: memoryview, until: int) -> Version | None:
    """The version of a row that has one finalised value and nothing else, of a version up to `until`; else None.

    Raises:
        struct.error: the payload is no row.
    """
    if payload[:1] != PLAIN:
        return None
    _, version, txn, _ = _COMMITTED.unpack_from(payload)
    return Version(version, txn, bytes(payload[VALUE_AT:])) if version <= until else None


def holder_of(payload: bytes) -> tuple[Database, bytes] | None:
    """Database and key of the record of the transaction whose intent a row has (K2's transaction record holder)."""
    if not payload[0] & INTENT:
        return None
    at = intent_at(payload)
    return TXNS, payload[at + 8 : at + 16]


def intent_at(payload: bytes) -> int:
    """The offset in the payload of a row at which the finalised value ends and the intent begins."""
    return VALUE_AT + int.from_bytes(payload[17:VALUE_AT], "big") if payload[0] & COMMITTED else 1


def finalized_value(payload: bytes, at: int) -> bytes | None:
    """The finalised value of a row whose intent begins at `at`; None if there is none, or the key was deleted."""
    return payload[VALUE_AT:at] if payload[0] & (COMMITTED | COMMITTED_DELETED) == COMMITTED else None


def intent_version(payload: bytes, at: int) -> int:
    """The version of the intent that begins at `at`."""
    return int.from_bytes(payload[at : at + 8], "big")


def intent_value(payload: bytes, at: int) -> bytes | None:
    """The value of the intent that begins at `at`."""
    return None if payload[0] & INTENT_DELETED else payload[at + 16 :]


def intent_head(intent: Version) -> bytes:
    """The bytes of a row with which its intent begins, before the value: version and transaction."""
    return _INTENT.pack(intent.version, intent.txn)


def old_records(prefix: bytes, versions: Sequence[tuple[bytes, Version]]) -> Records:
    """The records of superseded versions: stored keys and payloads.

    Args:
        prefix: of the table.
        versions: each with its key.
    """
    records: Records = []
    for key, version in versions:
        stored = prefix + grouped(key) + key1(_U64_MAX - version.version)
        payload = _OLD.pack(version.value is None, version.txn) + (version.value or b"")
        records += ((stored, payload),)
    return records


def encode_old(version: Version) -> bytes:
    """Encode a superseded version; the version number is in the key."""
    return _OLD.pack(version.value is None, version.txn) + (version.value or b"")


def decode_old(key: bytes, payload: memoryview) -> Version:
    """Decode the superseded version stored under `key`.

    Raises:
        CorruptStore
    """
    try:
        deleted, txn = _OLD.unpack_from(payload)
    except error as problem:
        raise corrupt(VERSIONS, key, str(problem)) from None
    return Version(version_of(key), txn, None if deleted else bytes(payload[_OLD.size :]))


def grouped(key: bytes) -> bytes:
    """Write a key in groups of 8 bytes, each followed by the number of key bytes in the group.

    Grouped keys sort in the order of the keys, and none is a prefix of a second. `abc` is `61 62 63 00 00 00 00 00` and
    3; `abcdefgh` is 8 bytes and 9, then an empty group. The number is 9 in each group but the last.
    """
    length, groups = len(key), b""
    for at in range(0, length - 7, 8):
        groups += key[at : at + 8] + b"\x09"
    rest = length % 8
    return groups + key[length - rest :] + _GROUP_ENDS[rest]


def ungrouped(data: bytes) -> bytes:
    """The inverse of `grouped`."""
    parts = [data[at : at + 8] for at in range(0, len(data) - 9, 9)]
    parts.append(data[len(data) - 9 : len(data) - 9 + data[-1]])
    return b"".join(parts)


def old_prefix(table_id: int, key: bytes) -> bytes:
    """The prefix of the stored keys of all superseded versions of a key."""
    return key1(table_id) + grouped(key)


def old_key(table_id: int, key: bytes, version: int) -> bytes:
    """The stored key of a superseded version: of one table key the newest version comes first."""
    return key1(table_id) + grouped(key) + key1(_U64_MAX - version)


def version_of(key: bytes) -> int:
    """The version that a key of VERSIONS names."""
    return _U64_MAX - int.from_bytes(key[-8:], "big")


def key_of(key: bytes) -> bytes:
    """The table's key that a key of VERSIONS names."""
    return ungrouped(key[8:-8])
