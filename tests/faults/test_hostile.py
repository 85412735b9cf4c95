"""Hostile input in its short form; `python -m tests.faults.hostile` is the long one."""

from __future__ import annotations

from tests.faults import hostile
from tests.processes.child import Children


def test_hostile_input_ends_in_one_clear_error(children: Children) -> None:
    """Thousands of names, positions, lines of NDJSON and CSV, and command lines: no traceback, no signal, no wait."""
    child = children.start("tests.faults.hostile", 6_000, 1)
    lines = list(iter(lambda: child.line(300), None))
    assert child.wait() == 0, lines
    assert lines[-1] == "0 tracebacks, signals or broken stores"


def test_an_input_is_known_by_its_seed_and_number() -> None:
    """So that a failure can be repeated alone."""
    assert hostile.hostile(1, 7) == hostile.hostile(1, 7)
    assert len({repr(hostile.hostile(seed, number)) for seed in (1, 2) for number in range(50)}) > 90
