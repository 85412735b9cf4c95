"""The audit job: balances recomputed from a topic, compared with the table and with the data's own balance column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txnctl.files import input_parts
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import bank_data
from txnctl.pipelines.request import KEYED, RequestForm
from txnctl.pipelines.request_columns import REQUEST, decimal_text, hellers, is_customer, requests, total, utc
from txnctl.spark import schemas
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BALANCE = ("account", "hellers")
SOURCES = ("inTopic", "inTable", "inData")
"""The balance columns, by source."""

LIST_MAX = 1000


@dataclass(frozen=True)
class Day:
    """The money of all customers at the end of a day, in hundredths, by the topic and by the data (None without)."""

    name: str
    topic: int
    data: int | None


class Difference(NamedTuple):
    """An account that differs, with the balance of each source as text, or None."""

    account: str
    in_topic: str | None
    in_table: str | None
    in_data: str | None


@dataclass(frozen=True)
class Findings:
    """The result of an audit.

    Attributes:
        accounts: how many accounts any source has.
        differing: how many accounts differ between sources.
        skipped: messages of the topics that are not requests.
        sum_in_topic, sum_in_table: all requests, and all balances, added up, in hundredths.
        differences: the first differing accounts, by name.
        days: in order; empty unless requested.
    """

    accounts: int
    differing: int
    skipped: int
    sum_in_topic: int
    sum_in_table: int
    differences: list[Difference]
    days: list[Day]


def balances_of_topic(messages: DataFrame, form: RequestForm = KEYED) -> DataFrame:
    """Recompute the balance of each account from the requests of a topic: `account`, `hellers`."""
    from pyspark.sql import functions as f

    good = requests(messages, form).where(f.col("problem").isNull())
    return good.groupBy("account").agg(total(f.col("hellers")).alias("hellers")).select(*BALANCE)


def balances_of_table(rows: DataFrame) -> DataFrame:
    """Read the balance of each account from the table; null where the value is not an amount."""
    from pyspark.sql import functions as f

    return rows.select(
        f.col("key").cast("string").alias("account"), hellers(f.col("value").cast("string")).alias("hellers")
    )


def lines_of_data(spark: SparkSession, path: str) -> DataFrame:
    """Read the columns of bank data from a file, or from the files of a directory or pattern.

    Raises:
        InvalidValue, BadInput: a file that cannot be read, or lacks a column.
    """
    from pyspark.sql import functions as f

    from txnctl.pipelines import file_source

    columns, options = MessageColumns(), InputOptions("csv")
    parts = input_parts.plan(path, columns, options)
    names = parts[0].names
    fields = f.from_json(f.col("value").cast("string"), "map<string,string>")
    rows = file_source.frame(spark, parts, columns, options).select(fields.alias("fields"))
    places = zip(bank_data.COLUMNS, bank_data.indexes_of(path, names), strict=True)
    return rows.select(*(f.col("fields")[names[index]].alias(column) for column, index in places))


def balances_of_data(lines: DataFrame) -> DataFrame:
    """Return the last balance of each account in bank data, whose lines are numbered per account by `acct_seq`."""
    from pyspark.sql import functions as f

    return (
        lines.groupBy(f.col("account_id").alias("account"))
        .agg(f.max_by(hellers(f.col("balance")), f.col("acct_seq").try_cast("bigint")).alias("hellers"))
        .select(*BALANCE)
    )


def transform(topic: DataFrame, table: DataFrame, data: DataFrame | None = None) -> DataFrame:
    """Join the balances of all sources: `account`, a column of hundredths for each source, and `agrees`.

    Every account of any source has a row. Data, if given, have only customers: settlement accounts of partner banks are
    compared between topic and table alone.
    """
    from pyspark.sql import functions as f

    sides = [topic, table, data if data is not None else topic.limit(0)]
    joined = None
    for side, name in zip(sides, SOURCES, strict=True):
        renamed = side.select("account", f.col("hellers").alias(name))
        joined = renamed if joined is None else joined.join(renamed, "account", "full_outer")
    assert joined is not None
    # A missing or unreadable balance is null, and null agrees with no balance.
    agrees = f.col("inTopic") == f.col("inTable")
    if data is not None:
        agrees &= ~is_customer(f.col("account")) | (f.col("inData") == f.col("inTopic"))
    return joined.select("account", *SOURCES, f.coalesce(agrees, f.lit(False)).alias("agrees"))


def days_of_topic(messages: DataFrame, form: RequestForm = KEYED) -> DataFrame:
    """Sum up the change of the customers' money by day of the event time: `day`, `hellers`."""
    from pyspark.sql import functions as f

    good = requests(messages, form).where(f.col("problem").isNull() & is_customer(f.col("account")))
    day = utc(f.coalesce("eventTime", "publishTime")).cast("date").cast("string")
    return good.groupBy(day.alias("day")).agg(total(f.col("hellers")).alias("hellers"))


def days_of_data(lines: DataFrame) -> DataFrame:
    """Sum up the same change from the balance column of the data: each balance minus the previous balance."""
    from pyspark.sql import Window, functions as f

    balance = hellers(f.col("balance"))
    before = f.lag(balance).over(
        Window.partitionBy("account_id").orderBy(f.col("acct_seq").try_cast("bigint"))
    )
    changes = lines.select(
        f.col("date").alias("day"), (balance - f.coalesce(before, f.lit(0))).alias("hellers")
    )
    return changes.groupBy("day").agg(total(f.col("hellers")).alias("hellers"))


class AuditSources(NamedTuple):
    """The sources to compare.

    Attributes:
        topic, table: options of `format("txnctl")` for each.
        data: a CSV file of the bank's lines.
    """

    topic: Mapping[str, str]
    table: Mapping[str, str]
    data: str | None = None


def audit_balances(
    spark: SparkSession, sources: AuditSources, *, form: RequestForm = KEYED, with_days: bool = False
) -> Findings:
    """Compare the balances of all sources.

    Args:
        with_days: compute the money of every day too, for a plot.
    """
    from pyspark.sql import functions as f

    with as_txnctl_errors():
        messages = (
            spark.read.format("txnctl")
            .schema(schemas.ddl(("key", "value", *REQUEST)))
            .options(**sources.topic, isolationLevel="READ_COMMITTED")
            .load()
        )
        rows = spark.read.format("txnctl").options(**sources.table).load()
        lines = None if sources.data is None else lines_of_data(spark, sources.data)
        sides = transform(
            balances_of_topic(messages, form),
            balances_of_table(rows),
            None if lines is None else balances_of_data(lines),
        ).persist()
        try:
            counts = sides.agg(
                f.count("*").alias("all"),
                f.count_if(~f.col("agrees")).alias("wrong"),
                f.coalesce(f.sum("inTopic"), f.lit(0)).alias("inTopic"),
                f.coalesce(total(f.col("inTable")), f.lit(0)).alias("inTable"),
            ).first()
            assert counts is not None
            differing = sides.where(~f.col("agrees")).orderBy("account").limit(LIST_MAX)
            shown = differing.select("account", *[decimal_text(f.col(name)).alias(name) for name in SOURCES])
            differences = [Difference(row[0] or "", *row[1:]) for row in shown.collect()]
        finally:
            sides.unpersist()
        skipped = requests(messages, form).where(f.col("problem").isNotNull()).count()
        days = _days(messages, lines, form) if with_days else []
        return Findings(
            counts["all"],
            counts["wrong"],
            skipped,
            int(counts["inTopic"]),
            int(counts["inTable"]),
            differences,
            days,
        )


def _days(messages: DataFrame, lines: DataFrame | None, form: RequestForm) -> list[Day]:
    """Return the money at the end of each day."""
    changes = _by_day(days_of_topic(messages, form))
    return running_days(changes, None if lines is None else _by_day(days_of_data(lines)))


def _by_day(frame: DataFrame) -> dict[str, int]:
    return {row["day"] or "": int(row["hellers"] or 0) for row in frame.collect()}


def running_days(by_topic: Mapping[str, int], by_data: Mapping[str, int] | None) -> list[Day]:
    """Add up changes by day: the money at the end of each day."""
    days: list[Day] = []
    money, balance_of_data = 0, 0
    for day in sorted(by_topic.keys() | (by_data or {}).keys()):
        money += by_topic.get(day, 0)
        balance_of_data += (by_data or {}).get(day, 0)
        days.append(Day(day, money, None if by_data is None else balance_of_data))
    return days
