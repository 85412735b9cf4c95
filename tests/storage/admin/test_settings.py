"""Changes of the store's settings: within bounds, on trial, and in the audit trail."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.superblock import ReapPolicy
from storage.errors import InvalidValue
from storage.limits import TABLE_RETENTION_MS, TABLE_RETENTION_MS_MAX, TABLE_RETENTION_MS_MIN


def superblock(store: Store) -> tuple[int, int]:
    """Retention and policy as they are stored."""
    with store.connection.view() as view:
        return view.superblock.table_retention_ms, view.superblock.reap_policy


@pytest.mark.parametrize("retention_ms", [TABLE_RETENTION_MS_MIN, TABLE_RETENTION_MS_MAX])
def test_a_retention_within_its_bounds_is_stored(store: Store, retention_ms: int) -> None:
    """With what it was before, and a record of who said so."""
    store.admin.settings.set_table_retention(retention_ms, reason="the nightly report reads three hours back")
    assert superblock(store)[0] == retention_ms
    record = store.reports.list_audit_records(1)[0]
    assert (record.action, record.target) == ("store config", f"table-retention {retention_ms} ms")
    assert record.effects["tableRetentionMsBefore"] == TABLE_RETENTION_MS


@pytest.mark.parametrize(
    "retention_ms", [TABLE_RETENTION_MS_MIN - 1, TABLE_RETENTION_MS_MAX + 1, 5000.0, "5000", True]
)
def test_a_retention_out_of_bounds_is_refused(store: Store, retention_ms: object) -> None:
    """And what is no number of milliseconds."""
    with pytest.raises(InvalidValue, match="table versions are kept for"):
        store.admin.settings.set_table_retention(retention_ms)  # type: ignore[arg-type]
    assert superblock(store)[0] == TABLE_RETENTION_MS


@pytest.mark.parametrize("policy", ReapPolicy)
def test_a_policy_is_given_by_its_name(store: Store, policy: ReapPolicy) -> None:
    """In small letters."""
    store.admin.settings.set_reap_policy(policy.name.lower())
    assert superblock(store)[1] == policy


def test_an_unknown_policy_is_refused_with_those_there_are(store: Store) -> None:
    """Nothing is changed or recorded."""
    with pytest.raises(InvalidValue, match="'never' is no reap policy") as refused:
        store.admin.settings.set_reap_policy("never")
    assert refused.value.hint == "One of all, overdue, manual."
    assert store.reports.list_audit_records() == []


def test_a_trial_changes_nothing(store: Store) -> None:
    """It says what would be, and leaves no record."""
    before = superblock(store)
    store.admin.settings.set_table_retention(5000, dry_run=True)
    store.admin.settings.set_reap_policy("manual", dry_run=True)
    assert superblock(store) == before
    assert store.reports.list_audit_records() == []
