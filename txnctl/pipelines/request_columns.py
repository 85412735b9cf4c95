"""Requests to change balances, as columns: the input of settle, monitor and audit on Spark.

The rule is `legs_of` (txnctl/pipelines/request.py), which runs in the tasks, as a job without Spark runs it. Money is
an integer of hundredths, so that sums are exact (txnctl/pipelines/hellers.py is the same in Python).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnctl.pipelines.leg_column import LEGS, legs_function
from txnctl.pipelines.request import KEYED, PARTNER_PREFIX, RequestForm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_AMOUNT = r"^-?[0-9]{1,15}(\.[0-9]{1,2})?\z"

REQUEST = ("topic", "ledgerId", "entryId", "batchIndex", "eventTime", "publishTime", "txnId", "txnState")
"""The columns of the message kept beside those of each leg."""


def hellers(text: Column) -> Column:
    """Parse an amount into hundredths; null for other text."""
    from pyspark.sql import functions as f

    scaled = (text.try_cast("decimal(17,2)") * 100).cast("bigint")
    return f.when(text.rlike(_AMOUNT), scaled)


def total(amount: Column) -> Column:
    """Add up hundredths, which together may be more than a bigint holds."""
    from pyspark.sql import functions as f

    return f.sum(amount.cast("decimal(19,0)"))


def decimal_text(amount: Column) -> Column:
    """Format hundredths as decimal text: -269200 as "-2692.00"."""
    return (amount.cast("decimal(30,2)") / 100).cast("decimal(30,2)").cast("string")


def requests(messages: DataFrame, form: RequestForm = KEYED) -> DataFrame:
    """Parse messages as requests, a row for each leg.

    Gives `leg`, the index of the leg in its message; `account` (text); `hellers`; and `problem`, the reason why the
    message is not a request: such a message is one row, without account and amount.

    Args:
        messages: of the message schema; `properties` are not used.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    legs = arrow_udf(legs_function(form), LEGS)(f.col("key").cast("binary"), f.col("value").cast("binary"))  # type: ignore[call-overload]
    return (
        messages.select(*REQUEST, legs.alias("legs"))
        .select(*REQUEST, f.posexplode_outer("legs").alias("leg", "content"))
        .select(
            *REQUEST,
            f.coalesce("leg", f.lit(0)).alias("leg"),
            "content.account",
            "content.hellers",
            f.when(f.col("content").isNull(), f"a request has {form.wanted}").alias("problem"),
        )
    )


def is_customer(account: Column) -> Column:
    """Report whether an account is a customer's."""
    return ~account.startswith(PARTNER_PREFIX)


def utc(time: Column) -> Column:
    """The time in UTC, without a zone: its date and its text are the same in sessions of every zone."""
    from pyspark.sql import functions as f

    return f.timestamp_add("MICROSECOND", f.unix_micros(time), f.expr("timestamp_ntz'1970-01-01 00:00:00'"))
