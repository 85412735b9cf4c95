"""The only import of lmdb: opening, views and write batches, map growth, the writer gate, sync.

Holds: no operation keeps a view while it waits; a write batch is one durable commit (two fsyncs) or nothing; batches
of all processes pass one gate, which can be interrupted and names its holder.

Must not know: what the records mean.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import lmdb

from storage import faults, place, schema
from storage.clock import Clock
from storage.codec import unpack, unseal, unsealed
from storage.errors import (
    CorruptStore,
    NotAStore,
    NotPermitted,
    OutcomeUnknown,
    ReadersFull,
    StoreClosed,
    StoreFull,
    StoreInvalid,
    StoreNotFound,
    UnknownFormat,
)
from storage.flusher import Flusher
from storage.headroom import Headroom
from storage.lease import FILE_NAME, LockFile, check_platform
from storage.limits import (
    LOCK_TIMEOUT_S,
    MAP_BYTES_FALLBACK,
    MAP_BYTES_SPARE,
    MAP_BYTES_WANTED,
    READERS_MAX,
    WRITE_BYTES_TARGET,
)
from storage.read_cache import ReadCache
from storage.schema import ALL, STORE, Database
from storage.view import DurableRefusal, ReadView, WriteBatch

T = TypeVar("T")
OnWait = Callable[[str, float], None]
_FORK_WAIT_S = 2.0
_IN_PLACE_NS = 1_000_000_000
_SPARE_BYTES = 1 << 16
_WRITE_BYTES_MAX = 2 * WRITE_BYTES_TARGET
_FULL_WORDS = ("No space left", "File too large", "quota exceeded", "ENOSPC")


class Environment:
    """The open LMDB environment of one store in this process; shared by all its handles and threads."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        *,
        read_only: bool,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
    ) -> None:
        self.path = path
        self.clock = clock
        self.read_only = read_only
        self.prologue: Callable[[WriteBatch], None] | None = None
        self.pid = os.getpid()
        self._failed: str | None = None
        self._headroom = Headroom(os.path.join(path, place.DATA))
        self._views = 0
        self._views_lock = threading.RLock()
        self._views_done = threading.Condition(self._views_lock)
        self._growing = False
        self._is_still = False
        self._in_place_ns = 0
        self.read_cache = ReadCache(path, clock)
        self.flusher = Flusher(clock)
        check_platform()
        place.check(path)
        _make_reader_table(path)
        self.lock_file = _open_locks(path, clock, read_only)
        try:
            self.lock_file.share_store()
            self._open(timeout_s, on_wait)
        except BaseException:
            self.lock_file.close()
            raise

    def _open(
        self, timeout_s: float = LOCK_TIMEOUT_S, on_wait: OnWait | None = None, *, inside_gate: bool = False
    ) -> None:
        self._raw = _open_raw(self.path, self.read_only)
        try:
            try:
                _check_format(self._raw, self.path)
            except lmdb.ReadersFullError:
                raise _readers_full(self.path) from None
            if self.read_only or inside_gate:
                self._databases = _open_databases(self._raw, self.path, self.read_only)
                return
            self._raw.reader_check()
            try:
                self.lock_file.enter_gate(timeout_s, on_wait)
                self._databases = _open_databases(self._raw, self.path, read_only=False)
            finally:
                self.lock_file.leave_gate()
        except BaseException:
            # LMDB opens a file once in a process: an environment left open would refuse the next attempt.
            self._raw.close()
            raise

    def close(self) -> None:
        """Close it; every view must be done."""
        self.flusher.stop()
        if self.pid == os.getpid():
            self._raw.close()
        self._headroom.close()
        self.read_cache.close()
        self.lock_file.close()
        self._failed = "it is closed"

    def reopen_for_writing(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """A handle that writes joins handles that only read; if it may not, those go on as before."""
        with self._views_done:
            while self._views:
                self._views_done.wait()
            locks, before = _open_locks(self.path, self.clock, read_only=False), self.lock_file
            try:
                locks.share_store()
                self._raw.close()
                self.lock_file, self.read_only = locks, False
                self._open(timeout_s, on_wait)
            except BaseException:
                locks.close()
                self.lock_file, self.read_only = before, True
                with suppress(lmdb.Error):
                    self._raw.close()
                self._open()
                raise
            before.close()

    def before_fork(self) -> None:
        """Let no batch and no view be open while this process forks: see `forked`.

        A thread that forks inside one of its own would wait for itself: after two seconds the fork goes on, and the
        child cannot open this store anew.
        """
        self._is_still = self.lock_file.stop_threads(_FORK_WAIT_S)
        if self._is_still:
            self._views_done.acquire()
            self._is_still = self._views_done.wait_for(lambda: not self._views, _FORK_WAIT_S)
            if not self._is_still:
                self._views_done.release()
                self.lock_file.let_threads_go()

    def after_fork(self) -> None:
        """In the parent: go on."""
        if self._is_still:
            self._views_done.release()
            self.lock_file.let_threads_go()

    def forked(self) -> None:
        """In the child: close what belongs to the parent. LMDB must not be used across a fork.

        With no transaction of LMDB open (and none kept for reuse), closing gives back nothing of the parent's: reader
        slots and kernel locks are by process. Then the child can open the store anew.
        """
        self._headroom.close()
        self.read_cache.close()
        self.lock_file.close()
        self.flusher.forked()
        self._failed = "it was opened before this process forked; open the store anew in the child"
        if self._is_still:
            with suppress(lmdb.Error):
                self._raw.close()

    def last_commit(self) -> int:
        """A number that grows with every commit of any process; cheap enough to ask often."""
        self.check_usable()
        number: int = self._raw.info()["last_txnid"]
        return number

    def info(self) -> dict[str, Any]:
        """LMDB's own figures: map size, pages, readers."""
        self.check_usable()
        return {**self._raw.info(), "psize": self._raw.stat()["psize"]}

    def readers(self) -> str:
        """LMDB's reader table as it prints it."""
        self.check_usable()
        text: str = self._raw.readers()
        return text

    def check_readers(self) -> int:
        """Free the slots of readers that died; how many."""
        self.check_usable()
        freed: int = self._raw.reader_check()
        return freed

    def copy(self, descriptor: int) -> None:
        """Write a compacted, consistent copy of the data file to an open descriptor, from one view."""
        self.check_usable()
        try:
            self._raw.copyfd(descriptor, compact=True)
        except lmdb.Error as error:
            raise StoreInvalid(f"{self.path} could not be copied: {error}") from error

    def replace_data(self, path: str) -> None:
        """Put another data file in place of ours; the caller has the store for itself. Handles go on with it."""
        with self._views_done:
            while self._views:
                self._views_done.wait()
            self._raw.close()
            self._headroom.close()
            self._headroom = Headroom(os.path.join(self.path, place.DATA))
            os.rename(path, os.path.join(self.path, place.DATA))
            directory = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
            self._open()

    def view(self) -> _ViewContext:
        """`with environment.view() as view:` one consistent view."""
        return _ViewContext(self)

    def fetch(
        self,
        database: Database,
        key: bytes,
        alone: int,
        follow: Callable[[bytes], tuple[Database, bytes] | None],
    ) -> tuple[bytes | None, bytes | None]:
        """A record and the one that it refers to, from one view of their own, checked.

        As `with view() as v: v.get(...)`, at a third of its cost.

        Args:
            alone: the first byte of records that refer to no other.
            follow: where the second one is, given the first.

        Raises:
            StoreClosed, CorruptStore, ReadersFull
        """
        if self._failed is not None:
            self.check_usable()
        # While the lock is held the map cannot change, nor the process fork: the view need not be counted.
        with self._views_lock:
            if not self._growing:
                try:
                    raw = self._raw.begin()
                    try:
                        data = raw.get(key, db=self._databases[database.name])
                        if data is None:
                            return None, None
                        first = unsealed(database, key, data)
                        if first[0] == alone:
                            return first, None
                        return first, self._fetch_second(raw, follow(first))
                    finally:
                        raw.abort()
                except lmdb.Error:
                    pass  # a change of the map, or something damaged: the long way says which
        with self.view() as view:
            payload = view.get(database, key)
            if payload is None:
                return None, None
            first = bytes(payload)
            where = follow(first)
            second = None if where is None else view.get(*where)
            return first, None if second is None else bytes(second)

    def _fetch_second(self, raw: Any, where: tuple[Database, bytes] | None) -> bytes | None:
        if where is None:
            return None
        data = raw.get(where[1], db=self._databases[where[0].name])
        return None if data is None else unsealed(*where, data)

    @contextmanager
    def recorded_view(
        self, record: Callable[[ReadView], None], timeout_s: float, on_wait: OnWait | None
    ) -> Iterator[ReadView]:
        """A view that is opened inside the writer gate, where `record` notes what will be read in it.

        So whoever writes either sees the note, or had committed before the view was opened. The gate is left before
        the view is handed out. Costs no fsync.
        """
        self.check_usable()
        if self.read_only:
            raise StoreInvalid(
                "the store is open for reading only, and a serializable read is recorded",
                hint="Open it with read_only=False, or read at read-committed.",
            )
        context = _ViewContext(self)
        try:
            self.lock_file.enter_gate(timeout_s, on_wait)
            view = context.__enter__()
            try:
                record(view)
            except BaseException as error:
                context.__exit__(type(error), error, None)
                raise
        finally:
            self.lock_file.leave_gate()
        try:
            yield view
        except BaseException as error:
            context.__exit__(type(error), error, None)
            raise
        context.__exit__(None, None, None)

    def _begin_view(self) -> Any:
        while True:
            self.check_usable()
            with self._views_done:
                while self._growing:
                    self._views_done.wait()
                self._views += 1
            try:
                return self._raw.begin()
            except lmdb.MapResizedError:
                self._end_view()
                self._resize(0)
            except lmdb.ReadersFullError:
                self._end_view()
                if self._raw.reader_check():
                    continue
                raise _readers_full(self.path) from None
            except BaseException:
                self._end_view()
                raise

    def _end_view(self) -> None:
        with self._views_done:
            self._views -= 1
            if self._growing:
                self._views_done.notify_all()

    def _resize(self, size: int, *, inside_gate: bool = False) -> None:
        """Change the map, or take over another process's change (0), while no view of this process is open.

        Raises:
            StoreFull: the process may not have so much address space; the handle goes on with what it had.
        """
        with self._views_done:
            self._growing = True
            while self._views:
                self._views_done.wait()
            try:
                self._raw.set_mapsize(size)
            except (MemoryError, lmdb.Error) as error:
                self._reopen(inside_gate)
                raise StoreFull(
                    f"{self.path} needs more address space than this process may have: {error}",
                    hint="Raise the limit (ulimit -v). All that was acknowledged is safe.",
                ) from error
            finally:
                self._growing = False
                self._views_done.notify_all()

    def _reopen(self, inside_gate: bool) -> None:
        """After a failed change of the map py-lmdb has dropped the environment: open it again as it was."""
        with suppress(lmdb.Error):
            self._raw.close()
        try:
            self._open(inside_gate=inside_gate)
        except StoreInvalid as error:
            self._failed = f"its map could not change, and it could not be opened again: {error.message}"

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        dry_run: bool = False,
    ) -> T:
        """Run `change` on a write batch and commit it durably; the result of `change`.

        `change` may run again (after the map has grown), so it touches nothing but the batch. If it raises, nothing
        of the batch is kept, but for `raise batch.refuse(error)`. A batch that changed nothing is not committed.

        Args:
            naming: the transaction that the caller names, which the prologue must not reap; 0 for none.
            dry_run: run everything, then drop the batch.

        Raises:
            WriterBusy, StoreFull, OutcomeUnknown, StoreNotFound, and what `change` raises.
        """
        self.check_usable()
        if self.read_only:
            raise StoreInvalid("the store is open for reading only", hint="Open it with read_only=False.")
        try:
            self.lock_file.enter_gate(timeout_s, on_wait)
            self.check_in_place()
            while True:
                try:
                    return self._write_once(change, naming, dry_run)
                except lmdb.MapFullError:
                    self._grow()
                except lmdb.MapResizedError:
                    self._resize(0, inside_gate=True)
        finally:
            self.lock_file.leave_gate()

    def _write_once(self, change: Callable[[WriteBatch], T], naming: int, dry_run: bool) -> T:
        raw = self._raw.begin(write=True)
        refusal: DurableRefusal | None = None
        try:
            batch = WriteBatch(
                raw, self._databases, self.clock, self.lock_file, self.read_cache, naming, dry_run
            )
            faults.reach("environment.before_change")
            if self.prologue is not None:
                self.prologue(batch)
            try:
                result = change(batch)
            except DurableRefusal as raised:
                refusal = raised
            if dry_run or not batch.head.changes:
                raw.abort()
            else:
                batch.finish()
                self._make_room(batch.bytes + _SPARE_BYTES)
                faults.reach("environment.before_commit")
                self._commit(raw)
                faults.reach("environment.after_commit")
        except lmdb.DiskError as error:
            raw.abort()
            raise _full(self.path, error) from error
        except (
            lmdb.BadTxnError,  # what LMDB says of all that follows a page that it could not read
            lmdb.CorruptedError,
            lmdb.PageNotFoundError,
            lmdb.PageFullError,
            lmdb.CursorFullError,
        ) as error:
            raw.abort()
            raise damaged(self.path, error) from error
        except BaseException:
            raw.abort()
            raise
        if refusal is not None:
            raise refusal.error
        return result

    def _make_room(self, wanted: int) -> None:
        if self._headroom.spend(wanted):
            figures = self._raw.info()
            self._headroom.provide((figures["last_pgno"] + 1) * self._raw.stat()["psize"], wanted)

    def _commit(self, raw: Any) -> None:
        try:
            raw.commit()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            try:
                self._raw.begin(write=True).abort()
            except lmdb.Error:
                self._failed = "a commit failed while its last page was written"
                raise OutcomeUnknown(
                    f"the disk failed during the commit in {self.path}: {error}",
                    hint="Open the store again and look: `txnctl transactions show`, or send the sequence id again.",
                ) from error
            raise _full(self.path, error) from error

    def _grow(self) -> None:
        self._resize(self._raw.info()["map_size"] * 2, inside_gate=True)

    def check_usable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, forked, or latched after a failed commit.
        """
        if self._failed is not None:
            raise StoreClosed(f"this handle of {self.path} cannot be used: {self._failed}")

    def look_in_place(self) -> None:
        """For whoever waits: `check_in_place`, once a second.

        Raises:
            StoreNotFound
        """
        now_ns = self.clock.boot_ns()
        if now_ns - self._in_place_ns >= _IN_PLACE_NS:
            self._in_place_ns = now_ns
            self.check_in_place()

    def check_in_place(self) -> None:
        """What is written into removed files nobody would ever read, and nobody else would ever commit to them.

        Raises:
            StoreNotFound: the store was removed, moved or replaced since it was opened.
        """
        if not self.lock_file.is_in_place():
            raise StoreNotFound(
                f"the store at {self.path} was removed, moved or replaced while it was open",
                hint="What is at that path now, if anything, is another store: open it anew.",
            )


class _ViewContext:
    __slots__ = ("_environment", "_raw")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __enter__(self) -> ReadView:
        environment = self._environment
        self._raw = environment._begin_view()
        try:
            return ReadView(self._raw, environment._databases, environment.clock)
        except BaseException as error:
            self._raw.abort()
            environment._end_view()
            if isinstance(error, lmdb.Error):
                raise damaged(environment.path, error) from error
            raise

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._raw.abort()
        self._environment._end_view()
        if isinstance(error, lmdb.Error):
            raise damaged(self._environment.path, error) from error


def damaged(path: str, error: Exception) -> CorruptStore:
    """The error for a page of LMDB that cannot be right."""
    return CorruptStore(
        f"a page of {path} is damaged: {error}",
        hint="Run `txnctl store verify --full`, then restore a backup.",
    )


def _open_locks(path: str, clock: Clock, read_only: bool) -> LockFile:
    lock_path = os.path.join(path, FILE_NAME)
    try:
        return LockFile(lock_path, clock, writable=not read_only)
    except FileNotFoundError:
        raise NotAStore(f"{path} is not a whole store: {FILE_NAME} is missing") from None
    except OSError as error:
        raise NotPermitted(f"cannot open {lock_path}: {error.strerror}") from None


def _make_reader_table(path: str) -> None:
    try:
        place.make_reader_table(path)
    except OSError as error:
        raise NotPermitted(f"cannot create {path}/{place.LMDB_LOCK}: {error.strerror}") from None


def _open_raw(path: str, read_only: bool) -> Any:
    """The raw environment, with as large a map as the process may have.

    Raises:
        StoreFull, CorruptStore, NotPermitted, StoreInvalid
    """
    size = os.stat(os.path.join(path, place.DATA)).st_size
    for map_bytes in (MAP_BYTES_WANTED, max(MAP_BYTES_FALLBACK, 2 * size), size + MAP_BYTES_SPARE):
        try:
            raw = lmdb.open(
                path, map_size=map_bytes, readonly=read_only, create=False, mode=0o600, max_dbs=64,
                max_readers=READERS_MAX, max_spare_txns=0,
            )  # fmt: skip
        except (MemoryError, lmdb.MemoryError):
            continue
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            raise CorruptStore(f"{path} cannot be opened: {error}", hint="Restore a backup.") from error
        except lmdb.LockError as error:
            raise NotPermitted(
                f"{path} cannot be locked: {error}",
                hint="Two containers with separate process ids cannot share a store: give them one pid namespace.",
            ) from error
        except lmdb.ReadersFullError:
            raise _readers_full(path) from None
        except (lmdb.ReadonlyError, PermissionError) as error:
            raise NotPermitted(f"{path} cannot be opened: {error}") from error
        except lmdb.Error as error:
            raise StoreInvalid(f"{path} cannot be opened: {error}") from error
        _check_length(raw, path)
        return raw
    raise StoreFull(
        f"no address space for the map of {path}, which has {size:,} bytes",
        hint="Raise the limit on address space (ulimit -v).",
    )


def _readers_full(path: str) -> ReadersFull:
    return ReadersFull(
        f"all {READERS_MAX} reader slots of {path} are taken",
        hint="Close some readers; `txnctl store readers` in one of them shows who they are.",
    )


def _check_length(raw: Any, path: str) -> None:
    """Refuse a truncated file: touching a missing page would kill the process."""
    needed = (raw.info()["last_pgno"] + 1) * raw.stat()["psize"]
    size = os.stat(os.path.join(path, place.DATA)).st_size
    if size < needed:
        raw.close()
        raise CorruptStore(
            f"{path}/{place.DATA} is truncated: it has {size} of {needed} bytes", hint="Restore a backup."
        )


def _open_databases(raw: Any, path: str, read_only: bool) -> dict[str, Any]:
    """Handles of all named databases.

    py-lmdb keeps a handle only if the transaction that opened it can write, or if none is given: a store opened for
    writing therefore opens them inside the writer gate.
    """
    try:
        if read_only:
            return {db.name: raw.open_db(db.name.encode(), create=False) for db in ALL}
        with raw.begin(write=True) as view:
            return {db.name: raw.open_db(db.name.encode(), txn=view, create=False) for db in ALL}
    except lmdb.Error as error:
        raise CorruptStore(f"{path} lacks a database: {error}", hint="Restore a backup.") from error


def _check_format(raw: Any, path: str) -> None:
    """That the file is a store of the format we know; reads only, so that a refused one is left untouched."""
    with raw.begin() as view:
        try:
            data = view.get(b"format", db=raw.open_db(STORE.name.encode(), txn=view, create=False))
        except lmdb.Error:
            raise NotAStore(f"{path} is an LMDB file, but not a txnctl store") from None
    if data is None:
        raise NotAStore(f"{path} is not a whole store: it has no format record")
    number = unpack(unseal(STORE, b"format", data))[0]
    if number != schema.FORMAT_NUMBER:
        raise UnknownFormat(
            f"{path} has format {number}; this release reads format {schema.FORMAT_NUMBER}",
            hint="Use the release that wrote it. It was left untouched.",
            format=number,
        )


def _full(path: str, error: Exception) -> StoreInvalid:
    text = str(error)
    is_short_write = "Input/output error" in text and not _has_room(path)
    if is_short_write or any(words in text for words in _FULL_WORDS):
        return StoreFull(
            f"no room for the change in {path}: {text}",
            hint="Free some space. All that was acknowledged is safe.",
        )
    return StoreInvalid(f"the disk refused a change in {path}: {text}", hint="Nothing of it was stored.")


def _has_room(path: str) -> bool:
    """Whether a store transaction would fit: LMDB calls a write that a full disk cut short an input/output error."""
    import resource

    disk, limit = os.statvfs(path), resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    size = os.stat(os.path.join(path, place.DATA)).st_size
    is_limited = limit != resource.RLIM_INFINITY and size + _WRITE_BYTES_MAX > limit
    return disk.f_bavail * disk.f_frsize >= _WRITE_BYTES_MAX and not is_limited


def create(
    path: str, clock: Clock, first_records: Callable[[Clock], dict[Database, dict[bytes, bytes]]]
) -> None:
    """Write a new data file in the directory `path`: all databases, and these sealed records.

    Raises:
        StoreFull
    """
    try:
        raw = lmdb.open(path, map_size=1 << 24, mode=0o600, max_dbs=64, max_readers=READERS_MAX)
        try:
            handles = {db.name: raw.open_db(db.name.encode()) for db in ALL}
            faults.reach("store.create.before_format")
            with raw.begin(write=True) as view:
                for database, records in first_records(clock).items():
                    for key, data in records.items():
                        view.put(key, data, db=handles[database.name])
        finally:
            raw.close()
    except lmdb.Error as error:
        raise _full(path, error) from error
