"""Read positions: where a reader and where a subscription begin."""

from __future__ import annotations

import pytest

from storage import EARLIEST, LATEST, IsolationLevel, MessageId, Position
from storage.errors import InvalidPosition
from storage.subscription.start_position import start_after, subscription_start
from storage.topic.state import TopicState

RC, RU = IsolationLevel


@pytest.fixture
def state() -> TopicState:
    """A topic from 2:0 to 3:5, with an open transaction from 3:3 on."""
    made = TopicState.new(2, -1, 0, (10, 10, 10))
    made.ledger_id, made.next_entry, made.max_read = 3, 6, Position(3, 2)
    return made


@pytest.mark.parametrize(
    ("start", "level", "after"),
    [
        (EARLIEST, RC, (2, -1)),
        (LATEST, RC, (3, 2)),
        (LATEST, RU, (3, 5)),
        (Position(3, 4), RC, (3, 3)),
        (Position(3, -1), RC, (3, -1)),
        (MessageId(3, 4, 1), RU, (3, 3)),
        (Position(9, 0), RC, (9, -1)),
    ],
)
def test_reading_begins_after_a_position(
    state: TopicState, start: object, level: IsolationLevel, after: tuple[int, int]
) -> None:
    """A position or message id is the first one read; the extremes depend on topic and level."""
    assert start_after(state, start, level) == after  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "after", "inside"),
    [
        (Position(9, 0), (3, 5), False),
        (Position(1, 0), (2, -1), False),
        (MessageId(3, 4, 1), (3, 3), True),
        (MessageId(3, 4, 0), (3, 3), False),
    ],
)
def test_a_subscription_begins_within_the_topic(
    state: TopicState, start: object, after: tuple[int, int], inside: bool
) -> None:
    """So every later message is in its backlog; a message inside a batch is named beside the position."""
    position, message_id = subscription_start(state, start, RC)  # type: ignore[arg-type]
    assert (position, message_id is not None) == (after, inside)


@pytest.mark.parametrize(
    "start", [Position(-1, 0), Position(0, -2), Position(1 << 63, 0), MessageId(1, 1 << 63)]
)
def test_a_position_outside_every_topic_is_refused(state: TopicState, start: object) -> None:
    """Its key could not be made."""
    with pytest.raises(InvalidPosition):
        start_after(state, start, RC)  # type: ignore[arg-type]
