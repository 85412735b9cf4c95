"""Fault points: named points in the code at which a test kills the process. Nearly free when nothing is armed.

POINTS lists every point: `arm` refuses an unknown name, and the crash sweep fails for a listed point that its workload
never reaches, so the list stays true.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "store.create.before_format",
    "store.create.before_rename",
    "store.create.after_rename",
    "store.copy.after_batch",
    "store.copy.before_comparison",
    "store.copy.before_install",
    "environment.before_change",
    "environment.before_commit",
    "environment.after_commit",
    "ledger.before_append",
    "ledger.after_roll",
    "producer.after_eviction",
    "producer.after_fencing",
    "group.between_ends",
    "txn.between_kept_sends",
    "txn.before_parts",
    "txn.between_parts",
    "txn.before_record",
    "subscription.before_dispatch",
    "subscription.before_acknowledge",
    "topic.after_trim",
    "topic.between_purge_steps",
    "topic.half_compacted",
    "topic.between_compaction_steps",
    "read_cache.half_changed",
    "table.before_write",
    "table.between_gc_steps",
    "table.between_purge_steps",
)

_armed: dict[str, Callable[[], None]] = {}


def _reach_armed(name: str) -> None:
    action = _armed.get(name)
    if action is not None:
        action()


_UNARMED: Callable[[str], object] = bool
"""Takes the name and does nothing, in C: with nothing armed, a point on the way of every message runs no code here."""

reach = _UNARMED
"""Run the action armed for a point, if any. Call this as `faults.reach`, because `arm` exchanges the function."""


def arm(name: str, action: Callable[[], None]) -> None:
    """Run `action` at every `reach(name)`, until `disarm()`."""
    global reach
    if name not in POINTS:
        raise ValueError(f"no such fault point: {name}")
    _armed[name] = action
    reach = _reach_armed


def disarm() -> None:
    """Remove all actions."""
    global reach
    _armed.clear()
    reach = _UNARMED
