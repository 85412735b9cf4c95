"""The streaming query of a job: start, supervision by the caller, and end at the first error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from storage.errors import TxnctlError
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batch = Callable[[DataFrame, int], None]

_POLL_S = 0.25
_START_ATTEMPTS_MAX = 12
_WORKER_START_FAILED = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, without an option: too few on a busy machine."""


class Stream:
    """A query that passes its micro-batches to a function.

    A query that fails to start on a busy machine is restarted from the checkpoint, a few times. An exception of the
    function is stored as raised, because the JVM returns only the text of an exception.
    """

    def __init__(
        self,
        frame: DataFrame,
        batch: Batch,
        checkpoint: str,
        interval_s: float | None,
        *,
        mode: str = "append",
    ) -> None:
        """Start the query.

        Args:
            interval_s: seconds between two micro-batches; None processes the messages present, and ends.

        Raises:
            TxnctlError
        """
        writing = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
        if interval_s is None:
            writing = writing.trigger(availableNow=True)
        else:
            writing = writing.trigger(processingTime=f"{int(interval_s * 1000)} milliseconds")
        self._writing = writing.foreachBatch(self._run_batch)
        self._batch = batch
        self._error: BaseException | None = None
        self._starts = 0
        self._start()

    def _start(self) -> None:
        self._starts += 1
        with as_txnctl_errors():
            self._query = self._writing.start()

    def _run_batch(self, frame: DataFrame, batch_id: int) -> None:
        try:
            self._batch(frame, batch_id)
        except BaseException as error:
            self._error = error
            raise

    def has_ended(self, wait_s: float = 0.001) -> bool:
        """Wait up to `wait_s`, and report whether the query has ended.

        Raises:
            TxnctlError: the query failed.
        """
        try:
            with as_txnctl_errors():
                return bool(self._query.awaitTermination(wait_s))  # type: ignore[arg-type]
        except TxnctlError as error:
            if _WORKER_START_FAILED in error.message and self._starts < _START_ATTEMPTS_MAX:
                self._start()
                return False
            if self._error is None:
                raise
        with as_txnctl_errors():
            raise self._error

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the end of the query, or stop the query after some seconds.

        Raises:
            TxnctlError: the query failed.
        """
        until = None if seconds is None else monotonic() + seconds
        try:
            while not self.has_ended(_POLL_S):
                if until is not None and monotonic() >= until:
                    return
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the query, also within a micro-batch."""
        with suppress(Exception):
            self._query.stop()
