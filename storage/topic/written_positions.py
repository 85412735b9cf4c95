"""Positions that were written, by the records that count entries: the topic's state, and the records of closed ledgers.

A checksum proves an entry that is found, but not that no entry is missing: damage to a page of LMDB can hide records.
So `log.py` compares the entries that it finds, and the end of every scan, with these positions.
"""

from __future__ import annotations

from storage.disk.codec import key2, missing, unpack
from storage.disk.schema import LEDGERS
from storage.disk.view import ReadView
from storage.topic import state as states
from storage.topic.state import TopicState
from storage.values.position import Position


def is_written(view: ReadView, topic_id: int, position: Position) -> bool:
    """Whether the entry at a position was written."""
    return 0 <= position[1] < _entries(view, topic_id, states.load(view, topic_id), position[0])


def following(view: ReadView, topic_id: int, position: Position) -> Position | None:
    """The first position after `position` that was written; None at the end of the log."""
    state = states.load(view, topic_id)
    ledger_id, entry_id = max(position, (state.first_ledger, -1))
    entry_id += 1
    while entry_id >= _entries(view, topic_id, state, ledger_id):
        if ledger_id >= state.ledger_id:
            return None
        ledger_id, entry_id = ledger_id + 1, 0
    return Position(ledger_id, entry_id)


def preceding(view: ReadView, topic_id: int, position: Position) -> Position | None:
    """The last position before `position` that was written; None at the beginning of the log."""
    state = states.load(view, topic_id)
    ledger_id, stop = min(position, (state.ledger_id + 1, 0))
    while ledger_id >= state.first_ledger:
        last = min(stop, _entries(view, topic_id, state, ledger_id)) - 1
        if last >= 0:
            return Position(ledger_id, last)
        ledger_id, stop = ledger_id - 1, 1 << 63
    return None


def _entries(view: ReadView, topic_id: int, state: TopicState, ledger_id: int) -> int:
    """Count the entries of a ledger; 0 outside the ledgers of the topic.

    Raises:
        CorruptStore: the record of a closed ledger is missing.
    """
    if ledger_id == state.ledger_id:
        return state.next_entry
    if not state.first_ledger <= ledger_id < state.ledger_id:
        return 0
    key = key2(topic_id, ledger_id)
    payload = view.get(LEDGERS, key)
    if payload is None:
        raise missing(LEDGERS, key)
    entries: int = unpack(payload, 1)[0]
    return entries
