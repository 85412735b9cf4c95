"""Row columns: `txnctl/spark/source/row_columns.py`."""

from __future__ import annotations

from storage import Store
from tests.txnctl.spark.source.table_range_steps import rows


def test_only_the_columns_asked_for_are_read(filled: Store, path: str) -> None:
    """As text too."""
    assert rows(path, "value string", "key string")[:1] == [{"value": "v0", "key": "000"}]
