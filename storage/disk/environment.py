"""The open environment of one store in this process: opening, closing, forking, and LMDB's own figures.

Must not know: the meaning of records.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

import lmdb

from storage.disk import directory
from storage.disk.counters_file import CountersFile
from storage.disk.data_map import DataMap
from storage.disk.lmdb_errors import DAMAGE, not_done
from storage.disk.pages import check_pages, damaged_page
from storage.disk.preallocation import Preallocation
from storage.disk.read_cache import ReadCache
from storage.disk.received_marks import ReceivedMarks
from storage.disk.recorded_view import RecordedView, look_at_superblock
from storage.disk.schema import Database
from storage.disk.writer import Writer
from storage.limits import LOCK_TIMEOUT_S
from storage.process.background_flush import Flusher
from storage.process.byte_locks import check_platform
from storage.process.clock import Clock
from storage.process.lock_file import LockFile, open_locks
from storage.process.writer_gate import OnWait
from storage.system_errors import system_refusal

_FORK_WAIT_S: Final = 2.0
_IN_PLACE_NS: Final = 1_000_000_000


class Environment:
    """The environment that all handles and threads of this process share.

    Attributes:
        view, fetcher, check_usable, check_written: methods of the `DataMap`.
        writer: the `Writer`, with `write`; see `recorded_view.py` for `recorded_view` and `look_at_superblock`.
    """

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
        self.pid = os.getpid()
        self.read_cache = ReadCache(path, clock)
        self.received_marks = ReceivedMarks(path)
        self._counters = CountersFile(path, clock)
        self.flusher = Flusher(clock)
        self._preallocation = Preallocation(os.path.join(path, directory.DATA))
        self.data_map = DataMap(path, clock)
        self.writer = Writer(
            self.data_map, self._preallocation, self.read_cache, self.received_marks, self._counters
        )
        self.view, self.fetcher, self.check_usable = (
            self.data_map.view,
            self.data_map.fetcher,
            self.data_map.check_usable,
        )
        self.check_written = self.data_map.check_written
        self.write = self.writer.write
        self.recorded_view = partial(RecordedView, self.data_map)
        self.look_at_superblock = partial(look_at_superblock, self.data_map)
        self._is_still = False
        self._in_place_ns = 0
        check_platform()
        directory.check(path)
        locks = open_locks(path, clock, read_only=read_only)
        try:
            locks.share_store()
            self.data_map.open(locks, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)
        except BaseException as error:
            locks.close()
            self._raise_refusal(error)
            raise

    def _raise_refusal(self, error: BaseException) -> None:
        """Raise the error of storage where the system refused a call on a file of the store."""
        refused = system_refusal(f"cannot open {self.path}", error)
        if refused is not None:
            raise refused from error

    @property
    def lock_file(self) -> LockFile:
        return self.data_map.locks

    @property
    def format_number(self) -> int:
        """The format of the store."""
        return self.data_map.format_number

    @property
    def read_only(self) -> bool:
        return self.data_map.read_only

    def close(self) -> None:
        """Close the environment; every view must have ended."""
        self.flusher.stop()
        if self.pid == os.getpid():
            self.data_map.raw.close()
        self._preallocation.close()
        self.read_cache.close()
        self.received_marks.close()
        self._counters.close()
        self.lock_file.close()
        self.data_map.failed = "the handle is closed"

    def reopen_for_writing(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """Switch to writing when a writing handle joins reading handles; if that fails, the readers go on as before."""
        with self.data_map.between_views():
            locks, before = open_locks(self.path, self.clock, read_only=False), self.lock_file
            try:
                locks.share_store()
                self.data_map.raw.close()
                before.end_unlisted_reading()
                self.data_map.open(locks, read_only=False, timeout_s=timeout_s, on_wait=on_wait)
            except BaseException as error:
                locks.close()
                self.data_map.reopen(before, read_only=True, timeout_s=timeout_s)
                self._raise_refusal(error)
                raise
            before.close()

    def replace_data(self, path: str) -> None:
        """Replace the data file and go on with the new file; the caller holds the store lock alone."""
        with self.data_map.between_views():
            self.data_map.raw.close()
            self._preallocation.close()
            os.rename(path, os.path.join(self.path, directory.DATA))
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.data_map.open(self.lock_file, read_only=self.read_only)

    # Forking

    def before_fork(self) -> None:
        """Wait until no batch and no view is open, so that the child can close the environment; see `forked`.

        A thread that forks inside its own batch or view would wait for itself, and a backup in a second thread may take
        long: after two seconds the fork goes on, and the child is refused to open this store anew.
        """
        self._is_still = self.lock_file.gate.stop_threads(_FORK_WAIT_S)
        if self._is_still:
            self._is_still = self.data_map.stop_views(_FORK_WAIT_S)
            if not self._is_still:
                self.lock_file.gate.let_threads_go()

    def after_fork(self) -> None:
        """Go on, in the parent."""
        if self._is_still:
            self.data_map.let_views_go()
            self.lock_file.gate.let_threads_go()

    def forked(self) -> bool:
        """Close the parent's environment, in the child: LMDB must not be used across a fork.

        Return False if the environment stays open, because a view or a call of the parent is in it.

        Reader slots and kernel locks belong to a process. With no transaction of LMDB open (and none kept for reuse),
        closing releases nothing of the parent, and the child can open the store anew.
        """
        self._preallocation.close()
        self.read_cache.close()
        self.received_marks.close()
        self._counters.close()
        self.lock_file.close()
        self.flusher.forked()
        self.data_map.failed = (
            "the store was opened before this process forked; open the store anew in the child"
        )
        if self._is_still:
            self.data_map.drop()
        return self._is_still

    # LMDB's own figures

    def last_commit(self) -> int:
        """The number of the last commit of any process; cheap enough for polling."""
        with self.data_map.lock:
            self.check_usable()
            number: int = self.data_map.raw.info()["last_txnid"]
        return number

    def now_ns_without(self, database: Database) -> int | None:
        """The store clock, if this process made the last commit of all and has counted no record of a database then.

        None: only a view can tell. An unknown count costs no more than the look at the number of the last commit.

        Raises:
            StoreClosed
        """
        data_map = self.data_map
        kept = data_map.kept
        with data_map.lock:
            if data_map.failed is not None:
                self.check_usable()
            is_last = kept.has(data_map.raw, data_map.raw.info()["last_txnid"])
        # Another thread may begin a batch meanwhile, which takes the count back before the batch changes the database.
        if not is_last or kept.counts.get(database) != 0 or kept.superblock is None:
            return None
        return kept.superblock.now_ns(self.clock)

    def visible_commit(self) -> int:
        """The number of the last commit that views show. LMDB counts a commit by as long as an fsync before that."""
        raw = self.data_map.begin_view()
        try:
            number: int = raw.id()
        finally:
            raw.abort()
            self.data_map.end_view()
        return number

    def info(self) -> dict[str, int]:
        """LMDB's own figures: map size, pages, readers."""
        with self.data_map.lock:
            self.check_usable()
            return {**self.data_map.raw.info(), "psize": self.data_map.raw.stat()["psize"]}

    def readers(self) -> str:
        """LMDB's reader table, as LMDB prints it."""
        with self.data_map.lock:
            self.check_usable()
            text: str = self.data_map.raw.readers()
        return text

    def check_readers(self) -> int:
        """Free the slots of dead readers; return the number of freed slots."""
        with self.data_map.lock:
            self.check_usable()
            freed: int = self.data_map.raw.reader_check()
        return freed

    def copy(self, descriptor: int) -> None:
        """Write a compacted, consistent copy of the data file to an open descriptor, from one view.

        Raises:
            CorruptStore: a page is damaged. LMDB would copy it, or end the process.
        """
        self.check_usable()
        self._check_pages()
        # The view counts: neither a change of the map nor a fork may come while LMDB copies.
        with self.view():
            try:
                self.data_map.raw.copyfd(descriptor, compact=True)
            except lmdb.Error as error:
                if isinstance(error, DAMAGE):
                    raise
                raise not_done(self.path, "copied", error) from error

    def _check_pages(self) -> None:
        damage: list[tuple[int, str]] = []
        is_sound: bool | None = None
        while is_sound is None:
            with self.view() as view:
                is_sound = check_pages(self.path, view.commit, lambda *damaged: damage.append(damaged))
        if damage:
            raise damaged_page(self.path, *damage[0])

    def look_in_place(self) -> None:
        """Check, at most once a second, that the store is still at its path; for callers that wait.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        now_ns = self.clock.boot_ns()
        if now_ns - self._in_place_ns >= _IN_PLACE_NS:
            self._in_place_ns = now_ns
            self.lock_file.gate.check_in_place()
