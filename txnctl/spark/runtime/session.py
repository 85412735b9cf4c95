"""The Spark session of one job: quiet, without files left behind, and stopped at once on an interrupt.

Its JVM is a child process of txnctl (`jvm.py`), to which PySpark connects afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from subprocess import Popen
from threading import Event, Timer, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from storage.errors import InvalidValue, TxnctlError
from txnctl.spark.runtime import connect, jvm as jvms, master as masters, requirements
from txnctl.spark.runtime.failure_text import first_sentence
from txnctl.spark.runtime.scratch import scratch_directory
from txnctl.spark.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from logging import LogRecord
    from types import FrameType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    Handler = Callable[[int, FrameType | None], Any] | int | None

MASTER_DEFAULT = "local[*]"
_LATE_COMPILING = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times the defaults: methods are compiled by the optimizing compiler only when really hot. With the defaults half
of the work of a short job was the compilation of methods that hardly ran again."""

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables that tell PySpark of a running JVM."""

_NO_MASTER = "All masters are unresponsive"
"""Spark's word, in its log, for a standalone master that did not register the job."""


@contextmanager
def spark_session(
    name: str, *, master: str = MASTER_DEFAULT, conf: Sequence[tuple[str, str]] = ()
) -> Iterator[SparkSession]:
    """Open a session for the block. Its JVM is stopped at the end, and killed when the block raises.

    Args:
        name: of the application, as a cluster shows it.
        master: of a Spark that is started here, or `sc://host:port`, a Spark Connect server (`connect.py`).
        conf: options of Spark, which override the defaults of txnctl.

    Raises:
        ProgramMissing: no Java, no PySpark.
        InvalidValue: Spark rejects the master or an option.
        ClusterUnreachable: the master does not answer.
        JvmDied: the JVM was killed, or ended by itself, while the block ran.
    """
    if connect.is_connect(master):
        with connect.connect_session(name, master, conf) as remote:
            yield remote
        return
    java = requirements.require_all()
    masters.check_reachable(dict(conf).get("spark.master", master))
    interrupt_handler = signal.getsignal(signal.SIGINT)
    jvm: Popen[bytes] | None = None
    with scratch_directory() as directory:
        try:
            options = {**_options(name, master, directory), **dict(conf)}
            pythons = _pythons(options["spark.master"], directory)
            jvm = jvms.launch(options, java, pythons, directory)
            _silence_pyspark()
            spark = _connect(jvm, options, pythons, directory)
            _restore_interrupt(interrupt_handler)
            try:
                yield spark
            except Exception as error:
                died = jvms.death_seen(jvm, directory, error)
                if died is None:
                    raise
                raise died from error
            with suppress(Exception):
                spark.stop()
            jvms.stop(jvm)
        finally:
            if jvm is not None:
                jvms.kill(jvm)
                _disconnect_pyspark()
            if current_thread() is main_thread() and interrupt_handler is not None:
                signal.signal(signal.SIGINT, interrupt_handler)


def _options(name: str, master: str, directory: str) -> dict[str, str]:
    options = {
        "spark.app.name": name,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": os.path.join(directory, "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={directory}",
    }
    if master.startswith("local"):
        # The default, two hundred partitions, is for a cluster.
        options |= {
            "spark.local.dir": directory,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        }
        options["spark.driver.extraJavaOptions"] += f" {_LATE_COMPILING}"
    return options


def _pythons(master: str, directory: str) -> dict[str, str]:
    """Return the Python of processes beside the JVM, as environment variables: this Python, unless the variables are
    set.

    Spark runs data sources with the Python of the driver, on executors too: PYSPARK_PYTHON therefore names both.
    """
    default = worker_python(directory) if master.startswith("local") else sys.executable
    python = os.environ.get("PYSPARK_PYTHON", default)
    return {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python),
    }


def _restore_interrupt(interrupt_handler: Handler) -> None:
    """Restore the handler of Ctrl-C.

    PySpark's own handler first asks the JVM to cancel its jobs, and py4j logs an interrupt with a trace.
    """
    import logging

    if not callable(interrupt_handler) or current_thread() is not main_thread():
        return

    def leave(number: int, frame: FrameType | None) -> None:
        logging.disable()
        interrupt_handler(number, frame)

    signal.signal(signal.SIGINT, leave)


def _silence_pyspark() -> None:
    """Turn off logs of errors on standard error: the command prints the error once.

    PySpark logs every raised error as JSON. py4j logs a trace where a thread still speaks to a JVM that was killed, and
    of an exception in a micro-batch, which the job raises as well.
    """
    import logging

    from pyspark.logger import PySparkLogger

    logging.getLogger().addFilter(_is_not_of_py4j)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _is_not_of_py4j(record: LogRecord) -> bool:
    return record.msg != "Exception while sending command."


def _connect(
    jvm: Popen[bytes], options: dict[str, str], pythons: dict[str, str], directory: str
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    port, secret = jvms.port_and_secret(directory)
    master = options["spark.master"]
    # A standalone master registers a job at once, or never; other clusters may let a job wait for its turn.
    is_standalone, is_silent = master.startswith("spark:"), Event()
    limit = Timer(masters.ANSWER_S, _give_up, (jvm, is_silent))
    try:
        with _environment({**pythons, _PORT: str(port), _SECRET: secret}):
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
            gateway.proc = jvm
            if is_standalone:
                limit.start()
            context = SparkContext(conf=SparkConf().setAll(list(options.items())), gateway=gateway)
    except (Py4JError, PySparkException, OSError) as error:
        if is_silent.is_set() or (is_standalone and _NO_MASTER in jvms.log_of(directory)):
            raise masters.no_answer(master) from error
        raise _not_connected(jvm, master, directory, error) from error
    finally:
        limit.cancel()
    _silence_accumulators(context)
    return SparkSession(context)


def _silence_accumulators(context: SparkContext) -> None:
    """Turn off the traces of the thread that hears of the progress of Python tasks.

    The thread prints one where the JVM ends before it: a session ends its JVM by a kill.
    """

    def ignore(*_: object) -> None:
        """Leave the connection, as the server does after an error."""

    if context._accumulatorServer is not None:
        context._accumulatorServer.handle_error = ignore  # type: ignore[assignment, method-assign]


def _give_up(jvm: Popen[bytes], is_silent: Event) -> None:
    """End a JVM whose master does not answer."""
    is_silent.set()
    jvms.kill(jvm)


def _not_connected(jvm: Popen[bytes], master: str, directory: str, error: Exception) -> TxnctlError:
    """The error of a session that did not come about."""
    return jvms.death_seen(jvm, directory, error) or InvalidValue(
        f"Spark does not start with master {master!r}: {_cause(error)}",
        hint="Check --master and --conf; --debug shows the whole output of Spark.",
        master=master,
    )


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
    """Return the first sentence of the JVM's message."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error)
    return first_sentence(text) if text.strip() else type(error).__name__


def _disconnect_pyspark() -> None:
    """Clear PySpark's reference to the dead JVM, which the next session in this process would reuse."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
