"""The descent of a restored store: up to which ledger a topic is that of an earlier incarnation.

A restore makes a new incarnation, whose log goes on differently from that of the original. What the backup had closed
and decided is the same in both for ever: files of such ledgers, offloaded before the backup or after it, are the
restored store's own as well. The record of a topic names each incarnation before, with the first ledger that differs.
"""

from __future__ import annotations

from typing import Final

from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import STORE
from storage.disk.view import ReadView, WriteBatch
from storage.topic import state as states, written_positions
from storage.topic.state import TopicState
from storage.values.named_tuple import NamedTuple

_KEY: Final = b"descent\0"


class Ancestor(NamedTuple):
    """An earlier incarnation of the store, and the first ledger of a topic that may differ there.

    Attributes:
        last: the last ledger before those of the next incarnation; 0 for none.
    """

    incarnation: int
    first_own: int
    last: int = 0


def of_topic(view: ReadView, topic_id: int) -> list[Ancestor]:
    """The incarnations that a topic descends from, the latest first; none in a store that was never restored."""
    payload = view.get(STORE, _KEY + key1(topic_id))
    return [] if payload is None else [Ancestor(*row) for row in unpack(payload)]


def first_undecided(state: TopicState) -> int:
    """The first ledger of a topic that is open, or has a message behind maxReadPosition."""
    return (
        state.ledger_id
        if state.max_read >= state.last_confirmed
        else max(state.max_read[0], state.first_ledger)
    )


def note(batch: WriteBatch, topic_id: int, incarnation: int, first_own: int) -> None:
    """Note that a topic, whose next ledger is the first of an incarnation, descends from the one before."""
    end = written_positions.ledger_through(batch, topic_id, states.load(batch, topic_id).ledger_id)
    last = 0 if end is None else end.ledger_id
    ancestors = [Ancestor(incarnation, first_own, last), *of_topic(batch, topic_id)]
    batch.put(STORE, _KEY + key1(topic_id), pack(ancestors))


def topics_noted(view: ReadView) -> list[int]:
    """The ids of topics with a record."""
    return [int.from_bytes(key[len(_KEY) :], "big") for key in view.keys(STORE, _KEY)]


def forget(batch: WriteBatch, topic_id: int) -> None:
    """Remove the record of a topic that is deleted."""
    key = _KEY + key1(topic_id)
    if batch.has(STORE, key):
        batch.delete(STORE, key)
