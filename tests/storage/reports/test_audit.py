"""Reports from the audit trail: the newest first, one by its number."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import InvalidValue, NotFound
from tests.row_json import row_json


def test_the_newest_come_first_and_a_limit_holds(store: Store) -> None:
    """Numbers go on counting."""
    for policy in ("manual", "overdue", "all"):
        row_json(store.admin.settings.set_reap_policy(policy, reason=f"try {policy}"))
    rows = row_json(store.reports.list_audit_records())
    assert [row["number"] for row in rows] == [3, 2, 1]
    assert [row["reason"] for row in rows] == ["try all", "try overdue", "try manual"]
    assert row_json(store.reports.list_audit_records(2)) == rows[:2]


def test_one_is_shown_by_its_number(store: Store) -> None:
    """As the list has it; others were never there."""
    row_json(store.admin.settings.set_reap_policy("manual"))
    assert row_json(store.reports.show_audit_record(1)) == row_json(store.reports.list_audit_records())[0]
    for number in (0, 2, -1):
        with pytest.raises(NotFound, match=f"no audit record {number}"):
            row_json(store.reports.show_audit_record(number))


def test_a_choice_is_text_and_a_time(store: Store) -> None:
    """Others are refused, as arguments elsewhere."""
    row_json(store.admin.settings.set_reap_policy("manual"))
    assert store.reports.list_audit_records(since_ms=store.reports.list_audit_records()[0].changed_at_ms)
    for wrong in ({"since_ms": "now"}, {"action": 1}, {"target": b"x"}):
        with pytest.raises(InvalidValue):
            store.reports.list_audit_records(**wrong)  # type: ignore[arg-type]
