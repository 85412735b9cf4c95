"""The only packing of bytes: checksums, integers in keys, MessagePack in values."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error as struct_error
from typing import Any, Final, TypeVar
from zlib import crc32

from msgpack import Packer, UnpackException, unpackb

from storage.actions import Action, Hint
from storage.disk.schema import Database
from storage.errors import CorruptStore
from storage.values.position import Position

T = TypeVar("T")

U64 = Struct(">Q")
U64X2 = Struct(">QQ")
U64X3 = Struct(">QQQ")
U64X4 = Struct(">QQQQ")
I64X2 = Struct(">qq")
PART_KEY = Struct(">QBQ")

U64_MAX = (1 << 64) - 1

key1 = U64.pack
key2 = U64X2.pack
key3 = U64X3.pack
key4 = U64X4.pack
part_key = PART_KEY.pack


def key_through(object_id: int, at: Position) -> bytes:
    """The last key of an object's records at or below a position, which may be `L:-1`."""
    if at[1] >= 0:
        return key3(object_id, *at)
    return key3(object_id, at[0] - 1, U64_MAX) if at[0] else key3(object_id, 0, 0)


SEAL_BYTES: Final = 4


def seal(database: Database, key: bytes, payload: bytes) -> bytes:
    """The stored value: CRC-32 of seed, key and payload, followed by the payload."""
    return crc32(key + payload[: database.sealed], database.seed).to_bytes(4, "big") + payload


UNDECODABLE: Final = (struct_error, UnpackException, ValueError, TypeError, LookupError, AttributeError)
"""Anything that decoding raises for bytes that are not the expected record."""


def unseal(database: Database, key: bytes, data: bytes) -> memoryview:
    """The payload of a stored value.

    Raises:
        CorruptStore: the checksum does not agree.
    """
    payload = memoryview(data)[4:]
    if crc32(key + payload[: database.sealed], database.seed).to_bytes(4, "big") != data[:4]:
        raise corrupt(database, key, "the checksum does not agree")
    return payload


def unsealed(database: Database, key: bytes, data: bytes) -> bytes:
    """The payload as bytes: a faster `unseal` for databases whose checksum covers the whole payload.

    Raises:
        CorruptStore
    """
    payload = data[4:]
    if crc32(payload, crc32(key, database.seed)).to_bytes(4, "big") != data[:4]:
        raise corrupt(database, key, "the checksum does not agree")
    return payload


def decoded(database: Database, key: bytes, payload: memoryview, decode: Callable[[memoryview], T]) -> T:
    """Decode the record under a key.

    Raises:
        CorruptStore: the payload is not such a record.
    """
    try:
        return decode(payload)
    except CorruptStore as problem:
        if problem.details:
            raise
        raise corrupt(database, key, problem.message) from None
    except UNDECODABLE as problem:
        raise corrupt(database, key, f"it cannot be decoded: {problem}") from problem


def missing(database: Database, key: bytes) -> CorruptStore:
    """The error for a record that another record says must be there."""
    return corrupt(database, key, "it is not there")


def corrupt(database: Database, key: bytes, why: str) -> CorruptStore:
    """The error for a damaged record."""
    return CorruptStore(
        f"record {key.hex()} of {database.name} is corrupt: {why}",
        hint=Hint(
            "Run `{}` to list all damage, then restore a backup.",
            Action("store.maintenance.verify_store", full=True),
        ),
        database=database.name,
        key=key.hex(),
    )


def pack(fields: Any) -> bytes:
    """MessagePack of a record."""
    data: bytes = Packer(use_bin_type=True).pack(fields)
    return data


def unpack(data: bytes | memoryview, least: int = 0) -> Any:
    """The record packed in `data`.

    Args:
        least: the number of elements that the record has at least.

    Raises:
        CorruptStore: the record does not unpack, or has fewer elements; without its database and key, which the view
            that the record was read from adds (`ReadView.named`).
    """
    try:
        fields = unpackb(data, raw=False, strict_map_key=False)
    except (UnpackException, ValueError) as problem:
        raise CorruptStore(f"it cannot be decoded: {problem}") from problem
    if least and not (isinstance(fields, list) and len(fields) >= least):
        raise CorruptStore(f"it cannot be decoded: it has fewer than {least} elements")
    return fields


def unpack_first(data: bytes | memoryview, count: int) -> Any:
    """The first elements of the record packed in `data`, which may have more.

    Raises:
        CorruptStore: as `unpack`
    """
    return unpack(data, count)[:count]
