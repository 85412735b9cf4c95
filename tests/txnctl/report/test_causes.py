"""Causes: `txnctl/report/causes.py`."""

from __future__ import annotations

from storage import Store
from tests.txnctl.stuck_store import StuckStore
from txnctl.report.causes import causes


def test_each_finding_has_its_transactions_and_topics(stuck_store: StuckStore) -> None:
    """A stopped process, late transactions and a blocker each name theirs; a finding that informs is about no topic."""
    with Store.open(stuck_store.path, read_only=True) as store:
        every = {cause.finding.code: cause for cause in causes(store.reports.store_report(), 10)}
    stopped, late, blocked = every["owner-stopped"], every["late-transactions"], every["blocked"]
    assert blocked.txns == [str(stuck_store.idle)]
    assert [model.name for model in blocked.topics] == ["orders"]
    assert len(stopped.txns) == 1
    assert len(late.txns) == 2
    assert not set(stopped.txns) & set(late.txns)
    assert [model.name for model in late.topics] == ["orders"]
    assert (every["no-consumer"].txns, every["no-consumer"].topics) == ([], [])
