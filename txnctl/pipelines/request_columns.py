"""Requests to change balances, as columns: the input of settle, monitor and audit.

A request is one message, and has one or more *legs*, each an account and a signed amount, a decimal with at most two
digits after the point, as text or as a number. All legs of a request are applied at once, or none. `RequestForm` says
where they stand. Money is an integer of hundredths, so that sums are exact (txnctl/pipelines/hellers.py is the same in
Python).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import InvalidValue

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AMOUNT_DEFAULT = "delta"
_AMOUNT = r"^-?[0-9]{1,15}(\.[0-9]{1,2})?$"
PARTNER_PREFIX = "bank:"
"""Prefix of the key of a partner bank's settlement account; all other accounts are customers' (txnctl/demo/request.py).
"""

REQUEST = ("topic", "ledgerId", "entryId", "batchIndex", "eventTime", "publishTime", "txnId", "txnState")
"""The columns of the message kept beside those of each leg."""


def hellers(text: Column) -> Column:
    """Parse an amount into hundredths; null for other text."""
    from pyspark.sql import functions as f

    scaled = (text.try_cast("decimal(17,2)") * 100).cast("bigint")
    return f.when(text.rlike(_AMOUNT), scaled)


def decimal_text(amount: Column) -> Column:
    """Format hundredths as decimal text: -269200 as "-2692.00"."""
    return (amount.cast("decimal(20,2)") / 100).cast("decimal(20,2)").cast("string")


@dataclass(frozen=True)
class RequestForm:
    """Where the legs of a request stand: in the key and one field, in three fields, or in a list.

    Attributes:
        amount: the field of the value's JSON, or of each object of the list, with the amount.
        debit, credit: fields with accounts: the amount is subtracted from the one and added to the other. Both or none.
        legs: a field with a list of objects, each with `account` and an amount.
    """

    amount: str = AMOUNT_DEFAULT
    debit: str | None = None
    credit: str | None = None
    legs: str | None = None

    def __post_init__(self) -> None:
        if (self.debit is None) != (self.credit is None) or (self.debit and self.legs):
            raise InvalidValue(
                "a request names its accounts by its key, by a debit and a credit field, or by a list of legs",
                hint="Give --debit with --credit, or --legs, or none of them.",
            )

    @property
    def wanted(self) -> str:
        """What a message of this form has, for the error about a message that is no request."""
        if self.legs is not None:
            return f"JSON with a list {self.legs!r} of objects, each with 'account' and an amount in {self.amount!r}"
        if self.debit is not None:
            return (
                f"JSON with accounts in {self.debit!r} and {self.credit!r}, and an amount in {self.amount!r}"
            )
        return f"a key, and JSON with an amount in {self.amount!r}"


KEYED = RequestForm()
"""The account is the key, the amount the field `delta`."""


def requests(messages: DataFrame, form: RequestForm = KEYED) -> DataFrame:
    """Parse messages as requests, a row for each leg.

    Gives `leg`, the index of the leg in its message; `account` (text); `hellers`; and `problem`, the reason why the
    message is not a request: such a message is one row, without account and amount.

    Args:
        messages: of the message schema; `properties` are not used.
    """
    from pyspark.sql import functions as f

    legs = _legs(form)
    is_whole = (f.size("legs") > 0) & f.forall(
        "legs", lambda leg: leg["account"].isNotNull() & leg["hellers"].isNotNull()
    )
    nothing = f.array(
        f.struct(f.lit(None).cast("string").alias("account"), f.lit(None).cast("bigint").alias("hellers"))
    )
    problem = f.when(~f.coalesce(is_whole, f.lit(False)), f"a request has {form.wanted}")
    return (
        messages.select(*REQUEST, legs.alias("legs"))
        .withColumn("problem", problem)
        .withColumn("legs", f.when(f.col("problem").isNull(), f.col("legs")).otherwise(nothing))
        .select(*REQUEST, "problem", f.posexplode("legs").alias("leg", "content"))
        .select(*REQUEST, "leg", "content.account", "content.hellers", "problem")
    )


def _legs(form: RequestForm) -> Column:
    """The legs of a message, as structs of account and hellers; null where the value is not of the form."""
    from pyspark.sql import functions as f

    text = f.col("value").cast("string")
    if form.legs is not None:
        name = form.amount.replace("`", "``")
        listed = _field(text, form.legs)
        # Spark takes an object for a list of one.
        listed = f.when(listed.startswith("["), listed)
        parsed = f.from_json(listed, f"array<struct<account: string, `{name}`: string>>")
        return f.transform(
            parsed,
            lambda leg: f.struct(leg["account"].alias("account"), hellers(leg[form.amount]).alias("hellers")),
        )
    amount = hellers(_field(text, form.amount))
    if form.debit is None or form.credit is None:
        return f.array(f.struct(f.col("key").cast("string").alias("account"), amount.alias("hellers")))
    return f.array(
        f.struct(_field(text, form.debit).alias("account"), (-amount).alias("hellers")),
        f.struct(_field(text, form.credit).alias("account"), amount.alias("hellers")),
    )


def _field(json: Column, name: str) -> Column:
    """The text of a field of a JSON object; null where there is none."""
    from pyspark.sql import functions as f

    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f.get_json_object(json, f"$['{escaped}']")


def is_customer(account: Column) -> Column:
    """Report whether an account is a customer's."""
    return ~account.startswith(PARTNER_PREFIX)
