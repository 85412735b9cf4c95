"""`txnctl tables create`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(path: Path) -> Path:
    """A store with three accounts, which every command is told of, verified in full when the test is over."""
    with Store.open(path) as store:
        store.create_table("accounts")
        for number in (1, 2, 3):
            store.table("accounts").put(b"B%d" % number, b"%d00" % number)
    return path


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_a_table_is_created_once(self, run: Any) -> None:
        """The second time it exists already."""
        assert run("tables", "create", "limits", "-o", "json").json == {"table": "limits"}
        assert run("tables", "create", "limits").status == 4
        assert run("tables", "list", "-o", "name").out == "accounts\nlimits\n"
