"""The JSON form of rows, in which tests name fields as the command line prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from storage.json_form import to_json


def row_json(rows: Any) -> Any:
    """A row or a list of rows as the command line prints it; an iterator of rows as a list."""
    return [to_json(row) for row in rows] if isinstance(rows, Iterator) else to_json(rows)
