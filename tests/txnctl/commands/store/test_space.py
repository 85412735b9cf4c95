"""`txnctl store space`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txnctl.commands.store import space
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestInfo:
    """`store info`, `space`."""

    def test_space_adds_up_to_no_more_than_the_file(self, run: Any, path: Path) -> None:
        """The largest first."""
        rows = run("store", "space", "-o", "json").json
        assert not undeclared(rows[0], space.SPACE)
        sizes = [row["bytes"] for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert 0 < sum(sizes) <= (path / "data.mdb").stat().st_size
