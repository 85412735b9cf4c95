"""Trimming: the removal of whole closed ledgers from the front of a topic.

A ledger is trimmed at one instant: the topic's state names a later first ledger. The entries follow in steps of bounded
size. Until then they are *remains*: entries of ledgers below the first one, which no reader from the beginning meets,
and which any process may go on to remove after a kill.

Invariant 5: trimming removes whole ledgers from the front. Which ledgers may go is decided by
`storage/subscription/trimming.py`.
"""

from __future__ import annotations

from itertools import takewhile

from storage import faults
from storage.disk.codec import key1, key2, pack, unpack, unpack_first
from storage.disk.schema import ENTRIES, LEDGERS, TIMED, TIMED_BLOCKS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import MessageNotFound
from storage.topic import log, written_positions
from storage.topic.entry import MESSAGES, NS_PER_MS, Entry
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position


class Trimmed(NamedTuple):
    """Ledgers removed from the front, with their messages and bytes."""

    ledgers: int
    messages: int
    bytes: int

    def plus(self, other: Trimmed) -> Trimmed:
        """The sum of both."""
        return Trimmed(*map(sum, zip(self, other, strict=True)))


class LastTrimmed(NamedTuple):
    """The last ledger that was trimmed.

    Attributes:
        end: the last position that was trimmed.
        messages: in the ledger.
        newest_ms: every message that was trimmed was published at or before this time.
    """

    end: Position
    messages: int
    newest_ms: int


def drop_ledgers(topic: OpenTopic[WriteBatch], first_kept: int) -> Trimmed:
    """Trim the closed ledgers below an id. Nothing may hold a message of theirs; `purge_step` follows.

    The record of the last trimmed ledger stays: it tells a reader behind that ledger that no message was lost.
    """
    batch, topic_id, state = topic.view, topic.topic_id, topic.state
    assert state.first_ledger < first_kept <= state.ledger_id, "the open ledger stays"
    messages, size = state.messages_trimmed, state.bytes_trimmed
    closed = log.closed_ledgers(batch, topic_id, state)
    gone = list(takewhile(lambda ledger: ledger.ledger_id < first_kept, closed))
    if not gone:
        return Trimmed(0, 0, 0)
    messages, size = (
        messages + sum(ledger.messages for ledger in gone),
        size + sum(ledger.bytes for ledger in gone),
    )
    ledgers, last = len(gone), gone[-1]
    first_kept = written_positions.next_ledger(batch, topic_id, state, last.ledger_id)
    key = key2(topic_id, last.ledger_id)
    fields = unpack_first(batch.get(LEDGERS, key) or b"", 7)
    batch.put(LEDGERS, key, pack([*fields, newest_ms(batch, topic_id, last)]))
    batch.delete_prefix(LEDGERS, key1(topic_id), stop=key2(topic_id, last.ledger_id - 1))
    trimmed = Trimmed(ledgers, messages - state.messages_trimmed, size - state.bytes_trimmed)
    state.first_ledger, state.messages_trimmed, state.bytes_trimmed = first_kept, messages, size
    faults.reach("topic.after_trim")
    return trimmed


def last_trimmed(view: ReadView, topic_id: int, state: TopicState) -> LastTrimmed | None:
    """The last ledger that was trimmed; None if none was."""
    at = key2(topic_id, state.first_ledger - 1)
    record = view.last(LEDGERS, key1(topic_id), at) if state.bytes_trimmed else None
    if record is None:
        return None
    key, payload = record
    entries, _, closed_ms, _, messages, _, _, *newest = unpack(payload, 7)
    # Earlier releases noted no time of the newest message: the ledger was closed after it.
    newest_ms = newest[0] if newest else closed_ms
    return LastTrimmed(Position(int.from_bytes(key[8:], "big"), entries - 1), messages, newest_ms)


def end_of_trimmed(view: ReadView, topic_id: int, state: TopicState) -> Position | None:
    """The last position that was trimmed; None if none was."""
    last = last_trimmed(view, topic_id, state)
    return None if last is None else last.end


def check_kept(topic: OpenTopic[ReadView], after: Position) -> None:
    """Check that no entry after a position was trimmed.

    Raises:
        MessageNotFound: names the first position that is left.
    """
    state = topic.state
    if after >= (state.first_ledger, -1):
        return
    end = end_of_trimmed(topic.view, topic.topic_id, state)
    if end is not None and after < end:
        raise MessageNotFound(
            f"the messages of {topic.name} after {after} were trimmed; the first one left is at "
            f"{Position(state.first_ledger, 0)}",
            hint="Read from earliest, or from that position on. Unless a limit is hard, a subscription keeps messages.",
            first_position=str(Position(state.first_ledger, 0)),
        )


def remains(view: ReadView, topic_id: int, state: TopicState, limit: int) -> list[Entry]:
    """Entries of trimmed ledgers that are still on disk, the first ones."""
    entries: list[Entry] = []
    stop = (state.first_ledger, 0)
    for key, payload in view.scan(ENTRIES, key1(topic_id)):
        entry = Entry(key, payload)
        if len(entries) >= limit or entry.position >= stop:
            break
        entries.append(entry)
    return entries


def purge_step(topic: OpenTopic[WriteBatch], limit: int) -> int:
    """Remove at most `limit` remains; return the number removed."""
    batch, topic_id, state = topic.view, topic.topic_id, topic.state
    entries = remains(batch, topic_id, state, limit)
    if not entries:
        return 0
    state.markers -= sum(entry.kind != MESSAGES for entry in entries)
    last = entries[-1].key
    removed = batch.delete_prefix(ENTRIES, key1(topic_id), stop=last)
    for timed in (TIMED, TIMED_BLOCKS):
        batch.delete_prefix(timed, key1(topic_id), stop=last)
    assert removed == len(entries), "the remains are the first entries of the topic"
    faults.reach("topic.between_purge_steps")
    return removed


def newest_ms(view: ReadView, topic_id: int, ledger: log.LedgerInfo) -> int:
    """A time in ms at or before which every message of a ledger was published.

    It is the timestamp of the last entry: publish times need not be sorted, and no publish time is later than the
    timestamp of its entry.
    """
    return log.stored(view, topic_id, Position(ledger.ledger_id, ledger.entries - 1)).timestamp // NS_PER_MS
