"""The blocked count: committed messages behind an open transaction, counted without a scan.

READ_COMMITTED stops at maxReadPosition, before the first message of the first open transaction. A message behind that
position is committed, and so blocked, if the message is stored outside transactions or by a committed transaction:
stored messages, less messages of aborted transactions, less messages of open ones. Running counts of entries give the
first number, sums of the aborted set the second, the topic's state and the runs of transactions the third.
"""

from __future__ import annotations

from typing import Final

from storage.disk.view import ReadView
from storage.topic import log
from storage.topic.state import TopicState
from storage.txn import aborted, record as records, runs, uncommitted_entries
from storage.values.position import Position
from storage.values.txn_state import STATE_CODES, TransactionState

_OPEN: Final = STATE_CODES.index(TransactionState.OPEN)


def committed_within(
    view: ReadView, topic_id: int, state: TopicState, after: Position, through: Position, uncommitted: int
) -> int:
    """Count the committed messages in (after, through].

    Args:
        uncommitted: messages of open transactions in the same range.
    """
    stored = log.messages_through(view, topic_id, state, through)
    stored -= log.messages_through(view, topic_id, state, after)
    return stored - aborted.messages_between(view, topic_id, state, after, through) - uncommitted


def blocked_behind(view: ReadView, topic_id: int, state: TopicState, position: Position) -> int:
    """Count the blocked messages after a position, which lies at or behind maxReadPosition."""
    if position >= state.last_confirmed:
        return 0
    uncommitted = uncommitted_behind(view, topic_id, state, position)
    return committed_within(view, topic_id, state, position, state.last_confirmed, uncommitted)


def uncommitted_behind(view: ReadView, topic_id: int, state: TopicState, position: Position) -> int:
    """Count the messages of open transactions after a position.

    Where fewer entries lie behind the position than transactions are open, the entries are looked at.
    """
    if position <= state.max_read or not state.uncommitted:
        return state.uncommitted
    last = state.last_confirmed
    if position.ledger_id == last.ledger_id and last.entry_id - position.entry_id < state.open_txns:
        behind = (entry for entry in log.scan(view, topic_id, position, last) if entry.txn)
        return sum(entry.count for entry in behind if records.state_code(view, entry.txn) == _OPEN)
    opened = uncommitted_entries.open_transactions(view, topic_id)
    passed = (
        runs.messages_through(view, topic_id, txn, position) for txn, first in opened if first <= position
    )
    return state.uncommitted - sum(passed)
