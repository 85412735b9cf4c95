"""The verdict in words: findings are problems, notes are not."""

from __future__ import annotations

import pytest

from storage.reports.finding import Finding
from txnctl.fields.overview import verdict_text


@pytest.mark.parametrize(
    ("verdict", "severities", "text"),
    [
        ("ok", [], "ok"),
        ("ok", ["info"], "ok, 1 note"),
        ("warning", ["warning"], "WARNING: 1 finding"),
        ("critical", ["critical", "warning", "info", "info"], "CRITICAL: 2 findings, 2 notes"),
    ],
)
def test_findings_and_notes_are_counted_apart(verdict: str, severities: list[str], text: str) -> None:
    """A note alone is no warning."""
    findings = [Finding("code", severity, "topic orders", "what", "why", "txnctl") for severity in severities]
    assert verdict_text(verdict, findings) == text
