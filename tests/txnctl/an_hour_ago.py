"""Clocks for stores in which something has been going on for a while."""

from __future__ import annotations

from storage.process.clock import Clock, ManualClock


def an_hour_ago() -> ManualClock:
    """This boot's clocks as they stood an hour ago."""
    return ago(3600)


def ago(seconds: int) -> ManualClock:
    """This boot's clocks as they stood so long ago."""
    now = Clock()
    clock = ManualClock(now.wall_ms() - seconds * 1000, now.boot_id())
    clock.boot_now_ns = now.boot_ns() - seconds * 1_000_000_000
    return clock
