"""A Spark session of our own, for one job: quiet, with nothing left behind, and gone at once when it has to be.

Its JVM is a process of ours (`jvm.py`), to which PySpark is connected afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from subprocess import Popen
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from storage.errors import InvalidValue
from txnctl.spark.runtime import jvm as jvms, requirements
from txnctl.spark.runtime.scratch import scratch
from txnctl.spark.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import SparkSession

    Handler = Callable[[int, FrameType | None], Any] | int | None

MASTER_DEFAULT = "local[*]"
_LATE_COMPILING = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times the defaults: what was compiled quickly is compiled well once it is really hot. That was half of the
work of a short job, for methods that were hardly run again."""

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables that tell PySpark of a JVM that runs."""


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
            jvm = jvms.launch(options, java, pythons, place)
            _silence_pyspark()
            spark = _connect(jvm, options, pythons, place)
            _leave_at_once(interrupt)
            yield spark
            with suppress(Exception):
                spark.stop()
            jvms.let_go(jvm)
        finally:
            if jvm is not None:
                jvms.kill(jvm)
                _forget()
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
        options["spark.driver.extraJavaOptions"] += f" {_LATE_COMPILING}"
    return options


def _pythons(master: str, place: str) -> dict[str, str]:
    """The Python for what runs beside the JVM, as environment variables: this one, unless they name another."""
    here = worker_python(place) if master.startswith("local") else sys.executable
    return {name: os.environ.get(name, here) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}


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

    port, secret = jvms.port_and_secret(place)
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


def _forget() -> None:
    """Let PySpark forget the JVM that is gone: it would take it for that of the next session in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
