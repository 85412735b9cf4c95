"""Older pages and truncated files in their short form; `python -m tests.faults.stale_pages` is the long one."""

from __future__ import annotations

from tests.faults import flipped_messages
from tests.processes.child import Children


def test_an_older_page_ends_no_command_in_a_traceback(children: Children) -> None:
    """Each answer is right, an error, or wrong in a way that decision 38 admits; a death is found by verify."""
    child = children.start("tests.faults.stale_pages", 10, 1)
    lines = list(iter(lambda: child.line(300), None))
    assert child.wait() == 0, lines
    assert lines[-1].endswith("truncations, 0 not refused as damage")


def test_a_flipped_bit_never_makes_a_message_wrong_or_missing() -> None:
    """Each acknowledged message is right, or refused as damage."""
    assert flipped_messages.main(25, seed=1) == 0
