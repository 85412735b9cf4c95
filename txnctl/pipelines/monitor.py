"""A topic, READ_UNCOMMITTED, as it grows -> money by period, and what is out of the ordinary.

Everything is counted as soon as it is written, final or not: a message of a transaction that is aborted later was
counted, one whose abort was known when it was read was not. That is what the isolation level means, and why settle has
another one.

One aggregation carries it all: a message counts for the total, for its period, for its account and, where its amount is
outsized, for itself. Spark keeps the sums; each micro-batch brings the groups that changed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from txnctl.pipelines import files
from txnctl.pipelines.money import AMOUNT_DEFAULT, REQUEST, is_customer, requests
from txnctl.pipelines.streaming import Stream
from txnctl.spark import schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

PERIODS = ("minute", "hour", "day", "week", "month", "year")
TIMES = {"event": "eventTime", "publish": "publishTime"}
TOTAL, PERIOD, ACCOUNT, OUTSIZED = "total", "period", "account", "outsized"
OUTSIZED_DEFAULT = 100_000_00
_SHOWN_MAX = 100
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
class Watch:
    """What is looked for.

    Attributes:
        period: one of PERIODS.
        time: one of TIMES: when a message belongs to a period.
        outsized: an amount of so many hundredths, in or out, is out of the ordinary.
        overdraft: a balance below minus so many hundredths is.
    """

    period: str = "month"
    time: str = "event"
    outsized: int = OUTSIZED_DEFAULT
    overdraft: int = 0
    amount: str = AMOUNT_DEFAULT


def transform(messages: DataFrame, watch: Watch) -> DataFrame:
    """Sums by group: `kind` and `name`, in- and outflow in hundredths, and counts of messages."""
    from pyspark.sql import functions as f

    found = requests(messages, watch.amount).withColumn("at", f.coalesce(TIMES[watch.time], "publishTime"))
    is_good, is_aborted = f.col("problem").isNull(), f.col("txnState").eqNullSafe("ABORTED")
    counts = is_good & ~is_aborted & is_customer(f.col("account"))
    place = f.concat_ws(":", "ledgerId", "entryId", f.when(f.col("batchIndex") >= 0, f.col("batchIndex")))
    period = f.date_format(f.date_trunc(watch.period, "at"), "yyyy-MM-dd'T'HH:mm:ss'Z'")
    groups = f.array_compact(
        f.array(
            _group(TOTAL, f.lit("")),
            f.when(is_good, _group(PERIOD, period)),
            f.when(counts, _group(ACCOUNT, f.col("account"))),
            f.when(is_good & (f.abs("hellers") >= watch.outsized), _group(OUTSIZED, place)),
        )
    )
    amount = f.when(counts | (f.col("group.kind") == OUTSIZED), f.col("hellers"))
    return (
        found.withColumn("group", f.explode(groups))
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


def _group(kind: str, name: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(f.lit(kind).alias("kind"), name.alias("name"))


@dataclass
class View:
    """What is known after the last micro-batch.

    Attributes:
        total: the sums of all messages; empty before the first batch.
        periods: the sums of each period that changed since the start, by its beginning.
        overdrawn: balance of each account that is overdrawn, in hundredths, as far as it changed since the start.
        outsized: the amounts out of the ordinary since the start, by position.
    """

    batches: int = 0
    total: dict[str, Any] = field(default_factory=dict)
    periods: dict[str, dict[str, Any]] = field(default_factory=dict)
    overdrawn: dict[str, int] = field(default_factory=dict)
    outsized: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def reserves(self) -> int:
        """What the customers have, in hundredths."""
        return int(self.total.get("inflow", 0)) - int(self.total.get("outflow", 0))


class Monitor:
    """Takes the micro-batches, for `foreachBatch`."""

    def __init__(self, watch: Watch, to: str | None, told: Callable[[View], None] = lambda _: None) -> None:
        """Keep a view, and write Parquet below the directory `to`: a directory for each batch, so that one which comes
        again replaces itself."""
        self.view = View()
        self._watch = watch
        self._to = to
        self._told = told

    def take(self, sums: DataFrame, batch_id: int) -> None:
        """Take the groups that changed."""
        from pyspark.sql import functions as f

        is_outsized = f.col("kind") == OUTSIZED
        is_sum = f.col("kind").isin(TOTAL, PERIOD)
        balance = f.col("inflow") - f.col("outflow")
        is_overdrawn = (f.col("kind") == ACCOUNT) & (balance < -self._watch.overdraft)
        is_known = (f.col("kind") == ACCOUNT) & f.col("name").isin(list(self.view.overdrawn))
        sums.persist()
        try:
            # All in one job of Spark: each costs more than what a usual micro-batch holds.
            shown = sums.where(is_sum | is_known)
            for some in (is_overdrawn & ~is_known, is_outsized):
                shown = shown.unionAll(sums.where(some).limit(_SHOWN_MAX))
            for row in shown.collect():
                self._note(row.asDict())
            if self._to is not None:
                self._write(sums.where(is_sum), "sums", batch_id)
                self._write(sums.where(is_overdrawn | is_outsized), "unusual", batch_id)
        finally:
            sums.unpersist()
        self.view.batches += 1
        self._told(self.view)

    def _note(self, row: dict[str, Any]) -> None:
        """Note the sums of a group; an account that is no longer overdrawn is taken out."""
        view, name = self.view, row["name"]
        if row["kind"] == TOTAL:
            view.total = row
        elif row["kind"] == PERIOD:
            view.periods[name] = row
        elif row["kind"] == OUTSIZED:
            view.outsized[name] = row
        elif (balance := row["inflow"] - row["outflow"]) < -self._watch.overdraft:
            view.overdrawn[name] = balance
        else:
            view.overdrawn.pop(name, None)

    def _write(self, frame: DataFrame, name: str, batch_id: int) -> None:
        assert self._to is not None
        place = os.path.join(files.to_write(self._to), name, f"batchId={batch_id}")
        frame.coalesce(1).write.mode("overwrite").parquet(place)


def run(
    spark: SparkSession,
    monitor: Monitor,
    watch: Watch,
    options: dict[str, str],
    checkpoint: str,
    *,
    every: float | None = None,
) -> Stream:
    """Start watching.

    Args:
        options: of `format("txnctl")`: path and topic at least.
        every: seconds between two looks at the topic; None takes what is there, and ends.
    """
    messages = (
        spark.readStream.format("txnctl")
        .schema(schemas.ddl(("key", "value", *REQUEST)))
        .options(**options, isolationLevel="READ_UNCOMMITTED")
        .load()
    )
    return Stream(transform(messages, watch), monitor.take, checkpoint, every, mode="update")
