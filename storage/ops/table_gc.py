"""Collecting what nobody needs: intents of decided transactions, superseded versions, deleted keys, old outcomes.

Looking takes views, removing takes store transactions of a bounded size; killed in between, the next one goes on.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from storage import faults
from storage.connection import Connection
from storage.moment import rfc3339
from storage.table import retention
from storage.table.retention import Sweep
from storage.txn import outcomes
from storage.view import ReadView, WriteBatch


class Find(Protocol):
    """Looks for what can go, from a key on; what, and where to go on."""

    def __call__(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]: ...


class Remove(Protocol):
    """Removes what was found; how much it was."""

    def __call__(self, batch: WriteBatch, keys: list[bytes]) -> int: ...


COUNTS = ("intentsFinalized", "versionsRemoved", "tombstonesRemoved", "outcomesRemoved")


def unknown(connection: Connection) -> dict[str, Any]:
    """For a dry run: what would be removed shows only when intents have been finalised."""
    with connection.view() as view:
        agree, start = retention.clocks_agree(view), retention.window_start(view)
    known = {"tableWindowStart": rfc3339(start // 1_000_000), "clocksDisagree": not agree}
    return {**dict.fromkeys(COUNTS), **known}


def collect(connection: Connection, trust_clock: bool = False) -> dict[str, Any]:
    """Finalise, then remove what is older than the window; nothing while the clocks disagree.

    Args:
        trust_clock: the wall clock was looked at and is right, however far it was moved.
    """
    if trust_clock:
        connection.write(retention.trust_clocks)
    finalized = _finalize(connection)
    with connection.view() as view:
        agree, start = retention.clocks_agree(view), retention.window_start(view)
        has_tables = bool(view.head.last_table)
    sweep, versions, tombstones = Sweep(start), 0, 0
    if agree and has_tables:
        versions = _sweep(connection, sweep.find_versions, sweep.remove_versions)
        tombstones = _sweep(connection, sweep.find_tombstones, sweep.remove_tombstones)
    forgotten = _sweep(connection, outcomes.find_old, outcomes.remove) if agree else 0
    return {
        "intentsFinalized": finalized, "versionsRemoved": versions, "tombstonesRemoved": tombstones,
        "outcomesRemoved": forgotten, "tableWindowStart": rfc3339(start // 1_000_000), "clocksDisagree": not agree,
    }  # fmt: skip


def _finalize(connection: Connection) -> int:
    done, at = 0, b""
    with connection.view() as view:
        if not retention.has_decided(view):
            return 0
    while True:
        step, after = connection.write(partial(retention.finalize_step, after=at))
        faults.reach("table.between_gc_steps")
        done += step
        if after is None:
            return done
        at = after


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
