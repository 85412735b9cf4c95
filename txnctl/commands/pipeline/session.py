"""Shared pieces of the Spark jobs on the command line: --master, --conf, a session, and progress while Spark works."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TypeVar

from storage.errors import InvalidValue, NestedTransaction
from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import KEY_VALUE
from txnctl.input.names_once import named_once
from txnctl.output.field import Help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from txnctl.cli.context import Context
    from txnctl.cli.declaration import Body

F = TypeVar("F", bound="Body")
ELAPSED = {"elapsed_ms": Help("How long it took, the start of Spark included.", heading="ELAPSED")}
_LOOK_S = 0.25


class SparkOptions(OptionValues):
    """The cluster to run on, and options of Spark."""

    master: str | None
    conf: Sequence[tuple[str, str]]


def uses_spark(function: F) -> F:
    """Take --master and --conf as `spark_options`."""
    with_conf = option(
        "--conf", metavar="K=V", type=KEY_VALUE, multiple=True, help="An option of Spark; may be repeated."
    )
    with_master = option(
        "--master",
        metavar="URL",
        help="The cluster to run on: spark://host:7077, yarn, k8s://..., or a Spark Connect server, "
        "sc://host:15002. [default: local[*]]",
    )
    return option_values("spark_options", SparkOptions)(with_master(with_conf(function)))


def reaches_offloaded(function: F) -> F:
    """Take --offload-path, for executors that are not on the store's host."""
    return option(
        "--offload-path",
        metavar="URI",
        help="Where offloaded ledgers are; executors on other hosts read there and never open the store.",
    )(function)


def reaches_staging(function: F) -> F:
    """Take --staging-path, for executors that are not on the store's host."""
    return option(
        "--staging-path",
        metavar="URI",
        help="Where tasks leave what they write until it is stored; executors on other hosts need one they reach.",
    )(function)


def check_staging(context: Context, options: SparkOptions, staging_path: str | None) -> None:
    """Check that tasks on a cluster have a place for staged rows, where the store has none; before Spark starts.

    Raises:
        InvalidValue
    """
    from storage.disk.stores import is_url

    master = options.master or "local"
    if staging_path is None and is_url(context.store_path) and not master.startswith(("local", "sc:")):
        raise InvalidValue(
            f"tasks on {master} need a place for staged rows, and a store on a server has none",
            hint="Give --staging-path: a directory or URI (s3://...) that all hosts reach.",
        )


@contextmanager
def session(job: str, options: SparkOptions) -> Iterator[SparkSession]:
    """A session of this job, while the block runs; errors of Spark are raised as errors of txnctl.

    Raises:
        ProgramMissing, InvalidValue
    """
    from txnctl.spark.runtime.connect import check_job
    from txnctl.spark.runtime.job_errors import as_txnctl_errors
    from txnctl.spark.runtime.session import MASTER_DEFAULT, spark_session

    check_job(job, options.master)
    conf = list(named_once(options.conf, "--conf: ").items())
    with ExitStack() as stack:
        with _said("Starting Spark ..."):
            spark = stack.enter_context(
                spark_session(f"txnctl {job}", master=options.master or MASTER_DEFAULT, conf=conf)
            )
        stack.enter_context(as_txnctl_errors())
        yield spark


@contextmanager
def _said(text: str) -> Iterator[None]:
    """Show a text on standard error while the block runs, if that is a terminal."""
    import sys
    from os import environ

    if not sys.stderr.isatty() or environ.get("TERM") == "dumb":
        yield
        return
    print(text, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def watched_tasks(context: Context, label: str, spark: SparkSession) -> Iterator[None]:
    """Show how many tasks are done, on a terminal, while the block runs; a Spark Connect server does not say."""
    import sys
    from threading import Event, Thread

    from pyspark.sql.utils import is_remote

    if context.quiet or not sys.stderr.isatty() or is_remote():
        yield
        return
    done = Event()

    def watch() -> None:
        from contextlib import suppress

        with context.progress(label, unit="tasks") as bar, suppress(Exception):
            seen = 0
            while not done.wait(_LOOK_S):
                now = _tasks_done(spark)
                bar.advance(max(now - seen, 0))
                seen = max(seen, now)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join(_LOOK_S * 4)


def _tasks_done(spark: SparkSession) -> int:
    """Tasks that have ended, of all stages of this session so far."""
    tracker = spark.sparkContext.statusTracker()
    stages = {
        stage
        for job in tracker.getJobIdsForGroup()
        for info in [tracker.getJobInfo(job)]
        if info is not None
        for stage in info.stageIds
    }
    infos = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numCompletedTasks for info in infos)


def refuse_transaction(what: str) -> None:
    """Refuse a job inside a transaction: the job commits alone, and would commit too early.

    Raises:
        NestedTransaction
    """
    from txnctl.cli.current_transaction import of_environment

    current = of_environment()
    if current is not None:
        raise NestedTransaction(
            f"{what} commits by itself, and this is inside transaction {current} (TXNCTL_TXN)",
            hint="Run the job before or after that transaction, or unset TXNCTL_TXN.",
            transaction=str(current),
        )


def options_of(context: Context, **given: str | int | None) -> dict[str, str]:
    """Options of `format("txnctl")`: the given options, and the path of the store, which must exist.

    Raises:
        StoreInvalid
    """
    from txnctl.spark.store_name import shown_name

    path = shown_name(context.store_path)
    context.open_store(context.store_path, read_only=True).close()
    options = {name: str(value) for name, value in given.items() if value is not None}
    return {"path": path, **options}
