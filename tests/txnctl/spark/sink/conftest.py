"""Fixtures of the tests in this folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import fs

from txnctl.spark.sink.staging import Staging


@pytest.fixture(params=["path", "uri", "mock subtree"])
def staging(request: pytest.FixtureRequest, tmp_path: Path) -> Staging:
    """A place on each kind of file system; the mock one keeps its files in memory."""
    if request.param == "mock subtree":
        found = Staging(fs.SubTreeFileSystem("a", fs._MockFileSystem(datetime.now(UTC))), "b/c", "mock")
    else:
        found = Staging.at(f"{'file://' if request.param == 'uri' else ''}{tmp_path}/deep/staging")
    found.make_directory()
    return found
