"""The options of an upsert into a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storage.errors import InvalidValue
from txnctl.spark.option_values import flag

OPTIONS: Final = ("upsert", "key", "deleteColumn", "orderColumn")


@dataclass(frozen=True)
class UpsertOptions:
    """The columns of an upsert.

    Attributes:
        key: the column of the table's key.
        delete: the column that is true in a row which deletes its key; None: a null value deletes.
        order: the column whose highest value wins among rows of one key; None: such rows are refused.
    """

    key: str = "key"
    delete: str | None = None
    order: str | None = None


def parse_upsert(parsed: Mapping[str, str]) -> UpsertOptions | None:
    """Parse the options of an upsert, by their canonical names; None of an append.

    Raises:
        InvalidValue
    """
    if not flag(parsed, "upsert", False):
        for name in OPTIONS[1:]:
            if name in parsed:
                raise InvalidValue(f"{name} goes with upsert, which is not given", hint="Set upsert to true.")
        return None
    if "table" not in parsed:
        raise InvalidValue("an upsert writes to a table", hint="Name it by the option table.")
    columns = UpsertOptions(parsed.get("key", "key"), parsed.get("deleteColumn"), parsed.get("orderColumn"))
    names = [name for name in (columns.key, columns.delete, columns.order, "value") if name is not None]
    if len(set(names)) < len(names):
        raise InvalidValue("an upsert takes key, value, deletion and order from different columns")
    return columns
