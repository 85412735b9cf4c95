"""Columns of bytes in Arrow: binary, or text where the requested schema says string."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from storage.errors import InvalidValue


def bytes_column(values: Sequence[bytes | None], field: pa.Field, where: str) -> pa.Array:
    """Return an array of the field's type.

    Args:
        where: the range of the values, for the error.

    Raises:
        InvalidValue: the field is text, and a value is not UTF-8.
    """
    array = pa.array(values, pa.binary())
    return array if field.type == pa.binary() else as_text(array, field, where)


def as_text(array: pa.Array, field: pa.Field, where: str) -> pa.Array:
    """Cast an array of bytes to the text type of a field.

    Raises:
        InvalidValue: a value is not UTF-8.
    """
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid:
        raise InvalidValue(
            f"a {field.name} among {where} is not UTF-8, and the schema asks for text",
            hint=f"Request `{field.name} binary`.",
        ) from None
