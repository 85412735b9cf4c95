"""Publish times: the first position of a topic published at or after a time.

Publish times are readings of the wall clock, which may be set back, so that they need not be sorted. The first position
at or after a time is found all the same by binary search, for the running maximum is sorted: the latest publish time
up to an entry. An entry proves by its header that its own publish time is the running maximum of its ledger
(`Entry.is_in_order`), or else bounds the maximum by its timestamp. Where neither decides, as in the hour after the
clock was set back by an hour, the entries of that ledger are read in order.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.topic import log
from storage.topic.entry import NS_PER_MS
from storage.topic.log import LedgerInfo
from storage.topic.state import TopicState
from storage.values.position import Position


def first_at(
    view: ReadView, topic_id: int, state: TopicState, time_ms: int, first_ledger: int = 0
) -> Position:
    """The first position, in the order of the log, published at or after a time; the end if there is none.

    Args:
        first_ledger: leaves earlier ledgers out.
    """
    for ledger in log.ledgers(view, topic_id, state):
        if ledger.ledger_id < first_ledger:
            continue
        entry_id = _first_in(view, topic_id, ledger, time_ms)
        if entry_id < ledger.entries:
            return Position(ledger.ledger_id, entry_id)
    return Position(state.ledger_id, state.next_entry)


def _first_in(view: ReadView, topic_id: int, ledger: LedgerInfo, time_ms: int) -> int:
    """The number of the first entry of a ledger published at or after a time; the number of entries if there is none.

    The last entry is tried first: in all ledgers but one it decides.
    """
    low, high = 0, ledger.entries
    middle = high - 1
    while low < high:
        entry = log.stored(view, topic_id, Position(ledger.ledger_id, middle))
        if entry.publish_time >= time_ms:
            high = middle
        elif entry.is_in_order or entry.timestamp // NS_PER_MS < time_ms:
            low = middle + 1
        else:
            return _first_of_range(view, topic_id, Position(ledger.ledger_id, low - 1), high, time_ms)
        middle = (low + high) // 2
    return low


def _first_of_range(view: ReadView, topic_id: int, after: Position, stop: int, time_ms: int) -> int:
    """The same among the entries between a position and entry `stop`, read one by one; `stop` if there is none."""
    for entry in log.scan(view, topic_id, after, Position(after.ledger_id, stop - 1)):
        if entry.publish_time >= time_ms:
            return entry.entry_id
    return stop
