"""The writer of a store on a server: one transaction holds the writer gate, and sends all changes with its commit.

Holds: the first statement of a batch takes the gate, and nothing is read before it, so that each statement sees what is
committed. A batch is two round trips and those of its reads. After a commit with an unknown outcome the handle is of no
use any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar, cast

from storage import faults
from storage.disk.batch_runs import BatchRuns, RunAgain, Task, unknown_outcome
from storage.disk.kept_records import KeptRecords
from storage.disk.postgres.binary import as_bool, as_bytes, bytea_array, int8
from storage.disk.postgres.floors import joined
from storage.disk.postgres.gate import GatePass, GateWait
from storage.disk.postgres.layout import (
    APPLY,
    DURABLE,
    TABLE_ENTRIES,
    TABLE_HEADS,
    TABLE_KV,
    RecordPlace,
)
from storage.disk.postgres.mark_table import EventTally
from storage.disk.postgres.session import BEGIN, COMMIT, Overtaken, Step
from storage.disk.postgres.snapshot import Changes, ServerBatch
from storage.disk.postgres.speculation import Speculation
from storage.disk.reserve import ReserveShare
from storage.disk.schema import HEADS
from storage.disk.view import SUPERBLOCK_KEY, BatchContext, DurableRefusal, ReadView, WriteBatch
from storage.errors import OutcomeUnknown, ServerLost, StoreInvalid, WriterBusy
from storage.limits import LOCK_TIMEOUT_S
from storage.process.writer_gate import OnWait

if TYPE_CHECKING:
    from storage.disk.postgres.environment import PostgresEnvironment

T = TypeVar("T")


class _Unproven(Exception):
    """A batch that was made without the gate comes to something that no commit proves to be of the last commit."""


class PostgresWriter(BatchRuns):
    """See the module."""

    def __init__(self, environment: PostgresEnvironment) -> None:
        super().__init__()
        self._environment = environment
        self.kept = KeptRecords()
        self._tally = EventTally()
        # The stored superblock of the last commit of this process; and whether no other process has committed since the
        # commit before, so that the next batch may be made without the gate.
        self._superblock = b""
        self._is_alone = False

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
        return self._write_ahead(Task(change, naming, dry_run, False), timeout_s, on_wait)

    def upgrade(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float,
        on_wait: OnWait | None,
    ) -> T:
        """Run a change as `write` does: a store on a server has the present format from the beginning."""
        return self._write_ahead(Task(change, naming, dry_run, False), timeout_s, on_wait)

    @contextmanager
    def _rehearsing(self) -> Iterator[None]:
        self._environment.check_written()
        yield

    def _view(self) -> AbstractContextManager[ReadView]:
        return self._environment.view()

    def _view_context(self) -> BatchContext:
        return self._environment.context(is_batch=False)

    def _write_ahead(self, task: Task[T], timeout_s: float, on_wait: OnWait | None) -> T:
        environment = self._environment
        task.asked_ns = environment.clock.boot_ns()
        while True:
            wait = GateWait(timeout_s, on_wait)
            is_alone, self._is_alone = self._is_alone, False
            if is_alone and not task.dry_run:
                before = len(task.in_the_way)
                # Made anew inside the gate unless it is stored: its reads may be of several commits, so that a
                # refusal, a result without changes, and holders to be ended prove nothing.
                with suppress(RunAgain, Overtaken, _Unproven):
                    with environment.speculating(self.kept.commit[1], self._superblock, wait) as known:
                        result = self._write_once(task, known, wait)
                    self._is_alone = True
                    return result
                del task.in_the_way[before:]
                task.full.clear()
            with suppress(RunAgain), environment.gate(wait) as passed:
                return self._write_once(task, passed, None)

    def _write_once(self, task: Task[T], at: GatePass | Speculation, wait: GateWait | None) -> T:
        """Run the task on the last commit.

        Args:
            at: the last commit; inside the gate, or as this process knows it.
            wait: the wait for the gate with the commit; None inside the gate.
        """
        environment, number = self._environment, at.number + 1
        refusal: DurableRefusal | None = None
        batch: WriteBatch | None = None
        is_made = False
        try:
            reads = environment.reads.claim(at.number)
            changes = Changes(at.snapshot(reads, number))
            kept = self.kept.take(self, number)
            known = kept.superblock if kept is not None else None
            recorded_ns = (known or at.superblock()).last_clock_ns
            batch = ServerBatch(changes, environment.context(is_batch=True), task.naming, kept)
            batch.now_ns = environment.server_clock.keep_jump(batch.superblock, recorded_ns)
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
                    is_made = True
                    changed = self._commit(changes, batch, task.asked_ns, wait)
                    environment.reads.advance(reads, number, changed)
                    self.kept.keep(self, number, batch)
                    self._is_alone = kept is not None
                elif wait is not None:
                    raise _Unproven
                self.prologue_due_ns = due_ns
        except BaseException as error:
            if wait is not None and not is_made and _depends_on_reads(error):
                raise _Unproven from error
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

    def _commit(
        self, changes: Changes, batch: WriteBatch, asked_ns: int, wait: GateWait | None
    ) -> dict[RecordPlace, dict[bytes, bytes | None]]:
        """Send the changes and the commit in one round trip; return the changes by database.

        Raises:
            Overtaken: another commit came first; nothing was stored.
            OutcomeUnknown: the connection was lost, or the commit did not reach the standby.
            WriterBusy
        """
        environment = self._environment
        batch.finish()
        changed = changes.changed()
        number = changes.id()
        parameters, superblock = _parameters(changed, number, changes.floor(changed))
        passes = environment.known_passes
        known = None if passes is None else int8(passes)
        steps: list[Step] = [
            (APPLY, (environment.lock_class, as_bytes(wait is not None), *parameters, known))
        ]
        steps += environment.read_tables.pending
        steps += environment.timestamps.steps()
        now_ns = environment.clock.boot_ns()
        self._tally.note(batch.counted, now_ns - asked_ns)
        if self._tally.is_due(now_ns):
            steps.append(self._tally.step(now_ns))
        # Without a BEGIN the steps up to the sync are one transaction, which the sync commits.
        if wait is None or environment.is_replicated:
            steps = [*([] if wait is None else [(BEGIN, ())]), *steps, (COMMIT, ())]
        if environment.is_replicated:
            steps.append((DURABLE, ()))
        faults.reach("environment.before_commit")
        try:
            rows, is_waited_for = environment.end_batch(steps, wait)
        except ServerLost as error:
            if environment.lost_unsent:
                raise
            raise self._unknown(error.message, batch.naming) from error
        if environment.is_replicated and not (as_bool(rows[-1][0][0]) and is_waited_for):
            raise self._unknown(
                "the commit is on the primary alone: it did not wait for the standby", batch.naming
            )
        self._superblock = superblock
        environment.timestamps.note_stored()
        environment.note_commit(number)
        faults.reach("environment.after_commit")
        return changed

    def flush_tally(self) -> None:
        """Send the counts that no commit has taken along; called before the sessions are closed."""
        if not self._tally.is_empty:
            self._environment.run_unflushed(self._tally.step(self._environment.clock.boot_ns()))

    def _unknown(self, why: str, naming: int) -> OutcomeUnknown:
        environment = self._environment
        environment.fail("a commit had no known outcome")
        return unknown_outcome(
            f"whether the last change of {environment.path} is stored is not known: {why}", naming
        )


def _depends_on_reads(error: BaseException) -> bool:
    """Whether a batch that is made again may not meet the error: no interrupt, loss of the server, or locked table."""
    return isinstance(error, Exception) and not isinstance(
        error, (RunAgain, ServerLost, WriterBusy, _Unproven)
    )


def _parameters(
    changed: Mapping[RecordPlace, Mapping[bytes, bytes | None]], number: int, floor: bytes
) -> tuple[list[bytes | None], bytes]:
    """The parameters of `apply` for the changes of a commit, behind the gate; and the superblock among them, with the
    floor of the deadlines behind it.
    """
    gone: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
    keys: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
    values: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
    superblock = b""
    for place, records in changed.items():
        prefix, table = place.prefix, place.table
        for key, value in records.items():
            if key == SUPERBLOCK_KEY and place.name == HEADS.name:
                superblock = joined(cast("bytes", value), floor)
                continue
            if value is None:
                gone[table].append(prefix + key)
            else:
                keys[table].append(prefix + key)
                values[table].append(value)
    parameters: list[bytes | None] = [int8(number - 1), superblock]
    for table in (TABLE_KV, TABLE_ENTRIES, TABLE_HEADS):
        arrays = (gone[table], keys[table], values[table])
        parameters += [bytea_array(array) if array else None for array in arrays]
    return parameters, superblock
