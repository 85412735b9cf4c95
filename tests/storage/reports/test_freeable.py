"""What could be freed: `storage/reports/freeable.py`."""

from __future__ import annotations

from storage import Store, Table


def test_a_table_is_as_large_as_its_share_of_the_pages(store: Store, table: Table) -> None:
    """Also on a server, where several databases lie in one table of the server."""
    table.import_rows((b"%d" % number, b"x" * 1000) for number in range(100))
    rows = [row for row in store.reports.list_freeable() if row.kind == "table"]
    assert [row.name for row in rows] == ["accounts"]
    assert rows[0].size_bytes == rows[0].freed_bytes
    assert (rows[0].freed_bytes or 0) > 10_000
