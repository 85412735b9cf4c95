"""`txnctl tables create`."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("path")


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_a_table_is_created_once(self, run: Any) -> None:
        """The second time it exists already."""
        assert run("tables", "create", "limits", "-o", "json").json == {"table": "limits", "created": True}
        assert run("tables", "create", "limits").status == 4
        assert run("tables", "list", "-o", "name").out == "accounts\nlimits\n"
