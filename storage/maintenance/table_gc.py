"""Collect garbage of tables: intents of ended transactions, old versions, deleted keys, old outcomes.

Finding takes views, removing takes store transactions of bounded size; after a kill the next run goes on.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from storage import faults
from storage.disk import wall_clock
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.json_form import Flat, TimeText
from storage.table import retention
from storage.table.retention import Sweep
from storage.txn import outcome_retention
from storage.values.named_tuple import NamedTuple


class Find(Protocol):
    """Finds removable records from a key on, and the key to go on from."""

    def __call__(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]: ...


class Remove(Protocol):
    """Removes records by key, and counts them."""

    def __call__(self, batch: WriteBatch, keys: list[bytes]) -> int: ...


class TableCounts(NamedTuple):
    """Records removed from tables, by kind."""

    intents_finalized: int
    versions_removed: int
    tombstones_removed: int
    outcomes_removed: int


class TableCollected(NamedTuple):
    """The result for tables; reads in the past begin at `table_window_start`."""

    counts: Flat[TableCounts]
    table_window_start_at_ms: TimeText
    clocks_disagree: bool


def forecast(connection: Connection, trust_clock: bool = False) -> TableCollected:
    """The result that `collect` would have now without writes meanwhile, from one view.

    An overdue or orphaned transaction counts as open, although a run of gc is a writer and may reap a few.
    """
    with connection.view() as view:
        # `collect` starts a clock that stands after a reboot, and from then on the clocks agree.
        agree, start = _window(view, trust_clock or not view.is_clock_running)
        swept = Sweep(start).forecast(view)
        counts = TableCounts(*swept, outcome_retention.forecast(view))
    if not agree:
        counts = TableCounts(counts.intents_finalized, 0, 0, 0)
    return TableCollected(counts, start // 1_000_000, not agree)


def settle_clocks(connection: Connection, trust_clock: bool) -> None:
    """Confirm the wall clock if the operator has checked it; or else start a store clock that stands after a reboot."""
    with connection.view() as view:
        is_clock_running = view.is_clock_running
    if trust_clock:
        connection.write(wall_clock.trust_clocks, share=ReserveShare.WHOLE)
    elif not is_clock_running:
        # The clocks cannot agree before the first write after a reboot, and finding takes views only.
        connection.write(lambda _: None, share=ReserveShare.WHOLE)


def collect(connection: Connection) -> TableCollected:
    """Finalise intents, then remove versions older than the window; no version while the clocks disagree."""
    finalized = remove_in_steps(connection, retention.find_decided, retention.finalize)
    with connection.view() as view:
        agree, start = _window(view, trust_clock=False)
    sweep, versions, tombstones, ended = Sweep(start), 0, 0, 0
    if agree:
        # First the index of changes: a change that can be read has its version, and the version before.
        remove_in_steps(connection, sweep.find_changes, sweep.remove_changes)
        versions = remove_in_steps(connection, sweep.find_versions, sweep.remove_versions)
        tombstones = remove_in_steps(connection, sweep.find_tombstones, sweep.remove_tombstones)
        ended = remove_in_steps(connection, outcome_retention.find_old, outcome_retention.remove)
    counts = TableCounts(finalized, versions, tombstones, ended)
    return TableCollected(counts, start // 1_000_000, not agree)


def _window(view: ReadView, trust_clock: bool) -> tuple[bool, int]:
    """Whether the clocks agree or are trusted, and the begin of the window of reads in the past."""
    agree = trust_clock or wall_clock.clocks_agree(view)
    return agree, retention.window_start(view, trust_clock=trust_clock)


def remove_in_steps(connection: Connection, find: Find, remove: Remove) -> int:
    """Find and remove in steps, each a store transaction; return the number removed."""
    at: bytes | None = b""
    done = 0
    while at is not None:
        with connection.view() as view:
            keys, at = find(view, at)
        if keys:
            done += connection.write(partial(remove, keys=keys), share=ReserveShare.WHOLE)
            faults.reach("table.between_gc_steps")
    return done
