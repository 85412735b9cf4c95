"""A Spark session of our own, for one job: quiet, with nothing left behind, and gone at once when it has to be.

The JVM is started here and not by PySpark, which does the same but keeps the process to itself while it starts: Ctrl-C
in these seconds must end it too. It runs in a process group of its own, so the terminal's Ctrl-C reaches us alone; it
ends by itself when our end of its standard input closes, however we die. What it prints goes to a file.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from struct import unpack
from subprocess import PIPE, Popen, TimeoutExpired
from threading import current_thread, main_thread
from time import sleep
from typing import TYPE_CHECKING, Any

from storage.errors import InvalidValue, TxnctlError
from txnctl.spark import requirements
from txnctl.spark.scratch import scratch
from txnctl.spark.worker_python import worker_python

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import SparkSession

    from txnctl.spark.java import Java

    Handler = Callable[[int, FrameType | None], Any] | int | None

MASTER_DEFAULT = "local[*]"
_CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that tells Spark's JVM where to write its port and secret, as PySpark itself does it."""

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables that tell PySpark of a JVM that runs."""

_NOT_FOR_TASKS = ("TXNCTL_TXN", "TXNCTL_SESSION")
"""Variables that mean this command alone."""

_LOOK_S = 0.02
_STOP_S = 10
_TAIL_LINES = 5


@contextmanager
def spark_session(
    name: str, *, master: str = MASTER_DEFAULT, conf: Sequence[tuple[str, str]] = ()
) -> Iterator[SparkSession]:
    """A session, while the block runs. Its JVM is stopped at the end, and killed when the block raises.

    Args:
        name: of the application, as a cluster shows it.
        conf: options of Spark, which go before ours.

    Raises:
        ProgramMissing: no Java, no PySpark.
        InvalidValue: Spark does not take the master or an option.
    """
    java = requirements.check()
    interrupt = signal.getsignal(signal.SIGINT)
    jvm: Popen[bytes] | None = None
    with scratch() as place:
        try:
            options = {**_options(name, master, place), **dict(conf)}
            pythons = _pythons(options["spark.master"], place)
            jvm = _launch(options, java, pythons, place)
            _silence_pyspark()
            spark = _connect(jvm, options, pythons, place)
            _leave_at_once(interrupt)
            yield spark
            with suppress(Exception):
                spark.stop()
            _let_go(jvm)
        finally:
            if jvm is not None:
                _kill(jvm)
            if current_thread() is main_thread() and interrupt is not None:
                signal.signal(signal.SIGINT, interrupt)


def _options(name: str, master: str, place: str) -> dict[str, str]:
    options = {
        "spark.app.name": name,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": os.path.join(place, "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={place}",
    }
    if master.startswith("local"):
        # Two hundred, the default, is for a cluster.
        options |= {
            "spark.local.dir": place,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        }
    return options


def _pythons(master: str, place: str) -> dict[str, str]:
    """The Python for what runs beside the JVM, as environment variables: this one, unless they name another."""
    here = worker_python(place) if master.startswith("local") else sys.executable
    return {name: os.environ.get(name, here) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}


def _launch(options: dict[str, str], java: Java, pythons: dict[str, str], place: str) -> Popen[bytes]:
    """Start the JVM; it is ready when it has written its port."""
    from pyspark.find_spark_home import _find_spark_home

    connection = os.path.join(place, "connection")
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
        _kill(jvm)
        raise
    return jvm


def _path() -> str:
    """PYTHONPATH for the Python processes of the JVM: where this very txnctl comes from."""
    import txnctl

    root = os.path.dirname(os.path.dirname(os.path.abspath(txnctl.__file__)))
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def _leave_at_once(interrupt: Handler) -> None:
    """Put the handler of Ctrl-C back in its place.

    PySpark's own first asks the JVM to cancel what it does. And py4j logs an interrupt, with a trace.
    """
    import logging

    if not callable(interrupt) or current_thread() is not main_thread():
        return

    def leave(number: int, frame: FrameType | None) -> None:
        logging.disable()
        interrupt(number, frame)

    signal.signal(signal.SIGINT, leave)


def _silence_pyspark() -> None:
    """PySpark logs every error that it raises, as JSON on standard error. Whoever catches it tells it, once."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _connect(jvm: Popen[bytes], options: dict[str, str], pythons: dict[str, str], place: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    with open(os.path.join(place, "connection"), "rb") as info:
        port, length = unpack(">ii", info.read(8))
        secret = info.read(length).decode()
    try:
        with _environment({**pythons, _PORT: str(port), _SECRET: secret}):
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
            gateway.proc = jvm
            context = SparkContext(conf=SparkConf().setAll(list(options.items())), gateway=gateway)
    except (Py4JError, PySparkException) as error:
        raise InvalidValue(
            f"Spark does not start with master {options['spark.master']!r}: {_cause(error)}",
            hint="Look at --master and --conf; --debug shows all that Spark says.",
            master=options["spark.master"],
        ) from error
    return SparkSession(context)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables while the block runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cause(error: Exception) -> str:
    """The first line of what the JVM complains of."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _log(place: str) -> str:
    return os.path.join(place, "spark.log")


def _did_not_start(place: str) -> TxnctlError:
    with open(_log(place), errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    said = " | ".join(lines[-_TAIL_LINES:]) or "it said nothing"
    return InvalidValue(
        f"Spark did not start: {said}", hint="Look at --master, --conf, and SPARK_HOME if it is set."
    )


def _let_go(jvm: Popen[bytes]) -> None:
    """Let the JVM end by itself, as it does when its standard input closes."""
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
    with suppress(TimeoutExpired):
        jvm.wait(_STOP_S)


def _kill(jvm: Popen[bytes]) -> None:
    """End the JVM now. The Python processes beside it end with it: they read from it."""
    if jvm.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)
        jvm.wait()
    assert jvm.stdin is not None
    with suppress(OSError):
        jvm.stdin.close()
