"""Reading an offloaded topic with Spark's own Parquet reader: the fast way to read large topics.

A Python data source passes rows to Spark through a pipe. Spark's own reader needs no pipe, reads only the columns of
the query, and skips row groups by the filters of the query. Plan and rows are the same as with `format("txnctl")`; the
files must lie on storage that Spark itself reaches.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

from storage import IsolationLevel, Store
from storage.errors import InvalidValue
from txnctl.output.shell import line
from txnctl.spark import options, schemas
from txnctl.spark.ledger_files.range_plan import FilePlan, plan_files
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.runtime.job_errors import as_txnctl_errors
from txnctl.spark.source.topic_range import TopicRange
from txnctl.spark.source.topic_reader import plan_ranges

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from txnctl.spark.ledger_files.file_partition import Bounds
    from txnctl.spark.source.key_selection import KeySelection


def read_topic(spark: SparkSession, **given: str) -> DataFrame:
    """Read the messages of topics as `spark.read.format("txnctl").options(**given).load()` reads them.

    Args:
        given: the options of reading topics, `offloadPath` among them.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    read_options = options.topic_read(given)
    if read_options.offload_path is None:
        raise InvalidValue(
            "reading offloaded files needs offloadPath",
            hint=f"`{line('pipeline offload', 'TOPIC', 'DEST')}` writes the files.",
        )
    root = Root.of_path(read_options.offload_path)
    with Store.open(read_options.path, read_only=True, program="Spark") as store:
        ranges = [part for part in plan_ranges(store, read_options, slots=1) if isinstance(part, TopicRange)]
        by_topic = (list(group) for _, group in groupby(ranges, key=lambda topic_ranges: topic_ranges.topic))
        plans = [plan for topic_ranges in by_topic for plan in plan_files(store, topic_ranges, root)]
    columns = schemas.message_columns(options.has_properties(given))
    if read_options.selection.keys.is_empty:
        plans = []
    reader = spark.read.schema(schemas.ddl(schemas.MESSAGE_TYPES))
    keys = read_options.selection.keys
    with as_txnctl_errors():
        frames = [
            _of_keys(
                _filtered(
                    reader.parquet(*(root.for_spark(plan.path) for plan in same_filter)), bounds, is_committed
                ),
                keys,
            )
            for (bounds, is_committed), same_filter in _by_filter(plans, read_options.level)
        ]
    if not frames:
        return spark.createDataFrame([], schemas.ddl(columns))
    return reduce(lambda frame, more: frame.unionAll(more), frames).select(*columns)


def _by_filter(
    plans: Iterable[FilePlan], level: IsolationLevel
) -> list[tuple[tuple[Bounds | None, bool], list[FilePlan]]]:
    """Group parts by their filter; most parts have none."""
    groups: dict[tuple[Bounds | None, bool], list[FilePlan]] = {}
    for plan in plans:
        is_committed = level is IsolationLevel.READ_COMMITTED and plan.has_aborted
        groups.setdefault((plan.bounds, is_committed), []).append(plan)
    return list(groups.items())


def _filtered(frame: DataFrame, bounds: Bounds | None, is_committed: bool) -> DataFrame:
    """Filter the rows within the bounds; conditions on positions let Parquet skip whole row groups."""
    if bounds is not None:
        frame = frame.filter(_within(bounds))
    if is_committed:
        from pyspark.sql.functions import col

        frame = frame.filter(col("txnState").isNull() | (col("txnState") != "ABORTED"))
    return frame


def _of_keys(frame: DataFrame, keys: KeySelection) -> DataFrame:
    """Filter the rows by key."""
    from pyspark.sql.functions import col, lit

    if keys.is_all:
        return frame
    if keys.keys is not None:
        return frame.filter(col("key").isin([lit(key) for key in sorted(keys.keys)]))
    frame = frame.filter(col("key") >= lit(keys.start))
    return frame if keys.end is None else frame.filter(col("key") < lit(keys.end))


def _within(bounds: Bounds) -> Column:
    from pyspark.sql.functions import col

    ledger, entry, index = col("ledgerId"), col("entryId"), col("batchIndex")
    (low, low_entry), (high, high_entry) = bounds.after, bounds.through
    condition = (
        (ledger >= low)
        & (ledger <= high)
        & ((ledger > low) | (entry > low_entry))
        & ((ledger < high) | (entry <= high_entry))
    )
    if bounds.first_index:
        condition &= (ledger != low) | (entry != low_entry + 1) | (index >= bounds.first_index)
    if bounds.stop_index is not None:
        condition &= (ledger != high) | (entry != high_entry) | (index < bounds.stop_index)
    return condition
