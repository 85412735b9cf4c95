"""The index of changes: which keys of a table were written at which version, in the order of versions.

Each version of a row above the horizon of the table has an entry, whether committed or an intent: the entry is noted
where the version is written, and forgotten with an aborted intent. The horizon is the version up to which entries have
been removed: readers of changes start there at the earliest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storage.disk.codec import U64, key1, key2
from storage.disk.schema import CHANGES
from storage.disk.view import ReadView, WriteBatch
from storage.limits import GC_LOOK_RECORDS, GC_STEP_RECORDS
from storage.table import state as states


def note(batch: WriteBatch, table_id: int, version: int, key: bytes) -> None:
    """Enter a version of a key."""
    batch.put(CHANGES, key2(table_id, version) + key, b"")


def note_all(batch: WriteBatch, table_id: int, version: int, keys: Iterable[bytes]) -> None:
    """Enter one version of several keys."""
    prefix, entries = key2(table_id, version), list[tuple[bytes, bytes]]()
    for key in keys:
        entries += ((prefix + key, b""),)
    batch.put_all(CHANGES, entries)


def forget(batch: WriteBatch, table_id: int, version: int, key: bytes) -> None:
    """Remove the entry of an intent whose transaction is aborted."""
    batch.delete(CHANGES, key2(table_id, version) + key)


def horizon(view: ReadView, table_id: int) -> int:
    """The version up to which changes of a table are not kept; 0 where all are. A store of format 1 keeps none."""
    if view.lacks(CHANGES):
        return view.superblock.last_timestamp
    payload = view.get(CHANGES, key1(table_id))
    return 0 if payload is None else int(U64.unpack(payload)[0])


def raise_horizon(batch: WriteBatch, table_id: int, version: int) -> None:
    """Note that changes of a table up to a version are not kept. A deleted table has no horizon."""
    if states.find(batch, table_id) is not None and version > horizon(batch, table_id):
        batch.put(CHANGES, key1(table_id), U64.pack(version))


def version_in(entry: bytes) -> int:
    """The version that an entry names."""
    return int.from_bytes(entry[8:16], "big")


def key_in(entry: bytes) -> bytes:
    """The table's key that an entry names."""
    return entry[16:]


def walk(view: ReadView, table_id: int, version: int, key: bytes, until: int) -> Iterator[bytes]:
    """Yield the entries of a table from a version and key on, up to and including all keys of the version `until`."""
    for entry in view.keys(CHANGES, key1(table_id), key2(table_id, version) + key):
        if version_in(entry) > until:
            return
        yield entry


def find_removable(view: ReadView, until: int, after: bytes) -> tuple[list[bytes], bytes | None]:
    """Find entries of all tables at or below a version, from an entry on, and the entry to go on from."""
    removable: list[bytes] = []
    at = after or b"\0"
    for _ in range(GC_LOOK_RECORDS):
        record = view.first(CHANGES, b"", at)
        if record is None:
            return removable, None
        table_id = U64.unpack(record[0][:8])[0]
        for entry in view.keys(CHANGES, key1(table_id), max(at, key2(table_id, 1))):
            if version_in(entry) > until:
                break
            removable.append(entry)
            if len(removable) >= GC_STEP_RECORDS:
                return removable, entry + b"\0"
        at = key1(table_id + 1)
    return removable, at


def remove(batch: WriteBatch, entries: list[bytes]) -> int:
    """Remove entries that were found, and raise the horizons of their tables; return the number of entries."""
    removed = [entry for entry in entries if batch.delete(CHANGES, entry)]
    last = {U64.unpack(entry[:8])[0]: version_in(entry) for entry in removed}
    for table_id, version in last.items():
        raise_horizon(batch, table_id, version)
    return len(removed)
