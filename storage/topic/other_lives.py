"""Positions that a topic never had: of another life of the store, or of a former topic of the name.

A reader keeps positions and message ids outside the store. A position that the original gave out behind the backup is
never given out again, for each life of a store has its own ledger ids (`storage/values/ledger_ids.py`). A caller with
such a position has seen messages that this topic never had, and is refused.
"""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.errors import MessageNotFound
from storage.topic import catalogue, former_topics, log, written_positions
from storage.topic.open_topic import OpenTopic
from storage.values.ledger_ids import first_of_life, is_between_lives
from storage.values.position import Extreme, Position, Start


def begin_life(batch: WriteBatch) -> int:
    """Begin a ledger with an id that no other life gives, in every topic; later topics begin with the same id.

    Returns:
        the id.
    """
    opened = [OpenTopic.load(batch, topic.topic_id) for topic in catalogue.every(batch)]
    first = former_topics.first_ids(batch)
    highest = max(first.ledger_id, *(topic.state.ledger_id for topic in opened), 0)
    ledger_id = first_of_life(batch.superblock.last_timestamp, highest)
    for topic in opened:
        _go_on_in(topic, ledger_id)
    former_topics.begin_at(batch, first._replace(ledger_id=ledger_id))
    return ledger_id


def _go_on_in(topic: OpenTopic[WriteBatch], ledger_id: int) -> None:
    """Begin a ledger with an id; an open ledger without entries gets the id, for a ledger is never closed empty."""
    state = topic.state
    if state.next_entry:
        log.roll(topic, topic.view.now_ms, ledger_id)
        return
    if state.bytes_trimmed and state.first_ledger == state.ledger_id:
        state.first_ledger = ledger_id
    state.ledger_id = ledger_id
    if not state.open_txns:
        state.max_read = state.last_confirmed


def check_start(topic: OpenTopic[ReadView], start: Start) -> None:
    """Check the position of a message that a caller has kept.

    Raises:
        MessageNotFound: the topic never had the position; the error names the first one behind it.
    """
    if isinstance(start, Extreme):
        return
    position, state = Position(start[0], max(start[1], 0)), topic.state
    if not 0 < position[0] < state.ledger_id:
        return
    end = written_positions.ledger_through(topic.view, topic.topic_id, position[0])
    if end is None and state.bytes_trimmed:
        return  # in a trimmed ledger
    before = state.first_ledger - 1 if end is None else end[0]
    following = written_positions.next_ledger(topic.view, topic.topic_id, state, before)
    if position[0] < following if end is None else is_between_lives(position, end, following):
        raise never_issued(topic.name, position, following)


def never_issued(topic: str, position: Position, following: int) -> MessageNotFound:
    """The error for a position before a ledger, with which the topic begins or goes on."""
    first = Position(following, 0)
    return MessageNotFound(
        f"{position} is of before the store was restored or topic {topic} created again: it was given out for a "
        f"message that this topic never had; later messages begin at {first}",
        hint=f"Read from {first} on, or from earliest, if what was read before is to be read again.",
        first_position=str(first),
    )
