"""Calls of receiving and acknowledging, as the profiler of Python counts them: they do not depend on the machine."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Iterator

import pytest

from storage import EARLIEST, Consumer, Store
from tests.storage.many_messages import write_messages

_BATCHES = 11
"""Counted for each case: enough windows that a window's share of a batch is counted."""

_WINDOW = {1: 1000, 10: 1000, 1000: 10_000}
"""Messages that a consumer is handed at once, by the size of the batches that were sent."""

Acknowledge = Callable[[Consumer, int], None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with messages that were sent one by one, by tens and by thousands, the last in topics of those names."""
    path = str(tmp_path_factory.mktemp("calls") / "store")
    Store.create(path)
    with Store.open(path) as opened:
        for size in (1, 10, 1000):
            opened.create_topic(f"by-{size}")
            write_messages(opened, f"by-{size}", 20_000, size=size)
        yield opened


def take_batch(consumer: Consumer, count: int) -> None:
    """Receive messages, read the values, and acknowledge the batch."""
    messages = consumer.receive_batch(count, timeout=0)
    assert len(messages.values) == count
    consumer.acknowledge(messages)


def take_each(consumer: Consumer, count: int) -> None:
    """Receive messages, read each, and acknowledge a list of them."""
    messages = list(consumer.receive_batch(count, timeout=0))
    assert len([message.value for message in messages]) == count
    consumer.acknowledge(messages)


def take_ids(consumer: Consumer, count: int) -> None:
    """Receive messages and acknowledge their ids."""
    ids = [message.message_id for message in consumer.receive_batch(count, timeout=0)]
    assert len(ids) == count
    consumer.acknowledge(ids)


@pytest.mark.parametrize(
    ("size", "count", "take", "most"),
    [
        pytest.param(1, 1000, take_batch, 36, id="one-by-one-1000"),
        pytest.param(1, 100, take_batch, 38, id="one-by-one-100"),
        pytest.param(1, 1000, take_each, 42, id="one-by-one-each"),
        pytest.param(1, 1000, take_ids, 42, id="one-by-one-ids"),
        pytest.param(10, 1000, take_batch, 4.6, id="tens-1000"),
        pytest.param(10, 10, take_batch, 38, id="tens-10"),
        pytest.param(1000, 1000, take_batch, 0.55, id="thousands"),
    ],
)
def test_calls_of_a_message_stay_few(
    store: Store, size: int, count: int, take: Acknowledge, most: float
) -> None:
    """Receiving, reading and acknowledging take at most so many calls a message."""
    profile, name = cProfile.Profile(), f"{size}-{count}-{take.__name__}"
    with store.subscribe(
        f"by-{size}", name, initial_position=EARLIEST, receiver_queue_size=_WINDOW[size]
    ) as consumer:
        take(consumer, count)
        for _ in range(_BATCHES):
            profile.enable()
            take(consumer, count)
            profile.disable()
    calls = pstats.Stats(profile).total_calls / _BATCHES / count  # type: ignore[attr-defined]
    assert calls <= most
