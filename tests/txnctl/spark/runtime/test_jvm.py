"""The end of a JVM below a job."""

from __future__ import annotations

import subprocess
from pathlib import Path

from storage.errors import InvalidValue, TxnctlError
from txnctl.spark.runtime.jvm import death_seen


def raised_from(cause: Exception) -> TxnctlError:
    """The error of a program of the user, as `pipeline run` reports it."""
    error = TxnctlError("job.py, line 8")
    error.__cause__ = cause
    return error


def test_a_lost_connection_is_followed_by_the_end_of_the_process(tmp_path: Path) -> None:
    """The process is waited for, also where an error of the program was raised from the loss."""
    for error in (
        ConnectionRefusedError(111, "refused"),
        raised_from(ConnectionRefusedError(111, "refused")),
    ):
        # Real time: the process is waited for before it dies.
        dying = subprocess.Popen(["sh", "-c", "sleep 0.3; kill -9 $$"])
        died = death_seen(dying, str(tmp_path), error)
        assert died is not None
        assert "was killed (signal 9)" in died.message


def test_a_chain_of_causes_may_be_a_circle(tmp_path: Path) -> None:
    """Each exception of the chain is looked at once, whether the circle is of one exception, of two, or further in."""
    one, two, three = ValueError("1"), ValueError("2"), raised_from(ValueError("3"))
    one.__cause__ = one
    two.__context__ = raised_from(two)
    assert three.__cause__ is not None
    three.__cause__.__context__ = raised_from(three.__cause__)
    living = subprocess.Popen(["sleep", "60"])
    try:
        assert [death_seen(living, str(tmp_path), error) for error in (one, two, three)] == [None, None, None]
    finally:
        living.kill()
        living.wait()


def test_other_errors_do_not_wait(tmp_path: Path) -> None:
    """The JVM lives, and the error is that of the job."""
    living = subprocess.Popen(["sleep", "60"])
    try:
        assert death_seen(living, str(tmp_path), raised_from(ValueError("no number"))) is None
        assert death_seen(living, str(tmp_path), InvalidValue("no")) is None
    finally:
        living.kill()
        living.wait()
