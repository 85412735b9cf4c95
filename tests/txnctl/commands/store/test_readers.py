"""`txnctl store readers`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.store import readers
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestHolders:
    """`store locks`, `readers`."""

    def test_readers_are_named(self, run: Any, path: Path) -> None:
        """With how far behind they are; an empty table is success."""
        assert run("store", "readers").status == 0
        with Store.open(path) as store:
            with store.connection.view():
                store.create_topic("another")
                rows = run("store", "readers", "-o", "json").json
            mine = [row for row in rows if row["pid"] == os.getpid() and row["state"] == "reading"]
        assert not undeclared(mine[0], readers.READERS)
        assert max(row["behind"] for row in mine) == 1
