"""The JVM of a session: start, stop, kill.

txnctl starts the JVM instead of PySpark, because PySpark does not expose the process during the start, and Ctrl-C in
these seconds must end the JVM too. The JVM runs in a separate process group, so that the terminal's Ctrl-C reaches only
txnctl. However txnctl dies, its end of the JVM's standard input closes, and the JVM ends. The output of the JVM goes to
a file.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from struct import unpack
from subprocess import PIPE, Popen, TimeoutExpired
from time import sleep
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue, JvmDied, TxnctlError
from txnctl.cli.python_child import child_environment
from txnctl.spark.runtime.failure_text import cause_in_log

if TYPE_CHECKING:
    from txnctl.spark.runtime.java import Java

_CONNECTION_FILE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that tells Spark's JVM where to write its port and secret, as set by PySpark."""

_NOT_FOR_TASKS: Final = ("TXNCTL_TXN", "TXNCTL_SESSION")
"""Variables with a meaning for this command only."""

_POLL_S: Final = 0.02
_STOP_S: Final = 10
_DEATH_S: Final = 5
"""Seconds for the end of a process whose connection is lost."""

_OUT_OF_MEMORY: Final = 52
"""Exit status of Spark's JVM after a java.lang.OutOfMemoryError."""

_AGAIN: Final = "Nothing half-done is in the store: run the job again"


def launch(
    options: Mapping[str, str], java: Java, pythons: Mapping[str, str], directory: str
) -> Popen[bytes]:
    """Start the JVM of a session; the JVM is ready when the file with its port exists.

    Args:
        options: of Spark.
        pythons: variables that name the Python of worker processes.
        directory: the directory for the JVM's port file and log.

    Raises:
        InvalidValue: Spark did not start.
        JvmDied: the JVM was killed.
    """
    from pyspark.find_spark_home import _find_spark_home

    connection = _connection(directory)
    environment = {
        **{name: value for name, value in child_environment().items() if name not in _NOT_FOR_TASKS},
        **pythons,
        "JAVA_HOME": java.home,
        "SPARK_CONNECT_MODE": "0",
        _CONNECTION_FILE: connection,
    }
    arguments = [os.path.join(_find_spark_home(), "bin", "spark-submit")]
    for name, value in options.items():
        arguments += ["--conf", f"{name}={value}"]
    with open(_log(directory), "wb") as log:
        jvm = Popen(
            [*arguments, "pyspark-shell"],
            stdin=PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            process_group=0,
        )
    try:
        while not os.path.exists(connection):
            if jvm.poll() is not None:
                raise death(jvm, directory) if jvm.returncode < 0 else _did_not_start(directory)
            sleep(_POLL_S)
    except BaseException:
        kill(jvm)
        raise
    return jvm


def port_and_secret(directory: str) -> tuple[int, str]:
    """Read port and secret of the JVM started with this directory."""
    with open(_connection(directory), "rb") as info:
        port, length = unpack(">ii", info.read(8))
        return port, info.read(length).decode()


def _connection(directory: str) -> str:
    return os.path.join(directory, "connection")


def _log(directory: str) -> str:
    return os.path.join(directory, "spark.log")


def log_of(directory: str) -> str:
    """Return the output of the JVM started with this directory."""
    try:
        with open(_log(directory), errors="replace") as log:
            return log.read()
    except OSError:
        return ""


def _did_not_start(directory: str) -> TxnctlError:
    return InvalidValue(
        f"Spark did not start: {cause_in_log(log_of(directory))}",
        hint="Check --master, --conf, and SPARK_HOME if set.",
    )


def death_seen(jvm: Popen[bytes], directory: str, error: BaseException) -> JvmDied | None:
    """Return the error about a JVM that died while a job ran; None if the JVM lives.

    Args:
        error: the exception of the job, or one raised from it: the loss of a connection precedes the end of the
            process by a moment.
    """
    if any(
        isinstance(cause, (JvmDied, OSError, EOFError)) or type(cause).__name__ == "Py4JNetworkError"
        for cause in _causes(error)
    ):
        with suppress(TimeoutExpired):
            jvm.wait(_DEATH_S)
    return None if jvm.poll() is None else death(jvm, directory)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, and those that it was raised from or in the handling of, each once: a chain may be a circle."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def death(jvm: Popen[bytes], directory: str) -> JvmDied:
    """Return the error about a JVM that has ended."""
    status, log = jvm.returncode, log_of(directory)
    if status == _OUT_OF_MEMORY or (status != -signal.SIGKILL and "java.lang.OutOfMemoryError" in log):
        return JvmDied(
            "the JVM of the job ran out of memory",
            hint=f"{_AGAIN} with more: --conf spark.driver.memory=4g.",
            status=status,
        )
    if status == -signal.SIGKILL:
        return JvmDied(
            "the JVM of the job was killed (signal 9), mostly because the machine had no memory left",
            hint=f"{_AGAIN}. It needs less memory with --master 'local[1]', and its JVM has a limit: "
            "--conf spark.driver.memory=1g.",
            signal=int(signal.SIGKILL),
        )
    if status < 0:
        return JvmDied(f"the JVM of the job was ended by signal {-status}", hint=f"{_AGAIN}.", signal=-status)
    return JvmDied(
        f"the JVM of the job ended with status {status}: {cause_in_log(log)}",
        hint=f"{_AGAIN}.",
        status=status,
    )


def stop(jvm: Popen[bytes]) -> None:
    """Close the JVM's standard input, which ends the JVM, and wait."""
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
    with suppress(TimeoutExpired):
        jvm.wait(_STOP_S)


def kill(jvm: Popen[bytes]) -> None:
    """Kill the JVM now. Python processes of the JVM end too, because their pipe to the JVM closes."""
    if jvm.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)
        jvm.wait()
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
