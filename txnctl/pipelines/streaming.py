"""A streaming query of a job: started, watched from outside, and ended by its first error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from storage.errors import TxnctlError
from txnctl.spark.runtime.job_errors import told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batch = Callable[[DataFrame, int], None]

_LOOK_S = 0.25
_STARTS_MAX = 12
_TOO_BUSY = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, which no option changes: on a busy machine that is too few."""


class Stream:
    """A query that hands its micro-batches to a function.

    One that could not start because the machine was too busy is started again from its checkpoint, a few times. The
    error of the function is kept as it was raised: the way through the JVM leaves only text of it.
    """

    def __init__(
        self, frame: DataFrame, batch: Batch, checkpoint: str, every: float | None, *, mode: str = "append"
    ) -> None:
        """Start it.

        Args:
            every: seconds between two micro-batches; None takes what is there, and ends.

        Raises:
            TxnctlError
        """
        writing = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
        if every is None:
            writing = writing.trigger(availableNow=True)
        else:
            writing = writing.trigger(processingTime=f"{int(every * 1000)} milliseconds")
        self._writing = writing.foreachBatch(self._take)
        self._batch = batch
        self._error: BaseException | None = None
        self._starts = 0
        self._start()

    def _start(self) -> None:
        self._starts += 1
        with told_as_ours():
            self._query = self._writing.start()

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        try:
            self._batch(frame, batch_id)
        except BaseException as error:
            self._error = error
            raise

    def has_ended(self, wait_s: float = 0.001) -> bool:
        """Whether it has done all it has to do; looked at for so long.

        Raises:
            TxnctlError: what it failed with.
        """
        try:
            with told_as_ours():
                return bool(self._query.awaitTermination(wait_s))  # type: ignore[arg-type]
        except TxnctlError as error:
            if _TOO_BUSY in error.message and self._starts < _STARTS_MAX:
                self._start()
                return False
            if self._error is None:
                raise
        with told_as_ours():
            raise self._error

    def wait(self, seconds: float | None = None) -> None:
        """Wait for its end, or stop it after so many seconds.

        Raises:
            TxnctlError: what it failed with.
        """
        until = None if seconds is None else monotonic() + seconds
        try:
            while not self.has_ended(_LOOK_S):
                if until is not None and monotonic() >= until:
                    return
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop it, between two micro-batches or in one."""
        with suppress(Exception):
            self._query.stop()
