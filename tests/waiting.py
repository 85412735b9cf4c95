"""Waits of tests: for an event with a name, or for real time that the subject of a test needs. Nothing else in tests sleeps."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

PATIENCE_S: Final = 60.0
"""The longest wait for an event, on a busy machine."""
_LOOK_S: Final = 0.005

Value = TypeVar("Value")


def wait_for(holds: Callable[[], Value], event: str, patience_s: float = PATIENCE_S) -> Value:
    """Look again and again until `holds` returns a true value; return the value.

    Raises:
        AssertionError: naming the event that has not come.
    """
    until = time.monotonic() + patience_s
    while not (value := holds()):
        assert time.monotonic() < until, f"has not come in {patience_s:g} s: {event}"
        time.sleep(_LOOK_S)
    return value


def let_pass(seconds: float, reason: str) -> None:
    """Let real time pass that no event ends: a lease that runs out, a pace, an absence. The reason names which."""
    assert reason
    time.sleep(seconds)


def moment_of_chance(chance: random.Random, least_s: float, most_s: float) -> None:
    """Return at a moment of chance, for a kill or an interrupt whose moment is the subject."""
    time.sleep(chance.uniform(least_s, most_s))
