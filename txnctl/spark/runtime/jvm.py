"""The JVM of a session: start, stop, kill.

txnctl starts the JVM instead of PySpark, because PySpark does not expose the process during the start, and Ctrl-C in
these seconds must end the JVM too. The JVM runs in a separate process group, so that the terminal's Ctrl-C reaches only
txnctl. However txnctl dies, its end of the JVM's standard input closes, and the JVM ends. The output of the JVM goes to
a file.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from struct import unpack
from subprocess import PIPE, Popen, TimeoutExpired
from time import sleep
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue, TxnctlError
from txnctl.cli.python_child import child_environment

if TYPE_CHECKING:
    from txnctl.spark.runtime.java import Java

_CONNECTION_FILE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that tells Spark's JVM where to write its port and secret, as set by PySpark."""

_NOT_FOR_TASKS: Final = ("TXNCTL_TXN", "TXNCTL_SESSION")
"""Variables with a meaning for this command only."""

_POLL_S: Final = 0.02
_STOP_S: Final = 10
_TAIL_LINES: Final = 5


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
                raise _did_not_start(directory)
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


def _did_not_start(directory: str) -> TxnctlError:
    with open(_log(directory), errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    output = " | ".join(lines[-_TAIL_LINES:]) or "no output"
    return InvalidValue(
        f"Spark did not start: {output}", hint="Check --master, --conf, and SPARK_HOME if set."
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
