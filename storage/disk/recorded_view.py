"""A view with recorded reads: opened inside the writer gate, where the coming reads are noted; see `Writer`."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.data_map import CountedView, DataMap
from storage.disk.superblock import check_wall
from storage.disk.view import ReadView
from storage.process.writer_gate import OnWait
from storage.system_errors import system_refusal


class RecordedView(CountedView):
    """A view with recorded reads; see `Writer.recorded_view`."""

    __slots__ = ("_on_wait", "_record", "_timeout_s")

    def __init__(
        self, data_map: DataMap, record: Callable[[ReadView], None], timeout_s: float, on_wait: OnWait | None
    ) -> None:
        self._map = data_map
        self._record = record
        self._timeout_s = timeout_s
        self._on_wait = on_wait

    def __enter__(self) -> ReadView:
        gate = self._map.locks.gate
        try:
            gate.enter(self._timeout_s, self._on_wait)
            check_wall(self._map.clock.wall_ns())
            view = super().__enter__()
            try:
                self._record(view)
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        except OSError as error:
            refused = system_refusal(f"cannot use the files of {self._map.path}", error)
            if refused is None:
                raise
            raise refused from error
        finally:
            gate.leave()
        return view
