"""The owner of a transaction in words."""

from __future__ import annotations

import pytest

from storage.reports.advice import Advice
from storage.reports.explain import Evidence, Explanation
from tests.txnctl.typed_rows import DETAILS, OWNER, TRANSACTION
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
    assert alive(TRANSACTION._replace(owner_state=state, orphaned=orphaned)) == word
    assert EVIDENCE[state].startswith("ORPHANED") == orphaned


def test_the_usual_priority_is_not_mentioned() -> None:
    """Others are."""
    assert mode(TRANSACTION) == "SERIALIZABLE"
    assert mode(TRANSACTION._replace(priority="high")) == "SERIALIZABLE, high"


def evidence(*, reused: bool, running: bool) -> Evidence:
    """The evidence of the process table."""
    return Evidence(
        "alive", lock_held=True, same_host=True, same_boot=True, process_running=running, pid_reused=reused
    )


def row(evidence: Evidence | None, orphaned: bool) -> Explanation:
    """A transaction of process 42."""
    transaction = TRANSACTION._replace(owner=OWNER._replace(pid=42), orphaned=orphaned)
    return Explanation(
        DETAILS._replace(row=transaction), evidence, [], [], [], Advice("leave", None, "", None), []
    )


def test_what_would_mislead_is_explained() -> None:
    """A reused pid, and a process that has let go of the store."""
    _, reused = beside_the_lock(row(evidence(reused=True, running=True), True))
    _, let_go = beside_the_lock(row(evidence(reused=False, running=True), True))
    assert "process 42 runs now, but it was started later" in reused
    assert "Process 42 runs, but it has let go of the store" in let_go


@pytest.mark.parametrize(
    "found",
    [
        row(None, False),
        row(evidence(reused=False, running=True), False),
        row(evidence(reused=False, running=False), True),
    ],
)
def test_what_misleads_nobody_needs_no_line(found: Explanation) -> None:
    """The lock and the process table agree."""
    assert list(beside_the_lock(found)) == []
