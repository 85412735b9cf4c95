"""Fault points: named points in the code at which a test kills the process. Free when nothing is armed.

POINTS lists every point: `arm` refuses an unknown name, and the crash sweep fails for a listed point that its workload
never reaches, so the list stays true.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "store.create.before_format",
    "store.create.before_rename",
    "store.create.after_rename",
    "environment.before_change",
    "environment.before_commit",
    "environment.after_commit",
    "ledger.before_append",
    "ledger.after_roll",
    "producer.after_eviction",
    "producer.after_fencing",
    "txn.between_kept_sends",
    "txn.before_parts",
    "txn.between_parts",
    "txn.before_record",
    "subscription.before_dispatch",
    "subscription.before_acknowledge",
    "topic.between_purge_steps",
    "read_cache.half_changed",
    "table.before_write",
    "table.between_gc_steps",
    "table.between_purge_steps",
)

_armed: dict[str, Callable[[], None]] = {}


def reach(name: str) -> None:
    """Run the action armed for the point `name`, if any."""
    if _armed:
        action = _armed.get(name)
        if action is not None:
            action()


def arm(name: str, action: Callable[[], None]) -> None:
    """Run `action` at every `reach(name)`, until `disarm()`."""
    if name not in POINTS:
        raise ValueError(f"no such fault point: {name}")
    _armed[name] = action


def disarm() -> None:
    """Remove all actions."""
    _armed.clear()
