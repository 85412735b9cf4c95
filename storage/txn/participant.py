"""Participants of a transaction: the protocol by which the coordinator ends topics', subscriptions' and tables' parts.

The coordinator knows its participants by this protocol alone; `engine.py` provides them. Each part of a transaction
(TXN_PARTS) belongs to one participant by the kind in its key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position


class TopicEffect(NamedTuple):
    """The effect of an end on a topic."""

    topic_id: int
    messages: int
    first_position: Position
    last_position: Position
    max_read_position_before: Position
    max_read_position_after: Position


as_topic_effect: Callable[[tuple[int, int, Position, Position, Position, Position]], TopicEffect] = partial(
    tuple.__new__, TopicEffect
)
"""Make an effect of its fields, like `as_position`."""


class SubscriptionEffect(NamedTuple):
    """The effect of an end on a subscription."""

    topic_id: int
    subscription: str
    messages: int
    cumulative: Position | None
    mark_delete_position_before: Position
    mark_delete_position_after: Position


class TableEffect(NamedTuple):
    """The effect of an end on a table."""

    table_id: int
    intents: int
    finalized: bool


Effect = TopicEffect | SubscriptionEffect | TableEffect


class TopicWork(NamedTuple):
    """The messages of a transaction on a topic; `positions` are ranges as text."""

    topic_id: int
    messages: int
    bytes: int
    first_position: Position
    last_position: Position
    positions: list[str]


class SubscriptionWork(NamedTuple):
    """The acknowledgements of a transaction on a subscription."""

    topic_id: int
    subscription: str
    messages: int
    cumulative: Position | None
    positions: list[Position]


class TableWorkDone(NamedTuple):
    """The keys of a transaction in a table."""

    table_id: int
    keys: int
    key_list: list[bytes]
    finalized: bool


PartDone = TopicWork | SubscriptionWork | TableWorkDone


class Participant(Protocol):
    """An object that takes part in transactions."""

    kind: int
    """The kind of its parts in TXN_PARTS."""

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:
        """The reason why this part must not be committed, or None. An error dooms the transaction."""

    def decide(self, batch: WriteBatch, txn: int, object_id: int, part: Any, committed: bool) -> Effect:
        """Make one part of a transaction final, within the store transaction that decides the outcome.

        Args:
            part: as stored; the open record of a part that the batch itself has begun.
        """

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> PartDone:
        """The part for `transactions show`."""
