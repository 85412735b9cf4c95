"""The owner of a transaction in words."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.fields.owner import EVIDENCE, alive, beside_the_lock, mode


@pytest.mark.parametrize(
    ("state", "orphaned", "word"),
    [
        ("alive", False, "yes"), ("stopped", False, "stopped"), ("detached", False, "detached"),
        ("unknown-host", False, "unknown"), ("dead", True, "ORPHANED"), ("rebooted", True, "ORPHANED"),
    ],
)  # fmt: skip
def test_one_word_says_whether_it_lives(state: str, orphaned: bool, word: str) -> None:
    """Each state has its evidence, too."""
    assert alive({"ownerState": state, "orphaned": orphaned}) == word
    assert EVIDENCE[state].startswith("ORPHANED") == orphaned


def test_the_usual_priority_is_not_mentioned() -> None:
    """Others are."""
    assert mode({"isolation": "SERIALIZABLE", "priority": "medium"}) == "SERIALIZABLE"
    assert mode({"isolation": "SERIALIZABLE", "priority": "high"}) == "SERIALIZABLE, high"


def row(evidence: dict[str, bool] | None, orphaned: bool) -> dict[str, Any]:
    """A transaction of process 42."""
    return {"evidence": evidence, "orphaned": orphaned, "ownerDetails": {"pid": 42}}


def test_what_would_mislead_is_explained() -> None:
    """A reused pid, and a process that has let go of the store."""
    _, reused = beside_the_lock(row({"pidReused": True, "processRunning": True}, True))
    _, let_go = beside_the_lock(row({"pidReused": False, "processRunning": True}, True))
    assert "process 42 runs now, but it was started later" in reused
    assert "Process 42 runs, but it has let go of the store" in let_go


@pytest.mark.parametrize(
    "found",
    [
        row(None, False),
        row({"pidReused": False, "processRunning": True}, False),
        row({"pidReused": False, "processRunning": False}, True),
    ],
)
def test_what_misleads_nobody_needs_no_line(found: dict[str, Any]) -> None:
    """The lock and the process table agree."""
    assert list(beside_the_lock(found)) == []
