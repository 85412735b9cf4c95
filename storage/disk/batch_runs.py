"""Runs of changes on batches, the same for every engine: the prologue first, then the change.

A change that holders refuse which any next batch might end runs again without these holders (docs/decisions/0032). So
does a change that a full topic refuses, after a step of the topic's upkeep, which stays if the topic is full still. A
change that only rehearses runs on an overlay over one view.

Must not know: the meaning of a change, and how an engine commits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Generic, Protocol, TypeVar

from storage.actions import Action, Hint
from storage.disk.schema import TXN_DEADLINES
from storage.disk.view import BatchContext, DurableRefusal, ReadView, WriteBatch
from storage.errors import Conflict, OutcomeUnknown, StoreInvalid, TopicFull
from storage.values.txn_id import TxnID

T = TypeVar("T")


def unknown_outcome(message: str, naming: int) -> OutcomeUnknown:
    """The error for a commit of unknown outcome, with the way to find out."""
    return OutcomeUnknown(message, hint=way_to_know(naming))


def way_to_know(naming: int, *, is_new: bool = False) -> Hint:
    """The hint about a commit of unknown outcome.

    Args:
        naming: as `Writer.write` takes it. A change that names no transaction has none to look at.
        is_new: the commit was to begin the transaction; if lost, the number goes to the next one.
    """
    if naming > 0:
        tells = "of another owner, it means that nothing is stored" if is_new else "it tells what is stored"
        show = Action("store.reports.show_transaction", TxnID(naming))
        return Hint(f"Open the store again and run `{{}}`: {tells}.", show)
    return Hint(
        "Open the store again. A send with the same sequence id is stored once, however often it is sent; without a "
        "sequence id, read the end of the topic first."
    )


class HolderEnds(Protocol):
    """Ends transactions that refuse a change, if any next batch might end them."""

    def find_due(self, batch: WriteBatch, holders: Sequence[int]) -> list[int]:
        """The holders that may be ended."""

    def end(self, batch: WriteBatch, due: Sequence[int]) -> None:
        """End holders that were found."""


class RunAgain(Exception):
    """The change was refused over holders that may be ended, or a full topic; both are noted in the task."""


class Task(Generic[T]):
    """A change to be run on a batch, and the arguments of `Writer.write`.

    Attributes:
        asked_ns: boot time at which the task asked for the writer gate.
        full: the refusals by full topics, on each of which a further batch does a step of upkeep before the change.
        in_the_way: holders that have refused the change, and that each further batch ends before the change.
        upgrades: whether the change brings a store of an earlier format to the present one.
    """

    __slots__ = ("asked_ns", "change", "dry_run", "full", "in_the_way", "naming", "upgrades")

    def __init__(self, change: Callable[[WriteBatch], T], naming: int, dry_run: bool, upgrades: bool) -> None:
        self.change = change
        self.naming = naming
        self.dry_run = dry_run
        self.full: list[TopicFull] = []
        self.in_the_way: list[int] = []
        self.upgrades = upgrades
        self.asked_ns = 0


class BatchRuns(ABC):
    """The part of a writer that no engine changes.

    Attributes:
        prologue: called at the start of a batch, with whether the prologue is due; a due one returns the next
            `prologue_due_ns`.
        holder_ends: ends holders that refuse a change; None ends none.
        make_room: does a step of upkeep on a full topic, by its id; whether the topic has room then.
        prologue_due_ns: the store clock from which the prologue is due. Before that time, a batch calls the prologue
            only while a deadline is recorded. A dropped batch leaves the prologue due.
        trims_on_the_way: whether the prologue may trim topics; gc does so itself, and counts.
    """

    def __init__(self) -> None:
        self.prologue: Callable[[WriteBatch, bool], int] | None = None
        self.holder_ends: HolderEnds | None = None
        self.make_room: Callable[[WriteBatch, int], bool] | None = None
        self.prologue_due_ns = 0
        self.trims_on_the_way = True

    def rehearse(self, change: Callable[[WriteBatch], T], naming: int = 0) -> T:
        """Run `change` on an overlay over one view and return its result: a dry run that keeps no writer waiting.

        Args:
            naming: as `write`.

        Raises:
            StoreNotFound, StoreInvalid (the wall clock), OldFormat, and the errors of `change`.
        """
        task = Task(change, naming, dry_run=True, upgrades=False)
        with self._rehearsing():
            while True:
                with suppress(RunAgain), self._view() as view:
                    return self._rehearse_once(view, task)

    def _rehearse_once(self, view: ReadView, task: Task[T]) -> T:
        batch = view.rehearsal(self._view_context(), task.naming)
        try:
            self._run_prologue(batch)
            return self._change(batch, task)
        except DurableRefusal as refusal:
            raise refusal.error from None
        except BaseException as error:
            ours = self._translated(error, batch)
            if ours is not None:
                raise ours from error
            raise
        finally:
            batch.end()

    def _change(self, batch: WriteBatch, task: Task[T]) -> T:
        """Run the change; drop the batch and begin anew where holders refuse the change that may be ended.

        Raises:
            RunAgain
            DurableRefusal: by the change, or because a topic is full still after a step of upkeep.
            TxnctlError: by the change.
        """
        if self.holder_ends is not None and task.in_the_way:
            self.holder_ends.end(batch, task.in_the_way)
        if self.make_room is not None and task.full:
            # The steps stay even if the last refusal holds.
            have_room = [self.make_room(batch, full.upkeep_of) for full in task.full]
            if not all(have_room):
                raise batch.refuse(task.full[-1])
        try:
            return task.change(batch)
        except (DurableRefusal, Conflict) as raised:
            error = raised.error if isinstance(raised, DurableRefusal) else raised
            if isinstance(error, TopicFull) and self._may_make_room(error, task):
                task.full.append(error)
                raise RunAgain from error
            if self.holder_ends is None or not isinstance(error, Conflict) or not error.held_by:
                raise
            due = self.holder_ends.find_due(batch, error.held_by)
            if not due:
                raise
            task.in_the_way += due
            raise RunAgain from error

    def _may_make_room(self, error: TopicFull, task: Task[T]) -> bool:
        known = [full.upkeep_of for full in task.full]
        return self.make_room is not None and error.upkeep_of not in (0, *known)

    def _run_prologue(self, batch: WriteBatch) -> int:
        """Call the prologue if due, or if a deadline is recorded; return the next `prologue_due_ns`."""
        is_due = batch.now_ns >= self.prologue_due_ns
        if self.prologue is None or not (is_due or batch.has_records(TXN_DEADLINES)):
            return self.prologue_due_ns
        next_due_ns = self.prologue(batch, is_due)
        return next_due_ns if is_due else self.prologue_due_ns

    # Of the engine

    @abstractmethod
    def _rehearsing(self) -> AbstractContextManager[object]:
        """Check that the store may be written, and translate errors of the system within the block."""

    @abstractmethod
    def _view(self) -> AbstractContextManager[ReadView]: ...

    @abstractmethod
    def _view_context(self) -> BatchContext:
        """The open store as a batch over a view needs it."""

    @abstractmethod
    def _translated(self, error: BaseException, batch: WriteBatch | None) -> StoreInvalid | None:
        """The error of ours for a disk that refuses a change, damage, or a record that does not decode."""
