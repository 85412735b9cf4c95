"""`txnctl transactions slow`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.commands.transactions.desk_steps import Run, squeezed
from txnctl.commands.transactions.holding import HOLDING
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestAttention:
    """`transactions slow` and `orphans`."""

    @pytest.mark.usefixtures("blocked_store")
    def test_the_oldest_first_with_what_waits_for_each(self, run: Run) -> None:
        """And the command about the one that holds most."""
        rows = run("transactions", "slow", "-o", "json").json
        assert [(row["txnId"], row["frees"]) for row in rows] == [("0:1", 797), ("0:2", 403)]
        assert not undeclared(rows[0], HOLDING)
        out = run("transactions", "slow").out
        assert squeezed(out)[0].startswith("TXN AGE IDLE DEADLINE ALIVE FREES OWNER")
        assert out.endswith("Next: txnctl transactions explain 0:1\n")
        assert run("transactions", "slow", "--exit-code").status == 8

    @pytest.mark.usefixtures("blocked_store")
    def test_only_those_over_the_given_age(self, run: Run) -> None:
        """One of an hour ago is none of two hours; one of this moment is over nothing."""
        run("transactions", "begin")
        assert run("transactions", "slow", "--over", "59m", "-o", "name").out == "0:1\n0:2\n"
        assert run("transactions", "slow", "--over", "0ms", "-o", "name").out == "0:1\n0:2\n0:3\n"
        outcome = run("transactions", "slow", "--over", "2h")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no transaction has been open for longer than 2h00m" in outcome.err
