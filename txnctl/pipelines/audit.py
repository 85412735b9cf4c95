"""A topic -> balances, held against the table of balances and against the data's own balance column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txnctl.pipelines import files
from txnctl.pipelines.money import AMOUNT_DEFAULT, REQUEST, decimal_text, hellers, is_customer, requests
from txnctl.spark import schemas
from txnctl.spark.runtime.job_errors import told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BALANCE = ("account", "hellers")
SOURCES = ("inTopic", "inTable", "inData")
"""The balance of an account, by where it is from."""

_LIST_MAX = 1000


@dataclass(frozen=True)
class Day:
    """The money of all customers at the end of a day, in hundredths: by the topic, and by the data if there are any."""

    name: str
    topic: int
    data: int | None


@dataclass(frozen=True)
class Findings:
    """What an audit found.

    Attributes:
        accounts: how many accounts any of the sources has.
        differing: how many of them are not the same everywhere.
        differences: the first of those, by account: its name, and per source the balance as text, or None.
        skipped: messages of the topic that are no requests.
        days: in order; only where they were asked for.
    """

    accounts: int
    differing: int
    skipped: int
    differences: list[dict[str, Any]]
    days: list[Day]


def recomputed(messages: DataFrame, amount: str = AMOUNT_DEFAULT) -> DataFrame:
    """The balance of each account, as the requests of a topic add up: `account`, `hellers`."""
    from pyspark.sql import functions as f

    good = requests(messages, amount).where(f.col("problem").isNull())
    return good.groupBy("account").agg(f.sum("hellers").alias("hellers")).select(*BALANCE)


def of_table(rows: DataFrame) -> DataFrame:
    """The balance of each account, as the table has it; null where its value is no amount."""
    from pyspark.sql import functions as f

    return rows.select(
        f.col("key").cast("string").alias("account"), hellers(f.col("value").cast("string")).alias("hellers")
    )


def of_data(lines: DataFrame) -> DataFrame:
    """The last balance of each account in bank data, whose lines of an account are numbered by `acct_seq`."""
    from pyspark.sql import functions as f

    return (
        lines.groupBy(f.col("account_id").alias("account"))
        .agg(f.max_by(hellers(f.col("balance")), f.col("acct_seq").try_cast("bigint")).alias("hellers"))
        .select(*BALANCE)
    )


def transform(topic: DataFrame, table: DataFrame, data: DataFrame | None = None) -> DataFrame:
    """Balances side by side: `account`, a column of hundredths a source, and `agrees`.

    Every account of any source is there. Where data are given they have a say over customers only: of the settlement
    accounts of partner banks they know nothing.
    """
    from pyspark.sql import functions as f

    sides = [topic, table, data if data is not None else topic.limit(0)]
    joined = None
    for side, name in zip(sides, SOURCES, strict=True):
        renamed = side.select("account", f.col("hellers").alias(name))
        joined = renamed if joined is None else joined.join(renamed, "account", "full_outer")
    assert joined is not None
    # Where a balance is missing, or is no amount, it is null, and agrees with nothing.
    agrees = f.col("inTopic") == f.col("inTable")
    if data is not None:
        agrees &= ~is_customer(f.col("account")) | (f.col("inData") == f.col("inTopic"))
    return joined.select("account", *SOURCES, f.coalesce(agrees, f.lit(False)).alias("agrees"))


def days_of_topic(messages: DataFrame, amount: str = AMOUNT_DEFAULT) -> DataFrame:
    """By day of the event time, what the requests of the topic change the customers' money by: `day`, `hellers`."""
    from pyspark.sql import functions as f

    good = requests(messages, amount).where(f.col("problem").isNull() & is_customer(f.col("account")))
    day = f.to_date(f.coalesce("eventTime", "publishTime")).cast("string")
    return good.groupBy(day.alias("day")).agg(f.sum("hellers").alias("hellers"))


def days_of_data(lines: DataFrame) -> DataFrame:
    """The same by the balance column of the data: how each balance differs from the one before it."""
    from pyspark.sql import Window, functions as f

    balance = hellers(f.col("balance"))
    before = f.lag(balance).over(
        Window.partitionBy("account_id").orderBy(f.col("acct_seq").try_cast("bigint"))
    )
    changes = lines.select(
        f.col("date").alias("day"), (balance - f.coalesce(before, f.lit(0))).alias("hellers")
    )
    return changes.groupBy("day").agg(f.sum("hellers").alias("hellers"))


def run(
    spark: SparkSession,
    topic: dict[str, str],
    table: dict[str, str],
    data: str | None = None,
    *,
    amount: str = AMOUNT_DEFAULT,
    with_days: bool = False,
) -> Findings:
    """Audit.

    Args:
        topic, table: options of `format("txnctl")` for each.
        data: a CSV file of the bank's lines.
        with_days: find the money of every day too, for a plot.
    """
    from pyspark.sql import functions as f

    with told_as_ours():
        messages = (
            spark.read.format("txnctl")
            .schema(schemas.ddl(("key", "value", *REQUEST)))
            .options(**topic, isolationLevel="READ_COMMITTED")
            .load()
        )
        rows = spark.read.format("txnctl").options(**table).load()
        lines = None if data is None else spark.read.option("header", True).csv(files.to_read(data))
        sides = transform(
            recomputed(messages, amount), of_table(rows), None if lines is None else of_data(lines)
        ).persist()
        try:
            counts = sides.agg(f.count("*").alias("all"), f.count_if(~f.col("agrees")).alias("wrong")).first()
            assert counts is not None
            wrong = sides.where(~f.col("agrees")).orderBy("account").limit(_LIST_MAX)
            shown = wrong.select("account", *[decimal_text(f.col(name)).alias(name) for name in SOURCES])
            differences = [row.asDict() for row in shown.collect()]
        finally:
            sides.unpersist()
        skipped = requests(messages, amount).where(f.col("problem").isNotNull()).count()
        days = _days(messages, lines, amount) if with_days else []
        return Findings(counts["all"], counts["wrong"], skipped, differences, days)


def _days(messages: DataFrame, lines: DataFrame | None, amount: str) -> list[Day]:
    """Money at the end of each day; by the data it is unknown where there are none."""
    changes = {row["day"]: row["hellers"] for row in days_of_topic(messages, amount).collect()}
    by_data = {} if lines is None else {row["day"]: row["hellers"] for row in days_of_data(lines).collect()}
    found: list[Day] = []
    money, other = 0, 0
    for day in sorted(changes.keys() | by_data.keys()):
        money += changes.get(day, 0)
        other += by_data.get(day, 0)
        found.append(Day(day, money, other if lines is not None else None))
    return found
