"""Kills at system calls in their short form; `python -m tests.faults.kills` is the long one."""

from __future__ import annotations

import pytest

from tests.processes.child import Children

pytestmark = pytest.mark.needs_program("cc")


def test_a_process_killed_at_a_system_call_leaves_all_or_nothing(children: Children) -> None:
    """Killed before a call or in the middle of a write: the state before or after, acknowledged is after; a retry works."""
    child = children.start("tests.faults.kills", 0.002, 1)
    lines = list(iter(lambda: child.line(300), None))
    assert child.wait() == 0, lines
    assert lines[-1].endswith("; 0 broken promises")
