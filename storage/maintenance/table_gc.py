"""Collecting what nobody needs: intents of decided transactions, superseded versions, deleted keys, old outcomes.

Looking takes views, removing takes store transactions of a bounded size; killed in between, the next one goes on.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from storage import faults
from storage.disk.connection import Connection
from storage.disk.view import ReadView, WriteBatch
from storage.table import retention
from storage.table.retention import Sweep
from storage.txn import outcomes
from storage.values.timestamps import rfc3339


class Find(Protocol):
    """Looks for what can go, from a key on; what, and where to go on."""

    def __call__(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]: ...


class Remove(Protocol):
    """Removes what was found; how much it was."""

    def __call__(self, batch: WriteBatch, keys: list[bytes]) -> int: ...


COUNTS = ("intentsFinalized", "versionsRemoved", "tombstonesRemoved", "outcomesRemoved")


def forecast(connection: Connection, trust_clock: bool = False) -> dict[str, Any]:
    """What `collect` would do now if nobody wrote meanwhile, from one view.

    A transaction that is overdue, or whose owner is dead, counts as open: a run of gc is a writer like any other, and
    may abort a few of these on its way.
    """
    with connection.view() as view:
        agree, start = _window(view, trust_clock)
        counts = {**Sweep(start).forecast(view), "outcomesRemoved": outcomes.forecast(view)}
    if not agree:
        counts = {name: count if name == "intentsFinalized" else 0 for name, count in counts.items()}
    return {**counts, **_window_fields(agree, start)}


def collect(connection: Connection, trust_clock: bool = False) -> dict[str, Any]:
    """Finalise, then remove what is older than the window; nothing while the clocks disagree.

    Args:
        trust_clock: the wall clock was looked at and is right, however far it was moved.
    """
    if trust_clock:
        connection.write(retention.trust_clocks)
    counts = dict.fromkeys(COUNTS, 0)
    counts["intentsFinalized"] = _sweep(connection, retention.find_decided, retention.finalize)
    with connection.view() as view:
        agree, start = _window(view, trust_clock=False)
    sweep = Sweep(start)
    if agree:
        counts["versionsRemoved"] = _sweep(connection, sweep.find_versions, sweep.remove_versions)
        counts["tombstonesRemoved"] = _sweep(connection, sweep.find_tombstones, sweep.remove_tombstones)
        counts["outcomesRemoved"] = _sweep(connection, outcomes.find_old, outcomes.remove)
    return {**counts, **_window_fields(agree, start)}


def _window(view: ReadView, trust_clock: bool) -> tuple[bool, int]:
    """Whether the clocks agree, or are taken as they are, and from when on tables can then be read."""
    agree = trust_clock or retention.clocks_agree(view)
    return agree, retention.window_start(view, trust_clock=trust_clock)


def _window_fields(agree: bool, start: int) -> dict[str, Any]:
    return {"tableWindowStart": rfc3339(start // 1_000_000), "clocksDisagree": not agree}


def _sweep(connection: Connection, find: Find, remove: Remove) -> int:
    at: bytes | None = b""
    done = 0
    while at is not None:
        with connection.view() as view:
            found, at = find(view, at)
        if found:
            done += connection.write(partial(remove, keys=found))
            faults.reach("table.between_gc_steps")
    return done
