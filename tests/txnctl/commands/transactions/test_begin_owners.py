"""Owners of transactions that were begun in a process: alive, stopped, dead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.commands.transactions.desk_steps import Run, explained

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestOwners:
    """The evidence that an owner lives is a kernel lock; everything else is said beside it."""

    def test_detached(self, run: Run) -> None:
        """No process is asked after: its deadline alone rules."""
        run("transactions", "begin")
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["lockHeld"]) == ("detached", None)
