"""The monitor job: a topic at READ_UNCOMMITTED, as it grows, becomes money by period, and anomalies.

Messages are counted when written, before their transaction ends: a message whose transaction aborts later is counted, a
message known to be aborted when read is not. READ_UNCOMMITTED means just that, and is the reason why settle reads at
READ_COMMITTED.

A single aggregation computes all sums: a message counts for the total, for its period, for its account and, with an
outsized amount, for a group of its own. Spark stores the sums; each micro-batch returns the changed groups.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txnctl.pipelines import files
from txnctl.pipelines.request import AMOUNT_DEFAULT, RequestForm
from txnctl.pipelines.request_columns import REQUEST, is_customer, requests, utc
from txnctl.pipelines.streaming import Stream
from txnctl.pipelines.written_files import write_parquet
from txnctl.spark import schemas
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, Row, SparkSession

PERIODS = ("minute", "hour", "day", "week", "month", "year")
TIMES = {"event": "eventTime", "publish": "publishTime"}
TOTAL, PERIOD, ACCOUNT, OUTSIZED = "total", "period", "account", "outsized"
OUTSIZED_DEFAULT = 100_000_00
_ROWS_MAX = 100
SUMS = (
    "kind",
    "name",
    "inflow",
    "outflow",
    "messages",
    "uncommitted",
    "aborted",
    "skipped",
    "txnId",
    "account",
)


@dataclass(frozen=True)
class MonitorOptions:
    """The options of the monitor.

    Attributes:
        period: one of PERIODS.
        time: one of TIMES: the timestamp that assigns a message to a period.
        outsized: the least amount in hundredths, in or out, that is an anomaly.
        overdraft: a balance below minus this, in hundredths, is an anomaly.
        amount: the field of the JSON with the amount.
    """

    period: str = "month"
    time: str = "event"
    outsized: int = OUTSIZED_DEFAULT
    overdraft: int = 0
    amount: str = AMOUNT_DEFAULT


def transform(messages: DataFrame, options: MonitorOptions) -> DataFrame:
    """Aggregate sums by group: `kind` and `name`, in- and outflow in hundredths, and counts of messages."""
    from pyspark.sql import functions as f

    request_rows = requests(messages, RequestForm(options.amount)).withColumn(
        "at", f.coalesce(TIMES[options.time], "publishTime")
    )
    is_good, is_aborted = f.col("problem").isNull(), f.col("txnState").eqNullSafe("ABORTED")
    counts = is_good & ~is_aborted & is_customer(f.col("account"))
    position = f.concat_ws(":", "ledgerId", "entryId", f.when(f.col("batchIndex") >= 0, f.col("batchIndex")))
    groups = f.array_compact(
        f.array(
            _group(TOTAL, f.lit("")),
            f.when(is_good, _group(PERIOD, _period(options.period))),
            f.when(counts, _group(ACCOUNT, f.col("account"))),
            f.when(is_good & (f.abs("hellers") >= options.outsized), _group(OUTSIZED, position)),
        )
    )
    amount = f.when(counts | (f.col("group.kind") == OUTSIZED), f.col("hellers"))
    return (
        request_rows.withColumn("group", f.explode(groups))
        .groupBy("group")
        .agg(
            f.coalesce(f.sum(f.when(amount > 0, amount)), f.lit(0)).alias("inflow"),
            f.coalesce(f.sum(f.when(amount < 0, -amount)), f.lit(0)).alias("outflow"),
            f.count("*").alias("messages"),
            f.count_if(f.col("txnState").eqNullSafe("OPEN")).alias("uncommitted"),
            f.count_if(is_aborted).alias("aborted"),
            f.count_if(~is_good).alias("skipped"),
            f.max("txnId").alias("txnId"),
            f.max("account").alias("account"),
        )
        .select("group.kind", "group.name", *SUMS[2:])
    )


def _period(name: str) -> Column:
    """The text of the beginning of the period of `at` in UTC, whatever the zone of the session."""
    from pyspark.sql import functions as f

    at = utc(f.col("at"))
    if name in ("minute", "hour"):
        length, rest = (16, ":00Z") if name == "minute" else (13, ":00:00Z")
        return f.concat(
            f.replace(f.substring(at.cast("string"), 1, length), f.lit(" "), f.lit("T")), f.lit(rest)
        )
    day = at.cast("date")
    return f.concat((day if name == "day" else f.trunc(day, name)).cast("string"), f.lit("T00:00:00Z"))


def _group(kind: str, name: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(f.lit(kind).alias("kind"), name.alias("name"))


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The sums of one group, in the order of SUMS; amounts in hundredths."""

    kind: str
    name: str
    inflow: int = 0
    outflow: int = 0
    messages: int = 0
    uncommitted: int = 0
    aborted: int = 0
    skipped: int = 0
    txn_id: str | None = None
    account: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> GroupSums:
        """Convert a row of `transform`."""
        return cls(*(row[name] for name in SUMS))

    @property
    def net(self) -> int:
        return self.inflow - self.outflow


@dataclass
class View:
    """The sums known after the last micro-batch.

    Attributes:
        total: the sums of all messages; None before the first batch.
        periods: the sums of each period changed since the start, by its beginning.
        overdrawn: balance in hundredths of each overdrawn account changed since the start.
        outsized: the outsized amounts since the start, by position.
    """

    batches: int = 0
    total: GroupSums | None = None
    periods: dict[str, GroupSums] = field(default_factory=dict)
    overdrawn: dict[str, int] = field(default_factory=dict)
    outsized: dict[str, GroupSums] = field(default_factory=dict)

    @property
    def reserves(self) -> int:
        """The money of all customers, in hundredths."""
        return 0 if self.total is None else self.total.net


class Monitor:
    """Collects the micro-batches, for `foreachBatch`."""

    def __init__(
        self,
        options: MonitorOptions,
        directory: str | None,
        on_batch: Callable[[View], None] = lambda _: None,
    ) -> None:
        """Update a view, and write Parquet below `directory`: a subdirectory for each batch, so that a repeated batch
        replaces its own files.
        """
        self.view = View()
        self.options = options
        self._directory = directory
        self._on_batch = on_batch

    def process_batch(self, sums: DataFrame, batch_id: int) -> None:
        """Update the view with the changed groups."""
        from pyspark.sql import functions as f

        is_outsized = f.col("kind") == OUTSIZED
        is_sum = f.col("kind").isin(TOTAL, PERIOD)
        balance = f.col("inflow") - f.col("outflow")
        is_overdrawn = (f.col("kind") == ACCOUNT) & (balance < -self.options.overdraft)
        is_known = (f.col("kind") == ACCOUNT) & f.col("name").isin(list(self.view.overdrawn))
        sums.persist()
        try:
            # Collect everything in one job: starting a job of Spark costs more than the rows of a usual micro-batch.
            rows = sums.where(is_sum | is_known)
            for kind in (is_overdrawn & ~is_known, is_outsized):
                rows = rows.unionAll(sums.where(kind).limit(_ROWS_MAX))
            for row in rows.collect():
                self._record(GroupSums.from_row(row))
            if self._directory is not None:
                self._write(sums.where(is_sum), "sums", batch_id)
                self._write(sums.where(is_overdrawn | is_outsized), "unusual", batch_id)
        finally:
            sums.unpersist()
        self.view.batches += 1
        self._on_batch(self.view)

    def _record(self, sums: GroupSums) -> None:
        """Record the sums of a group; remove an account that is no longer overdrawn."""
        view, name = self.view, sums.name
        if sums.kind == TOTAL:
            view.total = sums
        elif sums.kind == PERIOD:
            view.periods[name] = sums
        elif sums.kind == OUTSIZED:
            view.outsized[name] = sums
        elif sums.net < -self.options.overdraft:
            view.overdrawn[name] = sums.net
        else:
            view.overdrawn.pop(name, None)

    def _write(self, frame: DataFrame, name: str, batch_id: int) -> None:
        assert self._directory is not None
        uri = os.path.join(files.uri_to_write(self._directory), name, f"batchId={batch_id}")
        write_parquet(frame.coalesce(1), uri, "overwrite")


def start_monitoring(
    spark: SparkSession,
    monitor: Monitor,
    options: Mapping[str, str],
    checkpoint: str,
    interval_s: float | None = None,
) -> Stream:
    """Start the query of the monitor.

    Args:
        options: of `format("txnctl")`: path and topic at least.
        interval_s: seconds between two micro-batches; None reads the messages present, and ends.
    """
    with as_txnctl_errors():
        messages = (
            spark.readStream.format("txnctl")
            .schema(schemas.ddl(("key", "value", *REQUEST)))
            .options(**options, isolationLevel="READ_UNCOMMITTED")
            .load()
        )
        sums = transform(messages, monitor.options)
    return Stream(sums, monitor.process_batch, checkpoint, interval_s, mode="update")
