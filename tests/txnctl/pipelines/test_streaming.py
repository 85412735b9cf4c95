"""A stream that a busy machine did not let start is started again; what fails otherwise fails."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from storage.errors import TxnctlError
from txnctl.pipelines.streaming import Stream

BUSY = "Query [id = 1] terminated with exception: Python worker failed to connect back"


class Writing:
    """Stands for a DataStreamWriter, whose queries fail with these messages before one ends well."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.starts = 0

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: self

    def start(self) -> Writing:
        """Start another query."""
        self.starts += 1
        return self

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802
        """End, well or not."""
        if self.failures:
            raise PySparkException(message=self.failures.pop(0))
        return True


class Frame:
    """Stands for a streaming DataFrame."""

    def __init__(self, writing: Writing) -> None:
        self.writeStream = writing


def stream(writing: Writing) -> Stream:
    return Stream(Frame(writing), lambda _frame, _batch: None, "/checkpoint", None)  # type: ignore[arg-type]


def test_it_is_started_again_while_the_machine_is_too_busy() -> None:
    """From the same checkpoint, until it runs."""
    writing = Writing(BUSY, BUSY)
    stream(writing).wait()
    assert writing.starts == 3


def test_not_for_ever() -> None:
    """A machine that never lets it start is told of."""
    writing = Writing(*[BUSY] * 100)
    with pytest.raises(TxnctlError, match="failed to connect back"):
        stream(writing).wait()
    assert writing.starts == 12


def test_another_failure_is_the_end() -> None:
    """It is started once."""
    writing = Writing("Job aborted")
    with pytest.raises(TxnctlError, match="Job aborted"):
        stream(writing).wait()
    assert writing.starts == 1
