"""Positions that were written, by the records that count entries: the topic's state, and the records of closed ledgers.

A checksum proves an entry that is found, but not that no entry is missing: damage to a page of LMDB can hide records.
So `log.py` compares the entries that it finds, and the end of every scan, with these positions.
"""

from __future__ import annotations

from storage.disk.codec import key1, key2, missing, unpack
from storage.disk.schema import LEDGERS
from storage.disk.view import ReadView
from storage.topic import state as states
from storage.topic.state import TopicState
from storage.values.ledger_ids import is_next, may_begin_life
from storage.values.position import Position


def is_written(view: ReadView, topic_id: int, position: Position) -> bool:
    """Whether the entry at a position was written."""
    return 0 <= position[1] < _entries(view, topic_id, states.load(view, topic_id), position[0])


def following(view: ReadView, topic_id: int, position: Position) -> Position | None:
    """The first position after `position` that was written; None at the end of the log."""
    state = states.load(view, topic_id)
    ledger_id, entry_id = max(position, (state.first_ledger, -1))
    while entry_id + 1 >= _entries(view, topic_id, state, ledger_id):
        if ledger_id >= state.ledger_id:
            return None
        ledger_id, entry_id = next_ledger(view, topic_id, state, ledger_id), -1
    return Position(ledger_id, entry_id + 1)


def preceding(view: ReadView, topic_id: int, position: Position) -> Position | None:
    """The last position before `position` that was written; None at the beginning of the log."""
    state = states.load(view, topic_id)
    ledger_id, stop = min(position, (state.ledger_id, state.next_entry))
    while ledger_id >= state.first_ledger:
        last = min(stop, _entries(view, topic_id, state, ledger_id)) - 1
        if last >= 0:
            return Position(ledger_id, last)
        ledger_id, stop = _previous_ledger(view, topic_id, state, ledger_id), 1 << 63
    return None


def next_ledger(view: ReadView, topic_id: int, state: TopicState, ledger_id: int) -> int:
    """The first ledger after an id, which is below that of the open ledger.

    Raises:
        CorruptStore: the record of a closed ledger is missing.
    """
    begin = max(ledger_id + 1, state.first_ledger)
    closed = None
    if begin < state.ledger_id:
        closed = view.first(LEDGERS, key1(topic_id), key2(topic_id, begin))
    following = state.ledger_id if closed is None else _id_of(closed[0])
    if not is_next(ledger_id, following):
        raise missing(LEDGERS, key2(topic_id, begin))
    return following


def ledger_through(view: ReadView, topic_id: int, ledger_id: int) -> Position | None:
    """The last entry of the last closed ledger up to an id, the last one that was trimmed included; None if none is."""
    closed = view.last(LEDGERS, key1(topic_id), key2(topic_id, ledger_id))
    return None if closed is None else Position(_id_of(closed[0]), unpack(closed[1], 1)[0] - 1)


def _previous_ledger(view: ReadView, topic_id: int, state: TopicState, ledger_id: int) -> int:
    """The last ledger before an id; -1 before the first ledger."""
    if ledger_id <= state.first_ledger:
        return -1
    end = ledger_through(view, topic_id, ledger_id - 1)
    before = state.first_ledger - 1 if end is None else end[0]
    if before != ledger_id - 1:
        next_ledger(view, topic_id, state, before)  # none is missing in between
    return before


def _id_of(key: bytes) -> int:
    return int.from_bytes(key[8:], "big")


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
        if may_begin_life(next_ledger(view, topic_id, state, ledger_id)):
            return 0
        raise missing(LEDGERS, key)
    entries: int = unpack(payload, 1)[0]
    return entries
