"""The build of a copied store in a directory, and the records of a directory as a copy reads them.

The build lies in `.NAME.copy` beside the destination (`build_dir.py`). Each write is one durable commit of LMDB, so an
interrupted build is whole up to its last write.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import lmdb

from storage.disk.lmdb import create, data_file, directory
from storage.disk.lmdb.lmdb_errors import refused
from storage.disk.schema import FORMAT_KEY, HEADS, STORE, Database
from storage.disk.sealed_records import Change, Record, chunk
from storage.disk.view import SUPERBLOCK_KEY, ReadView
from storage.errors import CorruptStore
from storage.process.clock import Clock

T = TypeVar("T")


class DirectoryView:
    """The records of a directory as of one view."""

    def __init__(self, view: ReadView, total_bytes: int) -> None:
        self.view = view
        self.total_bytes = total_bytes

    def read(self, database: Database, start: bytes) -> list[Record]:
        return chunk(self.view.stored(database, start))


@contextmanager
def building(destination: str, clock: Clock) -> Iterator[DirectoryBuild]:
    """Begin the build of a store at `destination`, or go on with the one that an interrupt has left.

    Raises:
        AlreadyExists: the destination exists, and is left unchanged.
        StoreInUse: another process is building there.
        InvalidValue, StoreInvalid, StoreUnsafe, NotPermitted, StoreFull
    """
    destination = directory.resolved(destination, os.path.abspath)
    with create.resuming(destination) as build_dir:
        build = DirectoryBuild(destination, build_dir, clock)
        try:
            yield build
        finally:
            build.close()


class DirectoryBuild:
    """See the module; attributes as `sealed_records.StoreBuild` has them."""

    def __init__(self, destination: str, build_dir: str, clock: Clock) -> None:
        self.destination, self.path, self.clock = destination, build_dir, clock
        self.is_resumed = os.path.lexists(os.path.join(build_dir, directory.DATA))
        self._raw: Any = None
        try:
            if self.is_resumed:
                self.is_resumed = self._open_left()
            if not self.is_resumed:
                self._open_new()
            self._databases = self._run(self._begin)
        except BaseException:
            self.close()
            raise

    def _open_left(self) -> bool:
        """Open what an interrupt has left; False if a power cut left nothing that opens."""
        directory.check_files(self.path)
        try:
            self._raw = data_file.opened_unfinished(self.path)
        except CorruptStore:
            return False
        return True

    def _open_new(self) -> None:
        for name in directory.FILES:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, name))
        directory.check_local(self.path, os.stat(self.path).st_dev)
        create.write_lock_file(os.path.join(self.path, directory.LOCK))
        self._raw = data_file.opened_new(self.path)

    def _begin(self, transaction: Any) -> dict[str, object]:
        """Make the missing databases; take back the format record, so that nobody opens the build meanwhile."""
        databases = data_file.all_databases(self._raw, transaction)
        transaction.delete(FORMAT_KEY, db=databases[STORE.name])
        transaction.delete(SUPERBLOCK_KEY, db=databases[HEADS.name])
        return databases

    def _run(self, change: Callable[[Any], T]) -> T:
        """Run a change in one durable commit, in a map that grows as needed."""
        while True:
            try:
                with self._raw.begin(write=True) as transaction:
                    return change(transaction)
            except lmdb.MapFullError:
                self._raw.set_mapsize(self._raw.info()["map_size"] * 2)
            except lmdb.Error as error:
                raise refused(self.path, error) from error

    def read(self, database: Database, start: bytes) -> list[Record]:
        try:
            with self._raw.begin() as view, view.cursor(db=self._databases[database.name]) as cursor:
                return chunk(cursor.iternext()) if cursor.set_range(start) else []
        except lmdb.Error as error:
            raise refused(self.path, error) from error

    def write(self, changes: Sequence[Change]) -> None:
        databases = self._databases

        def change(transaction: Any) -> None:
            for database, key, value in changes:
                if value is None:
                    transaction.delete(key, db=databases[database.name])
                else:
                    transaction.put(key, value, db=databases[database.name])

        self._run(change)

    def finish(self, superblock: bytes, format_record: bytes) -> None:
        self.write([(HEADS, SUPERBLOCK_KEY, superblock), (STORE, FORMAT_KEY, format_record)])
        self.close()

    def install(self) -> int:
        size = directory.data_bytes(self.path)
        create.install(self.path, self.destination)
        # Into an existing directory the files of a store were moved one by one; the engine had made others.
        shutil.rmtree(self.path, ignore_errors=True)
        return size

    def discard(self) -> None:
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        """Let go of the file, which the engine can open then."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None
