"""A session of a Spark Connect server, for a job whose driver runs in that server: `--master sc://host:port`.

No JVM is started here, and none is reached. The server plans, commits and reads files: it runs on the store's host, and
its Python imports txnctl. A session can set what is settable while Spark runs, and nothing of the server's start.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue, ProgramMissing
from txnctl.spark.runtime import requirements
from txnctl.spark.runtime.failure_text import first_sentence
from txnctl.spark.runtime.job_errors import as_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING_JOBS: Final = ("settle", "monitor")
"""Jobs whose micro-batches this process takes: Connect would run the taking at the server."""

_ANSWER_S = 10
_MODE = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
"""Variables by which PySpark's functions know for which kind of session they make columns."""

_START = (
    "Start one on the store's host: spark-submit --class org.apache.spark.sql.connect.service.SparkConnectServer "
    "spark-internal."
)


def is_connect(master: str | None) -> bool:
    """Report whether a master is a Spark Connect server."""
    return master is not None and master.startswith("sc:")


def check_job(job: str, master: str | None) -> None:
    """Refuse a job that cannot run through Spark Connect.

    Raises:
        InvalidValue
    """
    if is_connect(master) and job in STREAMING_JOBS:
        raise InvalidValue(
            f"{job} does not run through Spark Connect: its micro-batches are taken here, not at the server",
            hint="Leave --master out, or name a cluster: spark://host:7077, yarn, k8s://...",
            master=master,
        )


@contextmanager
def connect_session(name: str, master: str, conf: Sequence[tuple[str, str]] = ()) -> Iterator[SparkSession]:
    """Open a session of a server for the block, with `format("txnctl")` registered.

    Args:
        master: `sc://host:port`, with parameters as PySpark takes them (`/;use_ssl=true;token=...`).
        conf: options of Spark that a session can set.

    Raises:
        ProgramMissing: no PySpark, or nothing of what Connect needs; no txnctl at the server.
        InvalidValue: no server answers, or an option is the server's.
    """
    requirements.require_connect()
    _check_answers(master)
    with _mode():
        spark = _open(name, master)
        try:
            _configure(spark, [("spark.sql.session.timeZone", "UTC"), *conf])
            _register(spark, master)
            yield spark
        finally:
            with suppress(Exception):
                spark.stop()


def _check_answers(master: str) -> None:
    """See that a server answers: PySpark itself would try for ten minutes."""
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        builder = DefaultChannelBuilder(master)
    except (PySparkException, ValueError) as error:
        raise InvalidValue(
            f"{master!r} is no address of a Spark Connect server: {first_sentence(str(error))}",
            hint="The form is sc://host:port.",
            master=master,
        ) from None
    host, port = builder.host, int(builder.endpoint.rsplit(":", 1)[1])
    try:
        socket.create_connection((host, port), _ANSWER_S).close()
    except OSError as error:
        raise InvalidValue(
            f"there is no Spark Connect server at {builder.endpoint}: {error.strerror or error}",
            hint=_START,
            master=master,
        ) from None
    with builder.toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(_ANSWER_S)
        except grpc.FutureTimeoutError:
            raise InvalidValue(
                f"the server at {builder.endpoint} does not speak as Spark Connect does",
                hint=f"Its port is 15002 unless set. {_START}",
                master=master,
            ) from None


@contextmanager
def _mode() -> Iterator[None]:
    """Have PySpark make columns for Connect in the block."""
    before = {name: os.environ.pop(name, None) for name in _MODE}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _open(name: str, master: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        session: SparkSession = SparkSession.builder.appName(name).remote(master).getOrCreate()
    except PySparkException as error:
        raise InvalidValue(
            f"the Spark Connect server refuses a session: {first_sentence(str(error))}", master=master
        ) from error
    return session


def _configure(spark: SparkSession, conf: Sequence[tuple[str, str]]) -> None:
    from pyspark.errors import PySparkException

    for name, value in conf:
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            if "CANNOT_MODIFY" in str(error.getCondition()):
                raise InvalidValue(
                    f"{name} is an option of the Spark Connect server, and no session can set it",
                    hint="Start the server with it: --conf of spark-submit.",
                    option=name,
                ) from error
            raise as_error(error) from error


def _register(spark: SparkSession, master: str) -> None:
    """Register the format, and see that the server's Python imports txnctl."""
    from pyspark.errors import PySparkException

    from txnctl.spark import register

    try:
        register(spark)
        _ = spark.read.format("txnctl").load().schema
    except PySparkException as error:
        if "ModuleNotFoundError" in str(error):
            raise ProgramMissing(
                f"the Python of the Spark Connect server at {master} does not have txnctl",
                hint="Install txnctl there, for the Python that PYSPARK_PYTHON names at the start of the server.",
                program="txnctl",
            ) from error
        raise as_error(error) from error
