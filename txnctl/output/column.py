"""Columns of tables for people: heading, kind, and the function that reads the value from a typed row."""

from __future__ import annotations

from typing import Generic, TypeVar

from storage.json_form import to_json
from txnctl.output.field import KINDS, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from txnctl.output.table_layout import Short

R = TypeVar("R")


class Column(Generic[R]):
    """One column: `Column("AGE", "duration", lambda row: row.age_ms)`.

    The kind gives alignment, folding and the words for a number; `None` is shown as `-`. On a narrow terminal columns
    with a rank go, the highest first, and `short` takes less room.
    """

    __slots__ = ("heading", "kind", "rank", "short", "value")

    def __init__(
        self,
        heading: str,
        kind: str,
        value: Callable[[R], object],
        *,
        rank: int = 0,
        short: Short | None = None,
    ) -> None:
        assert kind in KINDS, kind
        self.heading = heading
        self.kind = kind
        self.value = value
        self.rank = rank
        self.short = short

    def cell(self, row: R) -> str:
        """The value of this column in `row`, for people."""
        return shown(to_json(self.value(row)), self.kind)
