"""Bytes as a column of Arrow: binary, or text where that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from storage.errors import InvalidValue


def bytes_column(values: Sequence[bytes | None], field: pa.Field, where: str) -> pa.Array:
    """An array of the field's type.

    Args:
        where: among what these values are, for the error.

    Raises:
        InvalidValue: text was asked for, and one of them is not UTF-8.
    """
    found = pa.array(values, pa.binary())
    return found if field.type == pa.binary() else as_text(found, field, where)


def as_text(found: pa.Array, field: pa.Field, where: str) -> pa.Array:
    """Bytes as the text that the field is.

    Raises:
        InvalidValue: one of them is not UTF-8.
    """
    try:
        return found.cast(field.type)
    except pa.ArrowInvalid:
        raise InvalidValue(
            f"a {field.name} among {where} is not UTF-8, and was asked for as text",
            hint=f"Ask for `{field.name} binary`.",
        ) from None
