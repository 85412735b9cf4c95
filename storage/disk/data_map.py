"""The data file as this process has it mapped: its views are counted, because the map changes only between them.

Holds: no view of this process is open while the file is closed, opened anew or mapped otherwise, nor (see `forked` of
environment.py) while the process forks. A handle that failed stays failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from zlib import crc32

import lmdb

from storage.disk import data_file
from storage.disk.codec import unsealed
from storage.disk.lmdb_errors import damaged, readers_full
from storage.disk.schema import Database
from storage.disk.view import ReadView
from storage.errors import StoreClosed, StoreFull, StoreInvalid
from storage.limits import LOCK_TIMEOUT_S
from storage.process.clock import Clock
from storage.process.locks import LockFile

OnWait = Callable[[str, float], None]
Follow = Callable[[bytes], tuple[Database, bytes] | None]


class DataMap:
    """Of one store in one process, shared by all its handles and threads.

    Attributes:
        raw: LMDB's environment.
        databases: its handles of the named databases.
        locks, read_only: how it is open.
        failed: why it can be used no more; None as long as it can.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self.failed: str | None = None
        self._views = 0
        self._lock = threading.RLock()
        self._views_done = threading.Condition(self._lock)
        self._changes = False

    def open(
        self,
        locks: LockFile,
        *,
        read_only: bool,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        inside_gate: bool = False,
    ) -> None:
        """Map the file; one that is written passes the writer gate for it, unless the caller is inside.

        Raises:
            WriterBusy, CorruptStore, and as `data_file.mapped`
        """
        self.locks, self.read_only = locks, read_only
        self.raw = data_file.mapped(self.path, read_only)
        try:
            if read_only or inside_gate:
                self.databases = data_file.databases(self.raw, self.path, read_only)
                return
            self.raw.reader_check()
            try:
                locks.gate.enter(timeout_s, on_wait)
                self.databases = data_file.databases(self.raw, self.path, read_only=False)
            finally:
                locks.gate.leave()
        except BaseException:
            self.raw.close()
            raise

    def drop(self) -> None:
        """Close what is open of it, if anything is."""
        with suppress(lmdb.Error):
            self.raw.close()

    def check_usable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, forked, or latched after a failed commit.
        """
        if self.failed is not None:
            raise StoreClosed(f"this handle of {self.path} cannot be used: {self.failed}")

    # Views

    def view(self) -> _CountedView:
        """`with data_map.view() as view:` one consistent view."""
        return _CountedView(self)

    def fetcher(
        self, database: Database, alone: int, follow: Follow
    ) -> Callable[[bytes], tuple[bytes | None, bytes | None]]:
        """What fetches the record under a key and the one that it refers to, from one view of their own, checked.

        As `with view() as v: v.get(...)`, at a fifth of its cost.

        Args:
            alone: the first byte of records that refer to no other.
            follow: where the second one is, given the first.

        The function raises:
            StoreClosed, CorruptStore, ReadersFull
        """
        name, seed, lock = database.name, database.seed, self._lock

        def fetch(key: bytes) -> tuple[bytes | None, bytes | None]:
            # While the lock is held the map cannot change, nor the process fork: the view need not be counted.
            with lock:
                if self.failed is None and not self._changes:
                    try:
                        raw = self.raw.begin()
                        try:
                            data = raw.get(key, None, self.databases[name])
                            if data is None:
                                return None, None
                            first = data[4:]
                            # `unsealed`, written out; what is damaged goes the long way, which says so.
                            if first and data[:4] == crc32(first, crc32(key, seed)).to_bytes(4, "big"):
                                if first[0] == alone:
                                    return first, None
                                return first, self._fetch_second(raw, follow(first))
                        finally:
                            raw.abort()
                    except lmdb.Error:
                        pass  # a change of the map, or something damaged: the long way says which
            self.check_usable()
            with self.view() as view:
                payload = view.get(database, key)
                if payload is None:
                    return None, None
                first = bytes(payload)
                where = follow(first)
                second = None if where is None else view.get(*where)
                return first, None if second is None else bytes(second)

        return fetch

    def _fetch_second(self, raw: Any, where: tuple[Database, bytes] | None) -> bytes | None:
        if where is None:
            return None
        data = raw.get(where[1], db=self.databases[where[0].name])
        return None if data is None else unsealed(*where, data)

    def begin_view(self) -> Any:
        """One of LMDB's, counted; it ends with `end_view`.

        Raises:
            StoreClosed, StoreFull, ReadersFull
        """
        while True:
            self.check_usable()
            with self._views_done:
                while self._changes:
                    self._views_done.wait()
                self._views += 1
            try:
                return self.raw.begin()
            except lmdb.MapResizedError:
                self.end_view()
                self.resize(0)
            except lmdb.ReadersFullError:
                self.end_view()
                if self.raw.reader_check():
                    continue
                raise readers_full(self.path) from None
            except BaseException:
                self.end_view()
                raise

    def end_view(self) -> None:
        """One that was begun is done."""
        with self._views_done:
            self._views -= 1
            if self._changes:
                self._views_done.notify_all()

    # What no view may see

    @contextmanager
    def between_views(self) -> Iterator[None]:
        """Wait until no view is open, and let none begin within the block."""
        with self._views_done:
            while self._views:
                self._views_done.wait()
            yield

    def stop_views(self, timeout_s: float) -> bool:
        """Wait until no view is open, and let none begin until `let_views_go`; False if that took too long."""
        self._views_done.acquire()
        is_still = self._views_done.wait_for(lambda: not self._views, timeout_s)
        if not is_still:
            self._views_done.release()
        return is_still

    def let_views_go(self) -> None:
        """Views may begin again."""
        self._views_done.release()

    def resize(self, size: int, *, inside_gate: bool = False) -> None:
        """Change the map, or take over another process's change (0), while no view of this process is open.

        Raises:
            StoreFull: the process may not have so much address space; the handle goes on with what it had.
        """
        with self._views_done:
            self._changes = True
            while self._views:
                self._views_done.wait()
            try:
                self.raw.set_mapsize(size)
            except (MemoryError, lmdb.Error) as error:
                self._reopen(inside_gate)
                raise StoreFull(
                    f"{self.path} needs more address space than this process may have: {error}",
                    hint="Raise the limit (ulimit -v). All that was acknowledged is safe.",
                ) from error
            finally:
                self._changes = False
                self._views_done.notify_all()

    def _reopen(self, inside_gate: bool) -> None:
        """After a failed change of the map py-lmdb has dropped the environment: open it again as it was."""
        self.drop()
        try:
            self.open(self.locks, read_only=self.read_only, inside_gate=inside_gate)
        except StoreInvalid as error:
            self.failed = f"its map could not change, and it could not be opened again: {error.message}"


class _CountedView:
    __slots__ = ("_map", "_raw")

    def __init__(self, data_map: DataMap) -> None:
        self._map = data_map

    def __enter__(self) -> ReadView:
        data_map = self._map
        self._raw = data_map.begin_view()
        try:
            return ReadView(self._raw, data_map.databases, data_map.clock)
        except BaseException as error:
            self._raw.abort()
            data_map.end_view()
            if isinstance(error, lmdb.Error):
                raise damaged(data_map.path, error) from error
            raise

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._raw.abort()
        self._map.end_view()
        if isinstance(error, lmdb.Error):
            raise damaged(self._map.path, error) from error
