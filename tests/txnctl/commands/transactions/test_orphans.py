"""`txnctl transactions orphans`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.transactions.desk_steps import Run, behind

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestAttention:
    """`transactions slow` and `orphans`."""

    def test_an_orphan_is_listed_until_somebody_writes(self, run: Run, path: Path, owners: Any) -> None:
        """With what it holds back; others are not."""
        process = owners()
        behind(path)
        run("transactions", "begin")
        assert run("transactions", "orphans", "-o", "json").json == []
        assert "no open transaction has lost its process" in run("transactions", "orphans").err
        process.kill()
        process.communicate(timeout=30)
        (row,) = run("transactions", "orphans", "-o", "json").json
        assert (row["txnId"], row["frees"], row["orphaned"]) == ("0:1", 1, True)
        assert run("transactions", "orphans").out.endswith("Next: txnctl transactions reap\n")
        assert run("transactions", "orphans", "--exit-code").status == 8
        assert run("transactions", "reap", "-o", "name").out == "0:1\n"
        assert run("transactions", "orphans", "-o", "json").json == []
