"""Requests of the bank as a Declarative Pipeline: a topic becomes a table that grows, and the table a view of balances.

    topic requests -> streaming table `requests` -> materialized view `balances`
                                                 -> sink: topic `large`, exactly once

`spark-pipelines run` goes on where the last run ended, by the checkpoints of `storage` in spark-pipeline.yml.
Spark reads and writes on the host of the store, where txnctl is installed; nothing has to be registered.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession, functions as f

STORE = os.path.abspath(os.environ["TXNCTL_STORE"])
LARGE = 1000


@dp.table
def requests() -> DataFrame:
    """Every committed request, once: the account, the amount, and the position in the topic."""
    stream = (
        SparkSession.active()
        .readStream.format("txnctl")
        .option("path", STORE)
        .option("topic", "requests")
        .option("startingPosition", "earliest")
        .option("wholeTransactions", "true")
        .load()
    )
    return stream.select(
        f.col("key").cast("string").alias("account"),
        f.get_json_object(f.col("value").cast("string"), "$.delta").cast("decimal(17,2)").alias("amount"),
        f.concat_ws(":", "ledgerId", "entryId", "batchIndex").alias("position"),
        "publishTime",
    )


@dp.materialized_view
def balances() -> DataFrame:
    """The balance of each account, computed anew by each run."""
    table = SparkSession.active().read.table("requests")
    return table.groupBy("account").agg(f.sum("amount").alias("balance"))


dp.create_sink("large", "txnctl", {"path": STORE, "topic": "large"})


@dp.append_flow(target="large", name="large_requests")
def large_requests() -> DataFrame:
    """Requests of 1,000 and more, in or out, as messages of a topic of their own."""
    table = SparkSession.active().readStream.table("requests")
    value = f.to_json(f.struct("amount", "position"))
    return table.where(f.abs("amount") >= LARGE).select(f.col("account").alias("key"), value.alias("value"))
