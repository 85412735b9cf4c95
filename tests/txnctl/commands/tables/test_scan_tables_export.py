"""Scan tables export: `txnctl/commands/tables/scan_tables_export.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.tables.tables_export_steps import rows

pytestmark = pytest.mark.usefixtures("path")


class TestIdentity:
    """`export | import`."""

    def test_scan_can_be_imported(self, run: Any, path: Path) -> None:
        """What else a line of it says is ignored."""
        printed = run("tables", "scan", "accounts", "-o", "ndjson").out_bytes
        assert run("tables", "import", "to", "--create", stdin=printed).status == 0
        assert rows(path, "to") == rows(path)
