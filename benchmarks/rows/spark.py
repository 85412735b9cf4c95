"""X1, X2: Spark reads topics and writes a topic, beside Spark reading and writing the same rows as Parquet.

All contenders run in one session of one JVM, each in as many tasks as the target says. No other module here imports
PySpark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, Sample, interleave
from benchmarks.contract import PARTITIONS, SPARK_PARQUET, SPARK_READS, targets_of
from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare
from storage import Store
from storage.errors import ProgramMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 10_000
_MEMORY = "2g"

Frame = Callable[[], "DataFrame"]


def reads(bench: Bench) -> Iterator[Comparison]:
    """X1. Each adds up the lengths of all values; the sum is checked."""
    with bench.scratch() as directory, _session("X1", bench) as spark:
        if spark is None:
            return
        frames = _readable(spark, directory, bench.sizes.spark_messages)
        measured = {
            count: interleave(
                {name: _sum(frame, count, bench.sizes.spark_messages) for name, frame in frames.items()},
                rounds=bench.sizes.spark_rounds,
                warmup=bench.sizes.spark_warmup,
            )
            for count in _counts(bench)
        }
    names = [what for what, *_ in SPARK_READS]
    yield from _compared("X1", bench, measured, names)


def writes(bench: Bench) -> Iterator[Comparison]:
    """X2. Values from Parquet go to a topic of a new store, or to Parquet; what was there before is removed first."""
    with bench.scratch() as directory, _session("X2", bench) as spark:
        if spark is None:
            return
        values = directory / "values"
        _fill(directory / "source", bench.sizes.spark_messages)
        _from_store(spark, directory / "source", "value binary").write.parquet(str(values))
        shutil.rmtree(directory / "source")
        measured = {
            count: interleave(
                {
                    "topic": _topic_write(spark, values, directory / "store", count),
                    SPARK_PARQUET: _parquet_write(spark, values, directory / "copy", count),
                },
                rounds=bench.sizes.spark_rounds,
                warmup=bench.sizes.spark_warmup,
            )
            for count in _counts(bench)
        }
    yield from _compared("X2", bench, measured, ["topic"])


@contextmanager
def _session(row: str, bench: Bench) -> Iterator[SparkSession | None]:
    """The session that our own jobs use; None, with a note, where Java or PySpark is missing."""
    from txnctl.spark.runtime import requirements
    from txnctl.spark.runtime.session import spark_session

    try:
        requirements.require_all()
    except ProgramMissing as error:
        bench.note(f"{row} is left out: {error.message}. {error.hint}")
        yield None
        return
    master = f"local[{max(PARTITIONS)}]"
    with spark_session("txnctl benchmarks", master=master, conf=[("spark.driver.memory", _MEMORY)]) as spark:
        bench.versions["spark"] = spark.version
        yield spark


def _counts(bench: Bench) -> list[int]:
    return sorted({min(count, bench.sizes.spark_partitions_max) for count in PARTITIONS})


def _compared(
    row: str, bench: Bench, measured: dict[int, dict[str, Sample]], names: list[str]
) -> Iterator[Comparison]:
    """The comparisons of a row, in the order of its targets: for each count of partitions all names."""
    loads = [(count, name) for count in PARTITIONS for name in names]
    for target, (count, name) in zip(targets_of(row), loads, strict=True):
        samples = measured[min(count, bench.sizes.spark_partitions_max)]
        yield compare(target, samples[name], samples[SPARK_PARQUET])


def _readable(spark: SparkSession, directory: Path, messages: int) -> dict[str, Frame]:
    """Return the reads of X1 by the names in `SPARK_READS`: the same rows from each source."""
    from txnctl.pipelines import offload
    from txnctl.spark import read_topic

    store, offloaded, parquet = directory / "store", directory / "offloaded", directory / "parquet"
    _fill(store, messages)
    with Store.open(store, read_only=True) as opened:
        offload.offload_topic(
            opened, TOPIC, offload.OffloadOptions(str(offloaded), verify=False, retain_ms=0)
        )
    _from_store(spark, store, None).write.parquet(str(parquet))
    uri = str(offloaded)
    return {
        "the store": lambda: _from_store(spark, store, "value binary"),
        "the store, all columns": lambda: _from_store(spark, store, None),
        "offloaded files": lambda: _from_store(spark, store, "value binary", offloadPath=uri),
        "offloaded files, read_topic": lambda: read_topic(
            spark, path=str(store), topic=TOPIC, offloadPath=uri
        ),
        SPARK_PARQUET: lambda: spark.read.parquet(str(parquet)),
    }


def _fill(uri: Path, messages: int) -> None:
    payload = Payload(_BATCH)
    Store.create(uri)
    with Store.open(uri) as store:
        store.create_topic(TOPIC)
        with store.create_producer(TOPIC) as producer:
            for start in range(0, messages, _BATCH):
                producer.send_batch(payload.batch()[: messages - start])


def _from_store(spark: SparkSession, store: Path, schema: str | None, **options: str) -> DataFrame:
    reader = spark.read.format("txnctl").options(path=str(store), topic=TOPIC, **options)
    return (reader if schema is None else reader.schema(schema)).load()


def _sum(frame: Frame, partitions: int, messages: int) -> Operation:
    """Plan the read anew, and add up the lengths of all values."""

    def add_up() -> None:
        from pyspark.sql import functions as f

        row = frame().coalesce(partitions).agg(f.sum(f.octet_length("value")).alias("total")).first()
        assert row is not None and row["total"] == 100 * messages, row

    return add_up


def _topic_write(spark: SparkSession, values: Path, uri: Path, partitions: int) -> Operation:
    def write() -> None:
        shutil.rmtree(uri, ignore_errors=True)
        Store.create(uri)
        with Store.open(uri) as store:
            store.create_topic(TOPIC)
        rows = spark.read.parquet(str(values)).coalesce(partitions)
        rows.write.format("txnctl").mode("append").options(path=str(uri), topic=TOPIC).save()

    return write


def _parquet_write(spark: SparkSession, values: Path, uri: Path, partitions: int) -> Operation:
    def write() -> None:
        spark.read.parquet(str(values)).coalesce(partitions).write.mode("overwrite").parquet(str(uri))

    return write
