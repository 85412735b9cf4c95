"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(true: Callable[[], bool], what: str) -> None:
    """Until it is so; not for long."""
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.01)
