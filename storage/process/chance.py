"""The chance of the machine: the only source of random numbers for waits."""

from __future__ import annotations

import os


def share() -> float:
    """Draw a number from 0 up to, but not including, 1; forked processes draw different ones."""
    return int.from_bytes(os.urandom(6), "big") / (1 << 48)
