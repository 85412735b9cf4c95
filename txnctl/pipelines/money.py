"""Requests to change a balance, as columns: what settle, monitor and audit make of messages.

A request is a message whose key says whose balance changes and whose value is JSON with the amount, a decimal with at
most two digits after the point: `{"delta": "-120.50"}`, as text or as a number. Money is in hundredths, whole numbers,
so that sums are exact (txnctl/pipelines/hellers.py says the same in Python).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AMOUNT_DEFAULT = "delta"
_AMOUNT = r"^-?[0-9]{1,15}(\.[0-9]{1,2})?$"
PARTNER_PREFIX = "bank:"
"""Begins the key of a partner bank's settlement account; all others are customers' (txnctl/demo/request.py)."""

REQUEST = ("topic", "ledgerId", "entryId", "batchIndex", "eventTime", "publishTime", "txnId", "txnState")
"""What a request keeps of its message beside `account`, `hellers` and `problem`."""


def hellers(text: Column) -> Column:
    """An amount in hundredths; null where the text is no amount."""
    from pyspark.sql import functions as f

    scaled = (text.try_cast("decimal(17,2)") * 100).cast("bigint")
    return f.when(text.rlike(_AMOUNT), scaled)


def decimal_text(amount: Column) -> Column:
    """Hundredths as decimal text: -269200 as "-2692.00"."""
    return (amount.cast("decimal(20,2)") / 100).cast("decimal(20,2)").cast("string")


def requests(messages: DataFrame, amount: str = AMOUNT_DEFAULT) -> DataFrame:
    """Messages as requests: `account` (text), `hellers`, and `problem`, which says why a message is none.

    Args:
        messages: of the message schema; `properties` are not looked at.
        amount: the field of the value's JSON that has the amount.
    """
    from pyspark.sql import functions as f

    text = f.get_json_object(f.col("value").cast("string"), f"$['{amount}']")
    found = messages.select(
        *REQUEST, f.col("key").cast("string").alias("account"), hellers(text).alias("hellers")
    )
    problem = (
        f.when(f.col("account").isNull(), "it has no key, so nobody's balance changes")
        .when(f.col("hellers").isNull(), f'its value is no JSON object with an amount in "{amount}"')
        .otherwise(None)
    )
    return found.withColumn("problem", problem)


def is_customer(account: Column) -> Column:
    """Whether an account is a customer's."""
    return ~account.startswith(PARTNER_PREFIX)
