"""The one piece of advice about a transaction: a function of what is known of it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from storage.limits import ACTIVE_OWNER_MS
from storage.process.identity import ProcessIdentity
from storage.reports.advice import Situation, judge
from storage.txn.owner_state import LivingProcess
from txnctl.output import shell

IDLE: dict[str, Any] = {
    "id": "0:7", "state": "OPEN", "owner_state": "detached", "last_user_state": "dead", "living": None, "overdue": False,
    "reap_policy": "manual", "idle_ms": ACTIVE_OWNER_MS, "frees": 3, "before": None, "holds": True,
}  # fmt: skip
"""Nobody has used it for a minute, no process holds it, and messages wait for it."""


def _living(state: str, *, is_owner: bool = True) -> LivingProcess:
    """The process 42 of `loader`."""
    return LivingProcess(ProcessIdentity(os.uname().nodename, b"", 42, 0, "anna", "loader"), state, is_owner)


def test_a_process_of_another_host_has_its_host() -> None:
    """Beside the pid, which means another process here."""
    owner = _living("alive")
    elsewhere = owner._replace(process=owner.process._replace(host="db-2"))
    assert "Its process 42 on db-2 lives" in judge(Situation(**{**IDLE, "living": elsewhere})).because


@pytest.mark.parametrize(
    ("known", "advice", "safe", "command"),
    [
        ({"state": "COMMITTED", "overdue": True}, "nothing", None, None),
        ({"overdue": True, "owner_state": "stopped"}, "reap", True, "txnctl transactions reap"),
        ({"owner_state": "dead", "idle_ms": 0}, "reap", True, "txnctl transactions reap"),
        ({"owner_state": "rebooted", "holds": False}, "reap", True, "txnctl transactions reap"),
        ({"owner_state": "stopped", "living": _living("stopped"), "idle_ms": 0}, "continue", False, "kill -CONT 42"),
        ({"idle_ms": ACTIVE_OWNER_MS - 1}, "wait", False, "txnctl transactions wait 0:7 --timeout 1m"),
        ({"frees": 0, "before": "0:3"}, "look-at-first", None, "txnctl transactions explain 0:3"),
        ({"frees": 0, "holds": False}, "leave", None, None),
        ({}, "end", None, "txnctl transactions abort 0:7 --dry-run"),
        ({"owner_state": "alive", "living": _living("alive")}, "end", False, "txnctl transactions abort 0:7 --dry-run"),
        ({"living": _living("stopped", is_owner=False), "idle_ms": 0}, "continue", False, "kill -CONT 42"),
        ({"living": _living("alive", is_owner=False)}, "end", False, "txnctl transactions abort 0:7 --dry-run"),
        ({"last_user_state": "unknown-host"}, "end", None, "txnctl transactions abort 0:7 --dry-run"),
        ({"owner_state": "dead", "living": _living("alive")}, "reap", False, "txnctl transactions reap"),
        (
            {"owner_state": "unknown-host", "idle_ms": 0}, "end", None,
            "txnctl transactions abort 0:7 --dry-run",
        ),
    ],
)  # fmt: skip
def test_the_first_that_fits_is_given(
    known: dict[str, Any], advice: str, safe: bool | None, command: str | None
) -> None:
    """Each with what else would fit as well, and comes later."""
    found = judge(Situation(**{**IDLE, **known}))
    assert (found.advice, found.safe_to_end, found.action and shell.command(found.action)) == (
        advice, safe, command
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "said", "unsaid"),
    [
        ({"owner_state": "dead", "reap_policy": "all"}, "The next writer aborts it", "reap policy"),
        ({"owner_state": "dead"}, "reap policy", "The next writer"),
        (
            {"owner_state": "dead", "reap_policy": "overdue"},
            "reap policy (overdue) has no writer",
            "The next writer",
        ),
        ({"overdue": True, "reap_policy": "overdue"}, "The next writer aborts it", "reap policy"),
        ({"owner_state": "dead"}, "could still commit it", "never commit"),
        ({"owner_state": "dead", "overdue": True}, "can never commit", "still commit it"),
        ({"overdue": True, "reap_policy": "all"}, "can never commit", "process is gone"),
        ({}, "nobody uses it", "last user"),
        ({"living": _living("alive", is_owner=False)}, "Process 42 (loader), its last user, lives", "nobody"),
        (
            {"living": _living("stopped", is_owner=False)},
            "Process 42 (loader), its last user, is stopped",
            "nobody",
        ),
        ({"last_user_state": "unknown-host"}, "last used on another machine", "nobody uses"),
    ],
)
def test_what_is_left_behind_is_told_apart(known: dict[str, Any], said: str, unsaid: str) -> None:
    """Who ends it, and whether it may be committed until then."""
    because = judge(Situation(**{**IDLE, **known})).because
    assert said in because
    assert unsaid not in because
