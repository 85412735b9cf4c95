"""Scan tables export: `txnctl/commands/tables/scan_tables_export.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.tables.tables_export_steps import rows

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(path: Path) -> Path:
    """A store with three accounts, which every command is told of, verified in full when the test is over."""
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").import_rows((b"B%d" % number, b"%d00" % number) for number in (1, 2, 3))
    return path


class TestIdentity:
    """`export | import`."""

    def test_scan_can_be_imported(self, run: Any, path: Path) -> None:
        """What else a line of it says is ignored."""
        printed = run("tables", "scan", "accounts", "-o", "ndjson").out_bytes
        assert run("tables", "import", "to", "--create", stdin=printed).status == 0
        assert rows(path, "to") == rows(path)
