"""The data file of a store: creation, opening, and the checks that come before the first read.

Must not know: its users, and any record but the format record.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import lmdb

from storage import faults
from storage.disk import schema
from storage.disk.codec import unpack, unseal
from storage.disk.lmdb import directory
from storage.disk.lmdb.lmdb_errors import not_done, readers_full, refused
from storage.disk.lmdb.pages import check_top_pages
from storage.disk.schema import FORMAT_KEY, FORMAT_NUMBER, STORE, Database
from storage.errors import CorruptStore, NotAStore, NotPermitted, StoreFull, UnknownFormat
from storage.limits import MAP_BYTES_FALLBACK, MAP_BYTES_SPARE, MAP_BYTES_WANTED, READERS_MAX
from storage.process.clock import Clock


def create(
    path: str, clock: Clock, first_records: Callable[[Clock], dict[Database, dict[bytes, bytes]]]
) -> None:
    """Write a new data file in the directory `path`, with all databases and the given sealed records.

    Raises:
        StoreFull
    """
    try:
        raw = lmdb.open(os.fsencode(path), map_size=1 << 24, mode=0o600, max_dbs=64, max_readers=READERS_MAX)
        try:
            handles = {db.name: raw.open_db(db.name.encode()) for db in schema.ALL}
            faults.reach("store.create.before_format")
            with raw.begin(write=True) as view:
                for database, records in first_records(clock).items():
                    for key, data in records.items():
                        view.put(key, data, db=handles[database.name])
        finally:
            raw.close()
    except lmdb.Error as error:
        raise refused(path, error) from error


def mapped(path: str, read_only: bool, has_table: bool = True) -> tuple[Any, int]:
    """Open LMDB's environment of a whole store, with the largest map that the process may have.

    Return the environment, and the store's format: a number of `schema.FORMATS_READ`.

    Args:
        has_table: whether LMDB uses its reader table (`reader_table.py`).

    Raises:
        StoreFull, CorruptStore, NotPermitted, StoreInvalid, ReadersFull, NotAStore, UnknownFormat
    """
    check_top_pages(path)
    raw = _open(path, read_only, has_table)
    try:
        _check_length(raw, path)
        format_number = _known_format(raw, path)
    except BaseException as error:
        # LMDB opens a file once in a process: an environment left open would make the next attempt fail.
        raw.close()
        if isinstance(error, lmdb.ReadersFullError):
            raise readers_full(path) from None
        raise
    return raw, format_number


def opened_new(path: str) -> Any:
    """LMDB's environment on a new, empty file in the directory `path`, for the build of a store.

    Raises:
        StoreFull, CorruptStore, NotPermitted, StoreInvalid
    """
    return _open(path, False, True, is_new=True)


def opened_unfinished(path: str) -> Any:
    """LMDB's environment on a file that an interrupted build has left; the format record may be missing.

    Raises:
        CorruptStore: the file does not open.
        StoreFull, NotPermitted, StoreInvalid
    """
    try:
        check_top_pages(path)
        raw = _open(path, False, True)
    except NotAStore as error:
        raise CorruptStore(error.message) from error
    try:
        _check_length(raw, path)
    except BaseException:
        raw.close()
        raise
    return raw


def _open(path: str, read_only: bool, has_table: bool, *, is_new: bool = False) -> Any:
    size = 0 if is_new else os.stat(os.path.join(path, directory.DATA)).st_size
    for map_bytes in (MAP_BYTES_WANTED, max(MAP_BYTES_FALLBACK, 2 * size), size + MAP_BYTES_SPARE):
        try:
            # As bytes: py-lmdb refuses text with bytes that are not UTF-8.
            return lmdb.open(
                os.fsencode(path), map_size=map_bytes, readonly=read_only, create=is_new, mode=0o600, max_dbs=64,
                max_readers=READERS_MAX, max_spare_txns=0, lock=has_table,
            )  # fmt: skip
        except (MemoryError, lmdb.MemoryError):
            continue
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            # The data file was looked at before: mostly LMDB could not use its lock file.
            raise CorruptStore(
                f"{path} cannot be opened: {error}",
                hint=f"Try again; close it everywhere and remove {directory.LMDB_LOCK}; then restore a backup.",
            ) from error
        except lmdb.LockError as error:
            raise NotPermitted(
                f"{path} cannot be locked: {error}",
                hint="Two containers with separate process ids cannot share a store: give them one pid namespace.",
            ) from error
        except lmdb.ReadersFullError:
            raise readers_full(path) from None
        except (lmdb.ReadonlyError, PermissionError) as error:
            raise NotPermitted(f"{path} cannot be opened: {error}") from error
        except lmdb.Error as error:
            raise not_done(path, "opened", error) from error
    raise StoreFull(
        f"no address space for the map of {path}, which has {size:,} bytes",
        hint="Raise the limit on address space (ulimit -v).",
    )


def _check_length(raw: Any, path: str) -> None:
    """Refuse a truncated file, because reading a missing page would kill the process."""
    needed = (raw.info()["last_pgno"] + 1) * raw.stat()["psize"]
    size = os.stat(os.path.join(path, directory.DATA)).st_size
    if size < needed:
        raise CorruptStore(
            f"{path}/{directory.DATA} is truncated to {size} of {needed} bytes", hint="Restore a backup."
        )


def _known_format(raw: Any, path: str) -> int:
    """The format of the store, one that this release reads; only reads, so that a refused file is left untouched."""
    with raw.begin() as view:
        try:
            data = view.get(FORMAT_KEY, db=raw.open_db(STORE.name.encode(), txn=view, create=False))
        except lmdb.Error:
            raise NotAStore(f"{path} is an LMDB file, but not a txnctl store") from None
    if data is None:
        raise NotAStore(f"{path} is not a whole store: the format record is missing")
    number: int = unpack(unseal(STORE, FORMAT_KEY, data), 1)[0]
    if number not in schema.FORMATS_READ:
        known = " and ".join(map(str, schema.FORMATS_READ))
        raise UnknownFormat(
            f"{path} has format {number}; this release reads formats {known}",
            hint="Use the release that wrote the store, which was left untouched.",
            format=number,
        )
    return number


def databases(raw: Any, path: str, read_only: bool, format_number: int = FORMAT_NUMBER) -> dict[str, object]:
    """Handles of the named databases of a store: all, or those that its earlier format has.

    py-lmdb keeps a handle only if the opening transaction can write, or if none is given: a store opened for writing
    therefore opens its databases inside the writer gate.

    Raises:
        CorruptStore
    """
    lacked = () if format_number == FORMAT_NUMBER else schema.NEW_IN_2
    names = [db.name for db in schema.ALL if db not in lacked]
    try:
        if read_only:
            return {name: raw.open_db(name.encode(), create=False) for name in names}
        with raw.begin(write=True) as view:
            return {name: raw.open_db(name.encode(), txn=view, create=False) for name in names}
    except lmdb.Error as error:
        raise CorruptStore(f"{path} lacks a database: {error}", hint="Restore a backup.") from error


def all_databases(raw: Any, transaction: Any) -> dict[str, object]:
    """Handles of all named databases, within a writing transaction of LMDB, whose commit makes the missing ones."""
    return {db.name: raw.open_db(db.name.encode(), txn=transaction) for db in schema.ALL}
