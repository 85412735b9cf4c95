"""Which columns may be asked for, and how."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from storage.errors import InvalidValue
from tests.txnctl.spark.asked import of_messages, of_rows, struct
from txnctl.spark import schemas


def test_the_schema_of_messages_is_the_documented_one() -> None:
    """Names, order and types; without the properties if they are not wanted."""
    assert schemas.ddl(schemas.message_columns(True)) == (
        "key binary, value binary, topic string, ledgerId bigint, entryId bigint, batchIndex int, "
        "publishTime timestamp, eventTime timestamp, deliveryTime timestamp, properties map<string,string>, "
        "txnId string, txnState string"
    )
    assert "properties" not in schemas.message_columns(False)


def test_any_columns_may_be_asked_for_in_any_order() -> None:
    """Arrow's schema is exactly what Spark was told."""
    asked = of_messages("entryId", "value", "publishTime")
    assert asked.names == ["entryId", "value", "publishTime"]
    assert asked.types == [pa.int64(), pa.binary(), pa.timestamp("us", tz="UTC")]


def test_keys_and_values_may_be_text() -> None:
    """Of messages and of rows."""
    assert of_messages("value string").types == [pa.string()]
    assert of_rows("key string", "value string").types == [pa.string(), pa.string()]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["entryId string"], "entryId is bigint; the schema asks for string"),
        (["topic binary"], "topic is string; the schema asks for binary"),
        ([], "asks for no column"),
    ],
)
def test_other_types_are_refused(columns: list[str], told: str) -> None:
    """The error says what the column is."""
    with pytest.raises(InvalidValue, match=told):
        schemas.arrow_schema(struct(*columns), schemas.MESSAGE_TYPES)


def test_a_column_that_is_not_there_is_refused_with_the_nearest() -> None:
    """`offset` is Kafka's, `values` a slip."""
    with pytest.raises(InvalidValue, match="unknown column values") as error:
        schemas.arrow_schema(StructType([StructField("values", BinaryType())]), schemas.MESSAGE_TYPES)
    assert (error.value.hint or "").startswith("Did you mean value? The columns are key, value, ")


def test_what_may_be_null_is_not_promised_to_be_there() -> None:
    """A tombstone has no value: NOT NULL would be a lie that Spark believes."""
    with pytest.raises(InvalidValue, match="value may be null"):
        schemas.arrow_schema(
            StructType([StructField("value", BinaryType(), nullable=False)]), schemas.MESSAGE_TYPES
        )
