"""The window delivered last, and what of it no application has received."""

from __future__ import annotations

import pytest

from storage.subscription.delivered_window import DeliveredWindow
from storage.subscription.delivery import Delivery
from storage.values.position import MessageId, Position

AFTER = Position(2, 5)
WINDOW = DeliveredWindow(9, AFTER, {Position(1, 3): 0b0110, Position(2, 5): 0b1})


@pytest.mark.parametrize(
    ("at", "held", "last", "untouched"),
    [
        (Position(1, 2), 0b1111, None, 0),  # of an earlier window
        (Position(1, 3), 0b1111, None, 0b0110),  # in part of an earlier window
        (Position(2, 6), 0b1111, None, 0b1111),
        (Position(1, 3), 0b1111, MessageId(1, 3, 1), 0b0100),
        (Position(1, 3), 0b1111, MessageId(1, 3, 3), 0),
        (Position(2, 5), 0b1, MessageId(1, 3, 1), 0b1),
        (Position(2, 5), 0b1, MessageId(2, 5, 0), 0),
        (Position(2, 5), 0b1, MessageId(3, 0, 0), 0),
        (Position(3, 0), 0b111, MessageId(3, 0, 0), 0b110),
        (Position(3, 1), 0b111, MessageId(3, 0, 2), 0b111),
    ],
)
def test_messages_behind_the_mark_were_not_received(
    at: Position, held: int, last: MessageId | None, untouched: int
) -> None:
    """Of this window alone: every message of an earlier one was received."""
    assert WINDOW.untouched(Delivery(at, 4, []), held, last) == untouched
