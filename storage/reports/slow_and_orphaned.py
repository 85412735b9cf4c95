"""Transactions that need attention: open for long, or orphaned by the death of a process."""

from __future__ import annotations

from storage.disk.schema import PART_TOPIC
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.json_form import Flat
from storage.reports import transactions
from storage.reports.blocking_chain import Chain
from storage.reports.transactions import TransactionRow
from storage.topic import state
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches
from storage.values.named_tuple import NamedTuple


class AttentionRow(NamedTuple):
    """A transaction that needs attention.

    Attributes:
        frees: committed messages, on all topics, that its end frees.
    """

    row: Flat[TransactionRow]
    frees: int


def list_slow(engine: Engine, over_ms: int) -> list[AttentionRow]:
    """Return the open transactions begun longer than `over_ms` ago, the oldest first."""
    with engine.connection.view() as view:
        before_ms = view.clock.wall_ms() - over_ms
        slow = [txn for txn in transactions.open_txns(view) if records.get(view, txn).begun_ms <= before_ms]
        return _rows(view, engine, slow)


def list_orphans(engine: Engine) -> list[AttentionRow]:
    """Return the open transactions of processes proven dead, which no writer has aborted yet."""
    with engine.connection.view() as view:
        left = sorted(reaper.orphaned(view, engine.locks))
        return [orphan for orphan in _rows(view, engine, left) if orphan.row.orphaned]


def _rows(view: ReadView, engine: Engine, txns: list[int]) -> list[AttentionRow]:
    names = transactions.topic_names(view)
    touched = {topic_id for txn in txns for topic_id in touches(view, txn, PART_TOPIC)}
    frees: dict[int, int] = {}
    for topic_id in touched:
        for link in Chain(view, topic_id, state.load(view, topic_id)).links:
            frees[link.txn] = frees.get(link.txn, 0) + link.frees
    return [
        AttentionRow(transactions.row_of(view, engine, records.get(view, txn), names), frees.get(txn, 0))
        for txn in txns
    ]
