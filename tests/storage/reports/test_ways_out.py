"""The ways out of an open transaction, by the state of its owner and the policy of the store."""

from __future__ import annotations

import pytest

from storage.reports.ways_out import ways_out_of
from storage.values.txn_state import TransactionState
from tests.txnctl.typed_rows import OWNER, TRANSACTION


@pytest.mark.parametrize(
    ("state", "ways"),
    [
        ("alive", ["look", "wait", "abort"]),
        ("stopped", ["continue", "look", "wait", "abort"]),
        ("detached", ["wait", "abort"]),
        ("unknown-host", ["wait", "abort"]),
    ],
)
def test_each_owner_leaves_its_ways(state: str, ways: list[str]) -> None:
    """A process here can be looked at, a stopped one continued; waiting and aborting are always possible."""
    assert [way.choice for way in ways_out_of(TRANSACTION._replace(owner_state=state), "all")] == ways


@pytest.mark.parametrize(
    "changed", [{"state": TransactionState.ABORTED}, {"overdue": True}, {"orphaned": True}]
)
def test_there_is_no_choice_where_the_end_is_certain(changed: dict[str, object]) -> None:
    """An ended transaction; and a late one, which is reaped."""
    assert ways_out_of(TRANSACTION._replace(**changed), "all") == []  # type: ignore[arg-type]


def test_each_way_says_what_it_means() -> None:
    """The process and its owner, the end of the wait, and the error that the owner meets after an abort."""
    row = TRANSACTION._replace(owner_state="alive", as_of_at_ms=1_700_000_000_123, deadline_in_ms=90_500)
    look, wait, abort = (way.means for way in ways_out_of(row, "manual"))
    assert f"ask {OWNER.user}@{OWNER.host} what {OWNER.program} waits for" in look
    assert "timeout=120" in wait
    assert "its deadline is at 2023-11-14T22:14:50.000Z, in 1m30s; then it can only be aborted." in wait
    assert "the next writer aborts it" in ways_out_of(row, "overdue")[1].means
    assert "its next use then fails (transaction-not-open)" in abort
