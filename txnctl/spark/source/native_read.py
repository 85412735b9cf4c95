"""Reading a topic that is offloaded with Spark's own Parquet reader: the fast way to read much.

A Python data source hands its rows to Spark through a pipe; Spark's own reader does not, reads only the columns a query
uses, and skips what its filters leave out. The plan is the same, and so are the rows; the files have to lie where Spark
itself reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

from storage import IsolationLevel, Store
from storage.errors import InvalidValue
from txnctl.spark import options, schemas
from txnctl.spark.ledger_files.range_plan import FilePart, files_of
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.source.topic_reader import ranges_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from txnctl.spark.ledger_files.file_piece import Bounds


def read_topic(spark: SparkSession, **given: str) -> DataFrame:
    """The messages of topics, as `spark.read.format("txnctl").options(**given).load()` reads them.

    Args:
        given: the options of reading topics, `offloadPath` among them.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    wanted = options.topic_read(given)
    if wanted.offload is None:
        raise InvalidValue(
            "reading files needs a place for them",
            hint="Give offloadPath; `txnctl pipeline offload` fills it.",
        )
    root = Root.of(wanted.offload)
    with Store.open(wanted.path, read_only=True, program="Spark") as store:
        ranges = ranges_of(store, wanted, slots=1)
        by_topic = (list(group) for _, group in groupby(ranges, key=lambda each: each.topic))
        parts = [part for each in by_topic for part in files_of(store, each, root)]
    columns = schemas.message_columns(options.has_properties(given))
    read = spark.read.schema(schemas.ddl(schemas.MESSAGE_TYPES))
    frames = [
        _chosen(read.parquet(*(root.for_spark(part.path) for part in alike)), bounds, is_committed)
        for (bounds, is_committed), alike in _alike(parts, wanted.level)
    ]
    if not frames:
        return spark.createDataFrame([], schemas.ddl(columns))
    return reduce(lambda one, other: one.unionAll(other), frames).select(*columns)


def _alike(
    parts: Iterable[FilePart], level: IsolationLevel
) -> list[tuple[tuple[Bounds | None, bool], list[FilePart]]]:
    """Parts that are filtered in the same way; most are not filtered at all."""
    found: dict[tuple[Bounds | None, bool], list[FilePart]] = {}
    for part in parts:
        is_committed = level is IsolationLevel.READ_COMMITTED and part.has_aborted
        found.setdefault((part.bounds, is_committed), []).append(part)
    return list(found.items())


def _chosen(frame: DataFrame, bounds: Bounds | None, is_committed: bool) -> DataFrame:
    """The rows that are meant; the conditions on positions are such that whole row groups are skipped."""
    if bounds is not None:
        frame = frame.filter(_within(bounds))
    if is_committed:
        from pyspark.sql.functions import col

        frame = frame.filter(col("txnState").isNull() | (col("txnState") != "ABORTED"))
    return frame


def _within(bounds: Bounds) -> Column:
    from pyspark.sql.functions import col

    ledger, entry, index = col("ledgerId"), col("entryId"), col("batchIndex")
    (low, low_entry), (high, high_entry) = bounds.after, bounds.through
    meant = (
        (ledger >= low)
        & (ledger <= high)
        & ((ledger > low) | (entry > low_entry))
        & ((ledger < high) | (entry <= high_entry))
    )
    if bounds.first_index:
        meant &= (ledger != low) | (entry != low_entry + 1) | (index >= bounds.first_index)
    if bounds.stop_index is not None:
        meant &= (ledger != high) | (entry != high_entry) | (index < bounds.stop_index)
    return meant
