"""The writer of a store on a server: one transaction holds the writer gate, and sends all changes with its commit.

Holds: the first statement of a batch takes the gate, and nothing is read before it, so that each statement sees what is
committed. A batch is two round trips and those of its reads. After a commit with an unknown outcome the handle is of no
use any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar, cast

from storage import faults
from storage.actions import Action, Hint
from storage.disk.batch_runs import BatchRuns, RunAgain, Task
from storage.disk.kept_records import KeptRecords
from storage.disk.postgres.binary import bytea_array, int8
from storage.disk.postgres.layout import (
    COMMITTED,
    DELETE,
    DURABLE,
    FORGET_COMMITS,
    NOTIFY,
    PUT_ENTRIES,
    PUT_HEADS,
    PUT_KV,
    TABLE_ENTRIES,
    TABLE_HEADS,
    TABLE_KV,
)
from storage.disk.postgres.mark_table import count_step
from storage.disk.postgres.session import COMMIT, Statement, Step
from storage.disk.postgres.snapshot import Changes
from storage.disk.reserve import ReserveShare
from storage.disk.schema import HEADS
from storage.disk.view import SUPERBLOCK_KEY, BatchContext, DurableRefusal, ReadView, WriteBatch
from storage.errors import OutcomeUnknown, ServerLost, StoreInvalid
from storage.limits import LOCK_TIMEOUT_S
from storage.process.writer_gate import OnWait

if TYPE_CHECKING:
    from storage.disk.postgres.environment import PostgresEnvironment
    from storage.disk.postgres.gate import GatePass

T = TypeVar("T")

_COMMITS_KEPT: Final = 16
_FORGET_EVERY: Final = 64
_PUT: Final[dict[str, Statement]] = {TABLE_KV: PUT_KV, TABLE_ENTRIES: PUT_ENTRIES, TABLE_HEADS: PUT_HEADS}


class PostgresWriter(BatchRuns):
    """See the module."""

    def __init__(self, environment: PostgresEnvironment) -> None:
        super().__init__()
        self._environment = environment
        self.kept = KeptRecords()

    @property
    def uses_reserve(self) -> bool:
        return False

    def keep_reserve(self, timeout_s: float = LOCK_TIMEOUT_S, on_wait: OnWait | None = None) -> None:
        """Do nothing: the disk is the server's."""

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        dry_run: bool = False,
        share: ReserveShare = ReserveShare.NONE,  # noqa: ARG002
    ) -> T:
        """Run `change` on a batch and commit the batch durably; args and raises as `environment.Writer.write`."""
        self._environment.check_written()
        return self._write(Task(change, naming, dry_run, False), timeout_s, on_wait)

    def upgrade(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float,
        on_wait: OnWait | None,
    ) -> T:
        """Run a change as `write` does: a store on a server has the present format from the beginning."""
        return self._write(Task(change, naming, dry_run, False), timeout_s, on_wait)

    @contextmanager
    def _rehearsing(self) -> Iterator[None]:
        self._environment.check_written()
        yield

    def _view(self) -> AbstractContextManager[ReadView]:
        return self._environment.view()

    def _view_context(self) -> BatchContext:
        return self._environment.context(is_batch=False)

    def _write(self, task: Task[T], timeout_s: float, on_wait: OnWait | None) -> T:
        environment = self._environment
        task.asked_ns = environment.clock.boot_ns()
        while True:
            with environment.gate(timeout_s, on_wait) as passed:
                try:
                    return self._write_once(task, passed)
                except RunAgain:
                    continue

    def _write_once(self, task: Task[T], passed: GatePass) -> T:
        environment, number = self._environment, passed.number + 1
        refusal: DurableRefusal | None = None
        batch: WriteBatch | None = None
        try:
            changes = Changes(passed.snapshot(number))
            kept = self.kept.take(self, number)
            recorded_ns = (
                kept.superblock if kept is not None and kept.superblock is not None else passed.superblock()
            ).last_clock_ns
            batch = WriteBatch(changes, environment.context(is_batch=True), task.naming, kept)
            batch.now_ns = environment.server_clock.settle(batch.superblock, recorded_ns)
            faults.reach("environment.before_change")
            due_ns = self._run_prologue(batch)
            try:
                result = self._change(batch, task)
            except DurableRefusal as raised:
                refusal = raised
                batch.undo()
            if not task.dry_run:
                batch.write_open()
                if batch.superblock.changes or batch.starts_clock:
                    self._commit(changes, batch, number, task.asked_ns)
                    self.kept.keep(self, number, batch)
                self.prologue_due_ns = due_ns
        except BaseException as error:
            ours = self._translated(error, batch)
            if ours is not None:
                raise ours from error
            raise
        if refusal is not None:
            raise refusal.error
        return result

    def _translated(self, error: BaseException, batch: WriteBatch | None) -> StoreInvalid | None:
        return batch.named(error) if batch is not None else None

    # Committing

    def _commit(self, changes: Changes, batch: WriteBatch, number: int, asked_ns: int) -> None:
        """Send the changes and the commit in one round trip.

        Raises:
            OutcomeUnknown: the connection was lost, or the commit did not reach the standby.
        """
        environment = self._environment
        batch.finish()
        steps = self._steps(changes, number)
        steps += environment.read_tables.pending
        steps.append(count_step(batch.counted, environment.clock.boot_ns() - asked_ns))
        steps += (COMMIT, ()), (DURABLE, ())
        faults.reach("environment.before_commit")
        passed = environment.passed
        try:
            is_replicated = passed.end(steps)
        except ServerLost as error:
            raise self._unknown(f"the connection was lost during the commit: {error.message}") from error
        if environment.is_replicated and not is_replicated:
            raise self._unknown("the commit is on the primary alone: it did not wait for the standby")
        environment.wake((NOTIFY, (environment.lock_class,)))
        faults.reach("environment.after_commit")

    def _steps(self, changes: Changes, number: int) -> list[Step]:
        """The steps that store the changes as commit `number`."""
        deleted: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        keys: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        values: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        superblock = b""
        for place in self._environment.places.values():
            prefix, table = place.prefix, place.table
            for key, value in changes.changed(place).items():
                if key == SUPERBLOCK_KEY and place.name == HEADS.name:
                    superblock = cast("bytes", value)
                    continue
                if value is None or table == TABLE_HEADS:
                    deleted[table].append(prefix + key)
                if value is not None:
                    keys[table].append(prefix + key)
                    values[table].append(bytes(value))
        steps: list[Step] = [(DELETE[table], (bytea_array(gone),)) for table, gone in deleted.items() if gone]
        for table, put in keys.items():
            if put:
                arrays = (bytea_array(put), bytea_array(values[table]))
                steps.append((_PUT[table], (*arrays, int8(number)) if table == TABLE_HEADS else arrays))
        steps.append((COMMITTED, (int8(number), superblock)))
        if number % _FORGET_EVERY == 0:
            steps.append((FORGET_COMMITS, (int8(number - _COMMITS_KEPT),)))
        return steps

    def _unknown(self, why: str) -> OutcomeUnknown:
        environment = self._environment
        environment.fail("a commit had no known outcome")
        return OutcomeUnknown(
            f"whether the last change of {environment.path} is stored is not known: {why}",
            hint=Hint(
                "Open the store again and run `{}`, or send the sequence id again.",
                Action("store.reports.show_transaction", "TXN"),
            ),
        )
