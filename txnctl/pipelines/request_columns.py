"""Requests to change a balance, as columns: the input of settle, monitor and audit.

A request is a message whose key names the account and whose value is JSON with the amount, a decimal with at most two
digits after the point: `{"delta": "-120.50"}`, as text or as a number. Money is an integer of hundredths, so that sums
are exact (txnctl/pipelines/hellers.py is the same in Python).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AMOUNT_DEFAULT = "delta"
_AMOUNT = r"^-?[0-9]{1,15}(\.[0-9]{1,2})?$"
PARTNER_PREFIX = "bank:"
"""Prefix of the key of a partner bank's settlement account; all other accounts are customers' (txnctl/demo/request.py).
"""

REQUEST = ("topic", "ledgerId", "entryId", "batchIndex", "eventTime", "publishTime", "txnId", "txnState")
"""The columns of the message kept beside `account`, `hellers` and `problem`."""


def hellers(text: Column) -> Column:
    """Parse an amount into hundredths; null for other text."""
    from pyspark.sql import functions as f

    scaled = (text.try_cast("decimal(17,2)") * 100).cast("bigint")
    return f.when(text.rlike(_AMOUNT), scaled)


def decimal_text(amount: Column) -> Column:
    """Format hundredths as decimal text: -269200 as "-2692.00"."""
    return (amount.cast("decimal(20,2)") / 100).cast("decimal(20,2)").cast("string")


def requests(messages: DataFrame, amount: str = AMOUNT_DEFAULT) -> DataFrame:
    """Parse messages as requests: `account` (text), `hellers`, and `problem`, the reason why a message is not a
    request.

    Args:
        messages: of the message schema; `properties` are not used.
        amount: the field of the value's JSON with the amount.
    """
    from pyspark.sql import functions as f

    text = f.get_json_object(f.col("value").cast("string"), f"$['{amount}']")
    request_rows = messages.select(
        *REQUEST, f.col("key").cast("string").alias("account"), hellers(text).alias("hellers")
    )
    problem = (
        f.when(f.col("account").isNull(), "no key, and so no account")
        .when(f.col("hellers").isNull(), f'the value is not a JSON object with an amount in "{amount}"')
        .otherwise(None)
    )
    return request_rows.withColumn("problem", problem)


def is_customer(account: Column) -> Column:
    """Report whether an account is a customer's."""
    return ~account.startswith(PARTNER_PREFIX)
