"""The open environment of one store in this process: opening, closing, forking, and LMDB's own figures.

Must not know: the meaning of records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import lmdb

from storage.disk.counters import Counters
from storage.disk.environment import HolderProcess, ReaderSlot, Space
from storage.disk.lmdb import counters_file, directory, reserve_file
from storage.disk.lmdb.build_dir import remove_left_copies, remove_leftovers
from storage.disk.lmdb.commit_wait import LmdbCommitWait
from storage.disk.lmdb.counters_file import CountersFile
from storage.disk.lmdb.data_map import DataMap
from storage.disk.lmdb.lmdb_errors import DAMAGE, not_done
from storage.disk.lmdb.pages import check_pages, damaged_page
from storage.disk.lmdb.preallocation import Preallocation
from storage.disk.lmdb.read_cache import MappedReadCache
from storage.disk.lmdb.received_marks import MarksFile
from storage.disk.lmdb.recorded_view import RecordedView, await_commits, look_at_superblock
from storage.disk.lmdb.writer import LmdbWriter
from storage.disk.schema import Database
from storage.disk.superblock import Superblock
from storage.disk.view import WriteBatch
from storage.limits import LOCK_TIMEOUT_S
from storage.process.background_flush import Flusher
from storage.process.byte_locks import check_platform
from storage.process.clock import Clock
from storage.process.identity import describe, is_stopped, started
from storage.process.lock_file import open_locks, processes_with
from storage.process.writer_gate import OnWait
from storage.system_errors import refusing, system_refusal

if TYPE_CHECKING:
    from storage.disk.lmdb.store_build import DirectoryView

_FORK_WAIT_S: Final = 2.0
_CHUNK: Final = 1 << 20
_IN_PLACE_NS: Final = 1_000_000_000


class LmdbEnvironment:
    """The environment that all handles and threads of this process share.

    Attributes:
        view, fetcher, check_usable, check_written: methods of the `DataMap`.
        writer: the `Writer`, with `write`; see `recorded_view.py` for `recorded_view` and `look_at_superblock`.
    """

    has_directory = True
    is_moved = False
    may_open_anew = False

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
        self.read_cache = MappedReadCache(path, clock)
        self.received_marks = MarksFile(path)
        self._counters = CountersFile(path, clock)
        self.flusher = Flusher(clock)
        self._preallocation = Preallocation(os.path.join(path, directory.DATA))
        self.data_map = self.usability = DataMap(path, clock)
        self.writer = LmdbWriter(
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
        self.await_commits = partial(await_commits, self.data_map)
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
        self.locks = locks

    def _raise_refusal(self, error: BaseException) -> None:
        """Raise the error of storage where the system refused a call on a file of the store."""
        refused = system_refusal(f"cannot open {self.path}", error)
        if refused is not None:
            raise refused from error

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
        self.locks.close()
        self.data_map.failed = "the handle is closed"

    def adopt_server(self, batch: WriteBatch) -> str | None:  # noqa: ARG002
        """None: a directory has no server."""
        return None

    def end_move(self, incarnation: int) -> None:
        """Do nothing, as there is no server."""

    def cap_limit(self, seconds: float) -> None:
        """Do nothing: no read waits."""

    def reopen_for_writing(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """Switch to writing when a writing handle joins reading handles; if that fails, the readers go on as before."""
        with self.data_map.between_views():
            locks, before = open_locks(self.path, self.clock, read_only=False), self.locks
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
            self.locks = locks
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
            self.data_map.open(self.locks, read_only=self.read_only)

    # Forking

    def before_fork(self) -> None:
        """Wait until no batch and no view is open, so that the child can close the environment; see `forked`.

        A thread that forks inside its own batch or view would wait for itself, and a backup in a second thread may take
        long: after two seconds the fork goes on, and the child is refused to open this store anew.
        """
        self._is_still = self.locks.gate.stop_threads(_FORK_WAIT_S)
        if self._is_still:
            self._is_still = self.data_map.stop_views(_FORK_WAIT_S)
            if not self._is_still:
                self.locks.gate.let_threads_go()

    def after_fork(self) -> None:
        """Go on, in the parent."""
        if self._is_still:
            self.data_map.let_views_go()
            self.locks.gate.let_threads_go()

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
        self.locks.close()
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
        with self.data_map.view() as view:
            return view.commit

    def info(self) -> dict[str, int]:
        """LMDB's own figures: map size, pages, readers."""
        with self.data_map.lock:
            self.check_usable()
            return {**self.data_map.raw.info(), "psize": self.data_map.raw.stat()["psize"]}

    def server_status(self) -> None:
        return None

    def space(self) -> Space:
        """The bytes of the data file and of the file system below.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
            StoreInvalid: the disk does not say.
        """
        figures = self.info()
        try:
            file_bytes = directory.data_bytes(self.path)
            with refusing(f"cannot look at the disk of {self.path}"):
                disk = os.statvfs(self.path)
        except FileNotFoundError:
            # An open store is read on where its files went, but has no file at the path.
            self.locks.gate.check_in_place()
            raise
        return Space(
            file_bytes, (figures["last_pgno"] + 1) * figures["psize"], figures["map_size"],
            disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize,
        )  # fmt: skip

    def reserve_bytes(self) -> int:
        return reserve_file.kept_bytes(self.path)

    def counters(self, superblock: Superblock) -> Counters:
        return counters_file.read(self.path, superblock, self.clock)

    def gate_holder(self, *, watched: bool = False) -> HolderProcess | None:  # noqa: ARG002
        self.check_usable()
        gate = self.locks.gate
        if not gate.is_held():
            return None
        signature = gate.signature() or (0, 0)
        state = "stopped" if is_stopped(*signature) else "held"
        return HolderProcess(signature[0] or None, describe(*signature), state)

    def open_processes(self) -> list[HolderProcess]:
        return [
            HolderProcess(
                pid, describe(pid, started(pid)), "stopped" if is_stopped(pid, started(pid)) else "open"
            )
            for pid in processes_with(os.path.join(self.path, directory.LOCK))
        ]

    def reader_slots(self) -> list[ReaderSlot]:
        with self.data_map.lock:
            self.check_usable()
            text: str = self.data_map.raw.readers()
        lines = [line.split() for line in text.splitlines()]
        return [
            ReaderSlot(int(fields[0]), int(fields[2]) if fields[2].isdigit() else None)
            for fields in lines
            if len(fields) == 3 and fields[0].isdigit()
        ]

    def free_dead_readers(self) -> int:
        with self.data_map.lock:
            self.check_usable()
            freed: int = self.data_map.raw.reader_check()
        return freed

    def remove_leftovers(self) -> None:
        with suppress(OSError):
            remove_leftovers(self.path, inside_store=True)
        with suppress(OSError):
            remove_leftovers(os.path.dirname(self.path))
        with suppress(OSError):
            remove_left_copies(os.path.dirname(self.path), self.clock.wall_ns())

    def check_pages(
        self,
        commit: int,
        report: Callable[[int, str], None],
        progress: Callable[[str, int], None] | None,
        *,
        full: bool,
    ) -> bool | None:
        return check_pages(self.path, commit, report, progress, full=full)

    def digest(self) -> bytes:
        """A digest of the data file."""
        from hashlib import blake2b

        digest = blake2b()
        with open(os.path.join(self.path, directory.DATA), "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.digest()

    def commit_wait(self) -> LmdbCommitWait:
        return LmdbCommitWait(self)

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

    @contextmanager
    def copy_view(self) -> Iterator[DirectoryView]:
        """Open a view of all sealed records, for a copy.

        Raises:
            CorruptStore: a page is damaged. LMDB would copy it, or end the process.
        """
        from storage.disk.lmdb.store_build import DirectoryView

        self.check_usable()
        self._check_pages()
        total_bytes = directory.data_bytes(self.path)
        with self.view() as view:
            yield DirectoryView(view, total_bytes)

    def look_in_place(self) -> None:
        """Check, at most once a second, that the store is still at its path; for callers that wait.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        now_ns = self.clock.boot_ns()
        if now_ns - self._in_place_ns >= _IN_PLACE_NS:
            self._in_place_ns = now_ns
            self.locks.gate.check_in_place()
