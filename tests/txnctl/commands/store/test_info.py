"""`txnctl store info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.disk.schema import FORMAT_NUMBER
from txnctl.commands.store import info
from txnctl.commands.store.process_table import holder_cell
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestInfo:
    """`store info`, `space`."""

    def test_info_says_what_it_is(self, run: Any, path: Path) -> None:
        """All fields are declared."""
        row = run("store", "info", "-o", "json").json
        assert not undeclared(row, info.INFO)
        assert (row["path"], row["format"], row["topics"]) == (str(path), FORMAT_NUMBER, 1)
        assert row["dataBytes"] == (path / "data.mdb").stat().st_size
        assert ["path", str(path)] in [line.split() for line in run("store", "info").out.splitlines()]

    def test_looking_changes_nothing(self, run: Any, path: Path) -> None:
        """Not a byte of the data file or of our own files."""
        before = {name: (path / name).read_bytes() for name in ("data.mdb", "store.lock")}
        for words in ("info", "space", "locks", "readers", "verify"):
            assert run("store", words).status == 0
        assert {name: (path / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    ("holder", "shown"),
    [
        (None, None),
        ("process 7 (python load.py)", "process 7 (python load.py)"),
        (
            "process 48211 (python /srv/loader/load.py --from 2024-05-01 --to 2024-06-01)",
            "process 48211 (python /srv/loader/load.py --from ...)",
        ),
    ],
)
def test_a_long_command_line_is_cut_at_a_word(holder: str | None, shown: str | None) -> None:
    """The table has what fits, and says that there is more."""
    assert holder_cell(holder) == shown
