"""Streaming queries of the jobs: started, watched from outside, and ended by their first error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from txnctl.spark.job_errors import told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    Batch = Callable[[DataFrame, int], None]

_LOOK_S = 0.25


def started(
    frame: DataFrame, batch: Batch, checkpoint: str, every: float | None, *, mode: str = "append"
) -> StreamingQuery:
    """Start a query that hands its micro-batches to a function.

    Args:
        every: seconds between two micro-batches; None takes what is there, and ends.
    """
    writing = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
    kept = Kept(batch)
    if every is None:
        writing = writing.trigger(availableNow=True)
    else:
        writing = writing.trigger(processingTime=f"{int(every * 1000)} milliseconds")
    with told_as_ours():
        query = writing.foreachBatch(kept).start()
    query.kept = kept  # type: ignore[attr-defined]
    return query


class Kept:
    """A function for `foreachBatch` whose error is kept as it was raised: the way through the JVM leaves only text."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.error: BaseException | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        try:
            self._batch(frame, batch_id)
        except BaseException as error:
            self.error = error
            raise


def wait(
    query: StreamingQuery, seconds: float | None, look: Callable[[StreamingQuery], None] | None = None
) -> None:
    """Wait for the end of a query, or stop it after so many seconds.

    Args:
        look: called several times a second meanwhile.

    Raises:
        TxnctlError: that of the query.
    """
    until = None if seconds is None else monotonic() + seconds
    kept: Kept = query.kept  # type: ignore[attr-defined]
    try:
        with told_as_ours():
            while not query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]
                if look is not None:
                    look(query)
                if until is not None and monotonic() >= until:
                    query.stop()
                    return
    except Exception:
        if kept.error is not None:
            with told_as_ours():
                raise kept.error from None
        raise
    finally:
        with suppress(Exception):
            query.stop()
