"""Receiver queue: `storage/subscription/dispatch/receiver_queue.py`."""

from __future__ import annotations

import pytest

from storage import MessageId, Store
from storage.errors import InvalidValue
from tests.storage.walk_steps import (
    Attach,
    receive,
    send,
    values,
)


class TestNegativeAcknowledgement:
    """Given back, with a delay."""

    def test_what_is_given_back_from_the_queue_is_not_given_out(self, store: Store, attach: Attach) -> None:
        """It is in flight here no longer."""
        send(store, *"012")
        consumer = attach()
        receive(consumer, 1)
        consumer.negative_acknowledge(MessageId(1, 1), delay=60)
        assert values(consumer) == [b"2"]


class TestWaiting:
    """`receive` with and without patience."""

    @pytest.mark.parametrize("count", [0, -1])
    def test_a_queue_holds_at_least_one(self, store: Store, attach: Attach, count: int) -> None:
        """A window of nothing is refused."""
        with pytest.raises(InvalidValue):
            attach(window=count)
