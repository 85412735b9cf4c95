"""The writer: inside the writer gate, run a change on a batch and commit the batch durably.

Holds: batches of all processes pass one gate (process/writer_gate.py). A batch is one durable commit (one fdatasync and
one synchronous write) or nothing, in the store at its path. After a commit with an unknown outcome the handle is
latched: every later call fails.

Must not know: the meaning of a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

import lmdb

from storage import faults
from storage.disk.batch_runs import BatchRuns, RunAgain, Task, unknown_outcome
from storage.disk.lmdb import data_file
from storage.disk.lmdb.counters_file import CountersFile
from storage.disk.lmdb.data_map import DataMap
from storage.disk.lmdb.lmdb_errors import DAMAGE, damaged, is_damage, refused
from storage.disk.lmdb.preallocation import Preallocation
from storage.disk.lmdb.read_cache import MappedReadCache
from storage.disk.lmdb.received_marks import MarksFile
from storage.disk.lmdb.reserve_file import Reserve
from storage.disk.reserve import ReserveShare, setting
from storage.disk.view import BatchContext, DurableRefusal, ReadView, WriteBatch
from storage.errors import StoreFull, StoreInvalid, TxnctlError
from storage.limits import LOCK_TIMEOUT_S
from storage.process.writer_gate import OnWait
from storage.system_errors import raise_refusal, refusing

T = TypeVar("T")
_SPARE_BYTES: Final = 1 << 16


class LmdbWriter(BatchRuns):
    """The writer of one environment.

    Attributes:
        kept: left by the last commit of this process.
    """

    def __init__(
        self,
        data_map: DataMap,
        preallocation: Preallocation,
        read_cache: MappedReadCache,
        received_marks: MarksFile,
        counters: CountersFile,
    ) -> None:
        super().__init__()
        self._map = data_map
        self._preallocation = preallocation
        self._reserve = Reserve(data_map.path)
        self._read_cache = read_cache
        self._received_marks = received_marks
        self._counters = counters
        self.kept = data_map.kept
        self._last_context: BatchContext | None = None

    @property
    def uses_reserve(self) -> bool:
        """Whether the batch runs on the reserve of a full disk, and so does nothing but its change."""
        return self._reserve.is_given_up

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        dry_run: bool = False,
        share: ReserveShare = ReserveShare.NONE,
    ) -> T:
        """Run `change` on a write batch and commit the batch durably; return the result of `change`.

        `change` may run again (after the map has grown, or without a holder that refused it), so it must touch nothing
        but the batch. If `change` raises, the batch is dropped, except after `raise batch.refuse(error)`. A batch
        without changes is not committed. The first batch of a boot leaves the start of the store clock, even if
        `change` changes nothing or is refused.

        Args:
            naming: the transaction that the caller names, which the prologue must not reap; 0 for none.
            dry_run: run everything, then drop the batch.
            share: of the reserve, which the change may use on a full disk; see `reserve.py`.

        Raises:
            WriterBusy, StoreFull, OutcomeUnknown, StoreNotFound, StoreInvalid (the wall clock), OldFormat, and the
            errors of `change`.
        """
        data_map = self._map
        if data_map.failed is not None or data_map.read_only or data_map.is_old:
            data_map.check_written()
        return self._write(Task(change, naming, dry_run, False), timeout_s, on_wait, share)

    @contextmanager
    def _rehearsing(self) -> Iterator[None]:
        data_map = self._map
        data_map.check_written()
        data_map.locks.gate.check_in_place()
        with refusing(f"cannot use the files of {data_map.path}"):
            yield

    def _view(self) -> AbstractContextManager[ReadView]:
        return self._map.view()

    def _view_context(self) -> BatchContext:
        return self._context(self._map.databases)._replace(catch_up=self._read_cache.catch_up_outside)

    def _context(self, databases: dict[str, object]) -> BatchContext:
        data_map = self._map
        cache, marks = self._read_cache, self._received_marks
        return BatchContext(databases, data_map.clock, data_map.locks, cache, marks, cache.catch_up)

    def upgrade(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float,
        on_wait: OnWait | None,
    ) -> T:
        """Make the databases that a store of an earlier format lacks and run `change`, which writes the format record.

        Databases and changes are one durable commit: a kill leaves the store in one format or the other. The caller
        holds the store lock alone. Args and raises as `write`.
        """
        task = Task(change, naming, dry_run, upgrades=True)
        return self._write(task, timeout_s, on_wait, ReserveShare.WHOLE)

    def _write(self, task: Task[T], timeout_s: float, on_wait: OnWait | None, share: ReserveShare) -> T:
        """Enter the gate, run the task until it needs no more room, and leave the gate."""
        gate, data_bytes = self._map.locks.gate, 0
        task.asked_ns = self._map.clock.boot_ns()
        try:
            gate.enter(timeout_s, on_wait)
            gate.check_in_place()
            while True:
                try:
                    return self._write_once(task)
                except RunAgain:
                    continue
                except lmdb.MapFullError:
                    self._map.resize(self._map.raw.info()["map_size"] * 2, inside_gate=True)
                except lmdb.MapResizedError:
                    self._map.resize(0, inside_gate=True)
                except StoreFull:
                    if self._reserve.is_given_up:
                        # The refused pages lie behind the last one in use, on the room of the reserve.
                        self._preallocation.cut(data_bytes)
                        raise
                    if not self._reserve.give_up(share):
                        raise
                    data_bytes = self._preallocation.file_bytes()
        except OSError as error:
            raise_refusal(f"cannot use the files of {self._map.path}", error)
        finally:
            if self._reserve.is_given_up:
                self._keep_reserve()
            gate.leave()

    def keep_reserve(self, timeout_s: float = LOCK_TIMEOUT_S, on_wait: OnWait | None = None) -> None:
        """Give the reserve the size that the store's setting says, now.

        Raises:
            WriterBusy
        """
        gate = self._map.locks.gate
        try:
            gate.enter(timeout_s, on_wait)
            self._keep_reserve()
        finally:
            gate.leave()

    def _keep_reserve(self) -> None:
        try:
            with self._map.view() as view:
                size = setting(view)
        except TxnctlError:
            self._reserve.is_given_up = False
        else:
            self._reserve.keep(size)

    def _write_once(self, task: Task[T]) -> T:
        dry_run, data_map, kept = task.dry_run, self._map, self.kept
        refusal: DurableRefusal | None = None
        batch: WriteBatch | None = None
        raw = data_map.raw.begin(write=True)
        try:
            # Inside: the traceback of an interrupt (Ctrl-C) would keep the transaction of LMDB, and its lock.
            number = raw.id()
            databases = data_file.all_databases(data_map.raw, raw) if task.upgrades else data_map.databases
            context = self._last_context
            if context is None or context.databases is not databases or context.locks is not data_map.locks:
                context = self._last_context = self._context(databases)
            batch = WriteBatch(raw, context, task.naming, kept.take(data_map.raw, number))
            faults.reach("environment.before_change")
            due_ns = self._run_prologue(batch)
            try:
                result = self._change(batch, task)
            except DurableRefusal as raised:
                refusal = raised
                batch.undo()
            except TxnctlError as error:
                if dry_run or task.upgrades or not batch.starts_clock:
                    raise
                # Keep the start of the clock alone. Were every change of this boot refused, no lease would end.
                raw.abort()
                raw = data_map.raw.begin(write=True)
                batch, refusal = WriteBatch(raw, context, task.naming), DurableRefusal(error)
                due_ns = 0
            if not dry_run:
                batch.write_open()
            if dry_run or not (batch.superblock.changes or batch.starts_clock):
                raw.abort()
            else:
                self._commit(raw, batch)
                kept.keep(data_map.raw, number, batch)
                self._counters.count_batch(batch.counted, batch.superblock, task.asked_ns)
                if task.upgrades:
                    data_map.upgraded(databases)
            if not dry_run:
                self.prologue_due_ns = due_ns
        except BaseException as error:
            raw.abort()
            ours = self._translated(error, batch)
            if ours is not None:
                raise ours from error
            raise
        if refusal is not None:
            raise refusal.error
        return result

    def _translated(self, error: BaseException, batch: WriteBatch | None) -> StoreInvalid | None:
        """The error of ours for a disk that refuses a change, a damaged page, or a record that does not decode."""
        if isinstance(error, lmdb.DiskError):
            return refused(self._map.path, error)
        if isinstance(error, DAMAGE) or (isinstance(error, SystemError) and is_damage(error)):
            return damaged(self._map.path, error)
        return batch.named(error) if batch is not None else None

    def _commit(self, raw: Any, batch: WriteBatch) -> None:
        reserve = self._reserve
        batch.finish()
        # The reserve comes before preallocation. After a change that uses it, `write` takes the rest back.
        reserve_bytes = None
        if not reserve.is_given_up:
            now_ns = batch.clock.boot_ns()
            if now_ns >= reserve.look_ns:
                reserve_bytes = reserve.missing(batch, now_ns)
            if reserve_bytes is None:
                room, needed = self._preallocation, batch.bytes + _SPARE_BYTES
                room.left -= needed
                if room.left < 0:
                    room.provide(
                        (self._map.raw.info()["last_pgno"] + 1) * self._map.raw.stat()["psize"], needed
                    )
        faults.reach("environment.before_commit")
        try:
            raw.commit()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            raise self._failed_commit(error, batch.naming) from error
        self._map.locks.gate.announce_commit()
        if reserve_bytes is not None:
            reserve.keep(reserve_bytes)
        faults.reach("environment.after_commit")

    def _failed_commit(self, error: lmdb.Error, naming: int) -> TxnctlError:
        """The error for a commit that the disk failed: of unknown outcome if the environment has failed with it."""
        path = self._map.path
        try:
            self._map.raw.begin(write=True).abort()
        except lmdb.Error:
            self._map.failed = "a commit failed while its last page was written"
            return unknown_outcome(f"the disk failed during the commit in {path}: {error}", naming)
        return refused(path, error)
