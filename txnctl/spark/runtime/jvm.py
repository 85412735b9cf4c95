"""The JVM of a session: started, let go, killed.

It is started here and not by PySpark, which does the same but keeps the process to itself while it starts: Ctrl-C in
these seconds must end it too. It runs in a process group of its own, so the terminal's Ctrl-C reaches us alone; it ends
by itself when our end of its standard input closes, however we die. What it prints goes to a file.
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

if TYPE_CHECKING:
    from txnctl.spark.runtime.java import Java

_CONNECTION_FILE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that tells Spark's JVM where to write its port and secret, as PySpark itself does it."""

_NOT_FOR_TASKS: Final = ("TXNCTL_TXN", "TXNCTL_SESSION")
"""Variables that mean this command alone."""

_LOOK_S: Final = 0.02
_STOP_S: Final = 10
_TAIL_LINES: Final = 5


def launch(options: Mapping[str, str], java: Java, pythons: Mapping[str, str], place: str) -> Popen[bytes]:
    """Start the JVM of a session; it is ready when it has written its port.

    Args:
        options: of Spark.
        pythons: variables that name the Python to start beside it.
        place: a directory for what it writes.

    Raises:
        InvalidValue: Spark did not start.
    """
    from pyspark.find_spark_home import _find_spark_home

    connection = _connection(place)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _NOT_FOR_TASKS},
        **pythons,
        "JAVA_HOME": java.home,
        "PYTHONPATH": _path(),
        "SPARK_CONNECT_MODE": "0",
        _CONNECTION_FILE: connection,
    }
    words = [os.path.join(_find_spark_home(), "bin", "spark-submit")]
    for name, value in options.items():
        words += ["--conf", f"{name}={value}"]
    with open(_log(place), "wb") as log:
        jvm = Popen(
            [*words, "pyspark-shell"], stdin=PIPE, stdout=log, stderr=log, env=environment, process_group=0
        )
    try:
        while not os.path.exists(connection):
            if jvm.poll() is not None:
                raise _did_not_start(place)
            sleep(_LOOK_S)
    except BaseException:
        kill(jvm)
        raise
    return jvm


def port_and_secret(place: str) -> tuple[int, str]:
    """Where to reach the JVM that was started with this directory."""
    with open(_connection(place), "rb") as info:
        port, length = unpack(">ii", info.read(8))
        return port, info.read(length).decode()


def _connection(place: str) -> str:
    return os.path.join(place, "connection")


def _path() -> str:
    """PYTHONPATH for the Python processes of the JVM: where this very txnctl comes from."""
    import txnctl

    root = os.path.dirname(os.path.dirname(os.path.abspath(txnctl.__file__)))
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def _log(place: str) -> str:
    return os.path.join(place, "spark.log")


def _did_not_start(place: str) -> TxnctlError:
    with open(_log(place), errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    said = " | ".join(lines[-_TAIL_LINES:]) or "it said nothing"
    return InvalidValue(
        f"Spark did not start: {said}", hint="Look at --master, --conf, and SPARK_HOME if it is set."
    )


def let_go(jvm: Popen[bytes]) -> None:
    """Let the JVM end by itself, as it does when its standard input closes."""
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
    with suppress(TimeoutExpired):
        jvm.wait(_STOP_S)


def kill(jvm: Popen[bytes]) -> None:
    """End the JVM now. The Python processes beside it end with it: they read from it."""
    if jvm.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)
        jvm.wait()
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
