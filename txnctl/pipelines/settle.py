"""The settle job on Spark: a topic at READ_COMMITTED, as it grows, becomes balances in a table, exactly once.

A micro-batch holds all legs of a request, and the requests that one transaction has sent to the topic, where it is
not too long: so the sum of all balances is right at every version of the table. Spark sums up each micro-batch by
account, and the driver applies the sums in one transaction (settler.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage import MessageId
from txnctl.pipelines.request import KEYED, RequestForm
from txnctl.pipelines.request_columns import REQUEST, requests, total
from txnctl.pipelines.settler import AccountSum, BatchSettler, Settlement, SettleOptions, settled_through
from txnctl.pipelines.streaming import Stream
from txnctl.spark import schemas
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "SettleOptions",
    "Settlement",
    "Settler",
    "settled_through",
    "start_settling",
    "sums_after",
    "transform",
]


def transform(messages: DataFrame, after: MessageId | None, form: RequestForm = KEYED) -> DataFrame:
    """Sum up the messages after a position by account.

    Gives `account`, `hellers`, `requests`, `skipped`, `first` (struct of ledgerId, entryId, batchIndex of the first
    message that is not a request) and `last` (of the last message). Messages that are not requests are under the
    account null.
    """
    from pyspark.sql import functions as f

    position = f.struct("ledgerId", "entryId", "batchIndex")
    if after is not None:
        settled = f.struct(
            f.lit(after.ledger_id).cast("bigint"),
            f.lit(after.entry_id).cast("bigint"),
            f.lit(after.batch_index),
        )
        messages = messages.where(position > settled)
    is_bad = f.col("problem").isNotNull()
    return (
        requests(messages, form)
        .select(
            f.when(~is_bad, f.col("account")).alias("account"),
            "hellers",
            is_bad.alias("bad"),
            (~is_bad & (f.col("leg") == 0)).alias("counts"),
            position.alias("place"),
        )
        .groupBy("account")
        .agg(
            total(f.when(~f.col("bad"), f.col("hellers"))).alias("hellers"),
            f.count_if("counts").alias("requests"),
            f.count_if("bad").alias("skipped"),
            f.min(f.when(f.col("bad"), f.col("place"))).alias("first"),
            f.max("place").alias("last"),
        )
        .select("account", "hellers", "requests", "skipped", "first", "last")
    )


def sums_after(
    messages: DataFrame, after: MessageId | None, form: RequestForm = KEYED
) -> Iterator[AccountSum]:
    """Compute the sums of the messages after a position."""
    for row in transform(messages, after, form).toLocalIterator():
        yield AccountSum(
            row["account"],
            int(row["hellers"] or 0),
            row["requests"],
            row["skipped"],
            None if row["first"] is None else MessageId(*row["first"]),
            MessageId(*row["last"]),
        )


class Settler(BatchSettler):
    """Settles the micro-batches of one topic into one table, for `foreachBatch`."""

    def settle_batch(self, messages: DataFrame, batch_id: int) -> None:
        """Settle one micro-batch, without the messages settled before.

        Raises:
            BadInput, Conflict: as `settle`.
        """
        self.settle(lambda after: sums_after(messages, after, self.form), batch_id)


def start_settling(
    spark: SparkSession,
    settler: Settler,
    options: dict[str, str],
    checkpoint: str,
    *,
    interval_s: float | None = None,
) -> Stream:
    """Start settling.

    Args:
        options: of `format("txnctl")`: path, topic and subscription at least.
        checkpoint: a directory for Spark; may be new each time, as the settled position is in the store.
        interval_s: seconds between two micro-batches; None settles the messages present, and ends.
    """
    with as_txnctl_errors():
        messages = (
            spark.readStream.format("txnctl")
            .schema(schemas.ddl(("key", "value", *REQUEST)))
            .options(**options, isolationLevel="READ_COMMITTED", wholeTransactions="true")
            .load()
        )
    return Stream(messages, settler.settle_batch, checkpoint, interval_s)
