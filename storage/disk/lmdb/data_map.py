"""The memory map of the data file in this process. Open views are counted, as the map may change only between views.

Holds: no view of this process is open while the file is closed, opened anew or mapped at another size, nor (see
`forked` of environment.py) while the process forks. A handle that failed stays failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from weakref import ref
from zlib import crc32

import lmdb

from storage.disk.codec import unsealed
from storage.disk.kept_records import KeptRecords
from storage.disk.lmdb import data_file, old_format, reader_table
from storage.disk.lmdb.lmdb_errors import damaged, is_damage, readers_full
from storage.disk.schema import FORMAT_NUMBER, Database
from storage.disk.superblock import Superblock
from storage.disk.view import ReadView
from storage.errors import Busy, StoreClosed, StoreFull, StoreInvalid
from storage.limits import LOCK_TIMEOUT_S
from storage.process.clock import Clock
from storage.process.lock_file import LockFile
from storage.process.writer_gate import OnWait

_LOOK_S: Final = 0.1
"""Longest wait for the end of a view whose end an interrupt has cut off: nobody tells."""

Follow = Callable[[bytes], tuple[Database, bytes] | None]


class DataMap:
    """The map of one store in one process, shared by all handles and threads.

    Attributes:
        raw: LMDB's environment.
        databases: LMDB's handles of the named databases.
        format_number: the store's format.
        is_old: whether that is an earlier format, which is only read.
        locks: the lock file.
        read_only: whether the map is for reading only.
        failed: why the map is no longer usable; None while it is usable.
        kept: the records of the last commit, for the next batch and for looks inside the writer gate.
        lock: held during a short call of LMDB outside views and batches, so that meanwhile the map does not change and
            the process does not fork: a child cannot close an environment that a call of another thread is using.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self.failed: str | None = None
        # Each view leaves by itself when its object is freed, as behind an interrupt before the first line of its end.
        self._views = set[ref[CountedView]]()
        self.kept = KeptRecords()
        self.lock = threading.RLock()
        self._views_done = threading.Condition(self.lock)
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
        """Map the file. A map for writing passes the writer gate, unless the caller is inside.

        Raises:
            WriterBusy, StoreInUse, CorruptStore, and as `data_file.mapped`
        """
        self.locks, self.read_only = locks, read_only
        has_table = inside_gate or reader_table.secure(
            self.path, locks, self.clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait
        )
        self.raw, number = data_file.mapped(self.path, read_only, has_table)
        try:
            if read_only or inside_gate:
                self._adopt(data_file.databases(self.raw, self.path, read_only, number), number)
                return
            self.raw.reader_check()
            try:
                locks.gate.enter(timeout_s, on_wait)
                self._adopt(data_file.databases(self.raw, self.path, False, number), number)
            finally:
                locks.gate.leave()
        except BaseException:
            self.raw.close()
            raise

    def _adopt(self, databases: dict[str, object], format_number: int) -> None:
        self.databases, self.format_number = databases, format_number
        self.is_old = format_number != FORMAT_NUMBER
        self._view_type = old_format.OldFormatView if self.is_old else ReadView

    def upgraded(self, databases: dict[str, object]) -> None:
        """Go on with these handles in the present format; views that are open see the earlier format to their end."""
        with self.lock:
            self._adopt(databases, FORMAT_NUMBER)

    def drop(self) -> None:
        """Close LMDB's environment if one is open."""
        with suppress(lmdb.Error):
            self.raw.close()

    def check_usable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, forked, or latched after a failed commit.
        """
        if self.failed is not None:
            raise StoreClosed(f"this handle of {self.path} is unusable: {self.failed}")

    def check_written(self) -> None:
        """Check that this process may change the store, before anything is changed.

        Raises:
            StoreClosed: the handle was closed, forked, or latched after a failed commit.
            StoreInvalid: the store is open for reading only.
            OldFormat: the store has an earlier format.
        """
        if self.failed is not None:
            self.check_usable()
        if self.read_only:
            raise StoreInvalid("the store is open for reading only", hint="Open it with read_only=False.")
        if self.is_old:
            raise old_format.refusal(self.path, self.format_number)

    # Views

    def kept_superblock(self) -> Superblock | None:
        """The superblock of the last commit of any process, if this process has made the commit; inside the gate."""
        with self.lock:
            if self.failed is not None or self._changes:
                return None
            number = self.raw.info()["last_txnid"]
        return self.kept.superblock if self.kept.commit == (self.raw, number) else None

    def show_last_commit(self) -> None:
        """Let views show the last commit that LMDB counts; called inside the gate, where no commit is in progress.

        A writer that was killed between the two left a commit that views show behind the next begin of a batch only.
        """
        while True:
            try:
                self.raw.begin(write=True).abort()
            except lmdb.MapResizedError:
                self.resize(0, inside_gate=True)
            else:
                return

    def view(self) -> CountedView:
        """A context manager that opens one consistent view."""
        return CountedView(self)

    def fetcher(
        self, database: Database, guard: tuple[Database, bytes], alone: int, follow: Follow
    ) -> Callable[[bytes], tuple[bytes | None, bytes | None]]:
        """Make a function that gets the record under a key and the record that the first one refers to.

        Each call reads from a view of its own and checks both records, as `with view() as v: v.get(...)` does at five
        times the cost. The function raises StoreClosed, CorruptStore and ReadersFull.

        Args:
            guard: database and key of a record without which nothing is found.
            alone: the first byte of records without a reference.
            follow: database and key of the second record, given the first.
        """
        name, seed, lock = database.name, database.seed, self.lock
        guard_name, guard_key = guard[0].name, guard[1]
        # The guard is looked up once a commit. Commits of a replaced file count anew, in a new environment.
        guarded: Any = None
        guarded_commit = 0

        def fetch(key: bytes) -> tuple[bytes | None, bytes | None]:
            nonlocal guarded, guarded_commit
            # Under the lock the map cannot change and the process cannot fork: the view need not be counted.
            with lock:
                if self.failed is None and not self._changes:
                    try:
                        environment, databases = self.raw, self.databases
                        raw = environment.begin()
                        try:
                            data = raw.get(key, None, databases[name])
                            if data is None:
                                return None, None
                            commit = raw.id()
                            if commit != guarded_commit or environment is not guarded:
                                if raw.get(guard_key, None, databases[guard_name]) is None:
                                    return None, None
                                guarded, guarded_commit = environment, commit
                            first = data[4:]
                            # `unsealed`, inlined for speed; the slow path reports damage.
                            if first and data[:4] == crc32(first, crc32(key, seed)).to_bytes(4, "big"):
                                if first[0] == alone:
                                    return first, None
                                where = follow(first)
                                if where is None:
                                    return first, None
                                data = raw.get(where[1], None, databases[where[0].name])
                                return first, None if data is None else unsealed(*where, data)
                        finally:
                            raw.abort()
                            raw = None  # see `ReadView.end`
                    except lmdb.Error:
                        pass  # a changed map, or damage: the slow path tells which
            self.check_usable()
            with self.view() as view:
                payload = view.get(database, key)
                if payload is None or not view.has(*guard):
                    return None, None
                first = bytes(payload)
                where = follow(first)
                second = None if where is None else view.get(*where)
                return first, None if second is None else bytes(second)

        return fetch

    def begin_view(self, view: CountedView) -> Any:
        """Begin a counted transaction of LMDB for a view; the caller ends it with `end_view`.

        Raises:
            StoreClosed, StoreFull, ReadersFull
        """
        while True:
            if self.failed is not None:
                self.check_usable()
            is_counted = False
            try:
                with self.lock:
                    while self._changes:
                        self._views_done.wait()
                    view._ref = ref(view, self._views.discard)
                    self._views.add(view._ref)
                    is_counted = True
                return self.raw.begin()
            except lmdb.MapResizedError:
                self.end_view(view._ref)
                self.resize(0)
            except lmdb.ReadersFullError:
                self.end_view(view._ref)
                with self.lock:
                    freed = self.raw.reader_check()
                if freed:
                    continue
                raise readers_full(self.path) from None
            except BaseException:
                if is_counted:
                    self.end_view(view._ref)
                raise

    def end_view(self, view: ref[CountedView]) -> None:
        """Count a view as ended; again without effect."""
        with self.lock:
            self._views.discard(view)
            if self._changes:
                self._views_done.notify_all()

    # Changes of the map

    @contextmanager
    def between_views(self) -> Iterator[None]:
        """Wait until no view is open, and let no view begin within the block."""
        with self.lock:
            while self._views:
                self._views_done.wait(_LOOK_S)
            yield

    def stop_views(self, timeout_s: float) -> bool:
        """Wait until no view is open, and let no view begin until `let_views_go`; False after `timeout_s`."""
        self._views_done.acquire()
        # Without `_changes` overlapping views of two threads would never leave a moment without a view.
        self._changes = True
        is_still = self._views_done.wait_for(lambda: not self._views, timeout_s)
        if not is_still:
            self.let_views_go()
        return is_still

    def let_views_go(self) -> None:
        """Let views begin again."""
        self._changes = False
        self._views_done.notify_all()
        self._views_done.release()

    def resize(self, size: int, *, inside_gate: bool = False) -> None:
        """Change the size of the map, or adopt another process's change (0), while no view of this process is open.

        Raises:
            StoreFull: the limit on address space is too low; the handle goes on with the old size.
        """
        with self.lock:
            self._changes = True
            while self._views:
                self._views_done.wait(_LOOK_S)
            try:
                self.raw.set_mapsize(size)
            except (MemoryError, lmdb.Error) as error:
                self.reopen(self.locks, read_only=self.read_only, inside_gate=inside_gate)
                raise StoreFull(
                    f"{self.path} needs more address space than this process may have: {error}",
                    hint="Raise the limit (ulimit -v). Acknowledged messages are safe.",
                ) from error
            finally:
                self._changes = False
                self._views_done.notify_all()

    def reopen(
        self,
        locks: LockFile,
        *,
        read_only: bool,
        timeout_s: float = LOCK_TIMEOUT_S,
        inside_gate: bool = False,
    ) -> None:
        """Open the environment again, as before a change that failed; if that fails too, the handle has failed."""
        self.drop()
        try:
            self.open(locks, read_only=read_only, timeout_s=timeout_s, inside_gate=inside_gate)
        except (StoreInvalid, Busy) as error:
            self.failed = f"a change failed, and the store could not be opened again: {error.message}"


class CountedView:
    """One view of a map, which does not change meanwhile; see `DataMap.view`."""

    __slots__ = ("__weakref__", "_map", "_raw", "_ref", "_view")

    _ref: ref[CountedView]

    def __init__(self, data_map: DataMap) -> None:
        self._map = data_map

    def __enter__(self) -> ReadView:
        data_map = self._map
        self._raw = data_map.begin_view(self)
        try:
            self._view = data_map._view_type(self._raw, data_map.databases, data_map.clock)
            return self._view
        except BaseException as error:
            self._raw.abort()
            self._raw = None
            data_map.end_view(self._ref)
            if isinstance(error, lmdb.Error):
                raise damaged(data_map.path, error) from error
            raise

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        data_map = self._map
        try:
            self._raw.abort()
        finally:
            # As `end_view` does, also behind an interrupt: a change of the map would wait for the view for ever.
            with data_map.lock:
                data_map._views.discard(self._ref)
                if data_map._changes:
                    data_map._views_done.notify_all()
            self._raw = None
            self._view.end()
        if error is None:
            return
        if is_damage(error):
            raise damaged(self._map.path, error) from error
        undecodable = self._view.named(error)
        if undecodable is not None:
            raise undecodable from error
