"""Transactions that want somebody's attention: open for long, or left behind by their process."""

from __future__ import annotations

from typing import Any

from storage.disk.schema import PART_TOPIC
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.reports import transactions
from storage.reports.chain import Chain
from storage.topic import catalogue as topics, state
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches


def slow(engine: Engine, over_ms: int) -> list[dict[str, Any]]:
    """Open transactions begun longer ago than `over_ms`, the oldest first, with what each holds back."""
    with engine.connection.view() as view:
        before_ms = view.clock.wall_ms() - over_ms
        found = [txn for txn in transactions.open_ones(view) if records.get(view, txn).begun_ms <= before_ms]
        return _rows(view, engine, found)


def orphans(engine: Engine) -> list[dict[str, Any]]:
    """Open transactions whose process is proven dead, with what each holds back until the next writer ends it."""
    with engine.connection.view() as view:
        left = sorted(reaper.orphaned(view, engine.lock_file))
        return [row for row in _rows(view, engine, left) if row["orphaned"]]


def _rows(view: ReadView, engine: Engine, found: list[int]) -> list[dict[str, Any]]:
    """The rows of `transactions list` with `frees`: committed messages that wait for it, on all topics."""
    names = {each.topic_id: each.full_name for each in topics.every(view)}
    touched = {topic for txn in found for topic in touches(view, txn, PART_TOPIC)}
    frees: dict[int, int] = {}
    for topic in touched:
        for link in Chain(view, topic, state.load(view, topic)).links:
            frees[link.txn] = frees.get(link.txn, 0) + link.frees
    return [
        {**transactions.row(view, engine, records.get(view, txn), names), "frees": frees.get(txn, 0)}
        for txn in found
    ]
