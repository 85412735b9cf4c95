"""A view with recorded reads: opened inside the writer gate, where the coming reads are noted; see `Writer`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from storage.disk.data_map import DataMap
from storage.disk.superblock import check_wall
from storage.disk.view import ReadView
from storage.process.writer_gate import OnWait
from storage.system_errors import system_refusal


class RecordedView(AbstractContextManager[ReadView]):
    """A view with recorded reads; see `Writer.recorded_view`."""

    __slots__ = ("_clock", "_context", "_gate", "_on_wait", "_path", "_record", "_timeout_s")

    def __init__(
        self, data_map: DataMap, record: Callable[[ReadView], None], timeout_s: float, on_wait: OnWait | None
    ) -> None:
        self._clock = data_map.clock
        self._context = data_map.view()
        self._gate = data_map.locks.gate
        self._path = data_map.path
        self._record = record
        self._timeout_s = timeout_s
        self._on_wait = on_wait

    def __enter__(self) -> ReadView:
        context, gate = self._context, self._gate
        try:
            gate.enter(self._timeout_s, self._on_wait)
            check_wall(self._clock.wall_ns())
            view = context.__enter__()
            try:
                self._record(view)
            except BaseException as error:
                context.__exit__(type(error), error, None)
                raise
        except OSError as error:
            refused = system_refusal(f"cannot use the files of {self._path}", error)
            if refused is None:
                raise
            raise refused from error
        finally:
            gate.leave()
        return view

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, traceback)
