"""Looks inside the writer gate: a view with recorded reads, and the superblock alone. Neither costs a flush.

A writer either sees what is noted there, or committed before the look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from storage.disk.lmdb.data_map import CountedView, DataMap
from storage.disk.superblock import WALL_END_NS, Superblock, check_wall
from storage.disk.view import ReadView
from storage.errors import StoreInvalid
from storage.process.writer_gate import OnWait
from storage.system_errors import raise_refusal

T = TypeVar("T")
_SHOWN_TRIES: Final = 20
_SHOWN_POLL_S: Final = 0.05


class RecordedView(CountedView):
    """A view that is opened inside the writer gate, where `record` notes the coming reads; then the gate is left."""

    __slots__ = ("_on_wait", "_record", "_timeout_s")

    def __init__(
        self,
        data_map: DataMap,
        record: Callable[[ReadView, int], None],
        timeout_s: float,
        on_wait: OnWait | None,
    ) -> None:
        """Args:
        record: given the view and the wall time in nanoseconds.

        Raises:
            StoreClosed, StoreInvalid, OldFormat: the store is not written by this process.
        """
        if data_map.read_only or data_map.failed is not None or data_map.is_old:
            _refuse(data_map)
        self._map = data_map
        self._record = record
        self._timeout_s = timeout_s
        self._on_wait = on_wait

    def __enter__(self) -> ReadView:
        data_map = self._map
        gate = data_map.locks.gate
        opened: ReadView | None = None
        try:
            try:
                gate.enter(self._timeout_s, self._on_wait)
                wall_ns = data_map.clock.wall_ns()
                if not 0 <= wall_ns < WALL_END_NS:
                    check_wall(wall_ns)
                view = opened = super().__enter__()
                kept = data_map.kept
                number = data_map.raw.info()["last_txnid"]
                if kept.commit == (data_map.raw, number):
                    view.known = kept
                elif self._raw.id() != number:
                    # Of a killed writer, whose writes were judged before this read: they may not show up behind it.
                    self.__exit__(None, None, None)
                    opened = None
                    data_map.show_last_commit()
                    view = opened = super().__enter__()
                self._record(view, wall_ns)
                # Outside the gate the next batch may change the records.
                view.known = None
            except OSError as error:
                raise_refusal(f"cannot use the files of {data_map.path}", error)
            finally:
                gate.leave()
            return view
        except BaseException as error:
            # Also an interrupt of `leave`: a change of the map would wait for the view for ever.
            if opened is not None:
                self.__exit__(type(error), error, None)
            raise


def look_at_superblock(
    data_map: DataMap, look: Callable[[Superblock, int], T], timeout_s: float, on_wait: OnWait | None
) -> T:
    """Run `look` inside the gate on the superblock of the last commit, and return the result.

    A newcomer, which backs off from a gate in use. Where the last commit is of this process, no view is opened.

    Args:
        look: given the superblock, which it leaves as it is, and the wall time in nanoseconds.

    Raises:
        WriterBusy, StoreClosed, OldFormat, StoreInvalid, and the errors of `look`.
    """
    if data_map.read_only or data_map.failed is not None or data_map.is_old:
        _refuse(data_map)
    gate = data_map.locks.gate
    try:
        gate.enter(timeout_s, on_wait, backs_off=True)
        wall_ns = data_map.clock.wall_ns()
        if not 0 <= wall_ns < WALL_END_NS:
            check_wall(wall_ns)
        superblock = data_map.kept_superblock()
        if superblock is not None:
            return look(superblock, wall_ns)
        with data_map.view() as view:
            if view.commit == data_map.raw.info()["last_txnid"]:
                return look(view.superblock, wall_ns)
        data_map.show_last_commit()
        with data_map.view() as view:
            return look(view.superblock, wall_ns)
    except OSError as error:
        raise_refusal(f"cannot use the files of {data_map.path}", error)
    finally:
        gate.leave()


def await_commits(data_map: DataMap, timeout_s: float, on_wait: OnWait | None) -> None:
    """Wait until views show the last commit that LMDB counts: the commit of a killed writer may be counted alone.

    Raises:
        WriterBusy
        StoreInvalid: the handle is open for reading, and shows no commit of another process.
    """
    if not _is_counted_alone(data_map):
        return
    if not data_map.read_only:
        look_at_superblock(data_map, lambda *_: None, timeout_s, on_wait)
        return
    # A living writer shows its commit at once.
    for _ in range(_SHOWN_TRIES):
        data_map.clock.sleep(_SHOWN_POLL_S)
        if not _is_counted_alone(data_map):
            return
    raise StoreInvalid(
        "a process was killed in its commit, which is stored and shows with the next write",
        hint="Open the store with read_only=False, or write to it once.",
    )


def _is_counted_alone(data_map: DataMap) -> bool:
    """Whether the last commit is counted, and not shown."""
    with data_map.lock:
        number = data_map.raw.info()["last_txnid"]
    with data_map.view() as view:
        return bool(view.commit < number)


def _refuse(data_map: DataMap) -> None:
    """Raise the error for a store that this process does not write."""
    data_map.check_usable()
    if data_map.read_only:
        raise StoreInvalid(
            "the store is open for reading only, and a serializable read is recorded",
            hint="Open it with read_only=False, or read at read-committed.",
        )
    data_map.check_written()
