"""`trim_topic(offloaded=)`: ledgers that are stored elsewhere go, as far as nothing holds them."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Position, Store
from storage.admin.topics import OffloadedLedgers
from storage.errors import MessageNotFound


@pytest.fixture
def filled(store: Store) -> Store:
    """A store whose topic `o` has six ledgers of two messages, which no limit would trim."""
    store.create_topic("o", ledger_entries_max=2)
    store.admin.topics.set_retention("o", time_ms=3_600_000)
    with store.create_producer("o") as producer:
        for number in range(12):
            producer.send(b"%d" % number)
    return store


def values(store: Store) -> list[int]:
    return [int(message.value or b"") for message in store.reader("o", start=EARLIEST)]


def test_offloaded_ledgers_go_and_no_further_one(filled: Store) -> None:
    """Whatever the limits are; a dry run says the same and takes nothing; a second call finds nothing."""
    there = OffloadedLedgers(3, "file:///archive")
    planned = filled.admin.topics.trim_topic("o", offloaded=there, dry_run=True).effects
    assert values(filled) == list(range(12))
    done = filled.admin.topics.trim_topic("o", offloaded=there).effects
    assert (done.trimmed, done.first_position) == (planned.trimmed, planned.first_position)
    assert (done.trimmed.ledgers, done.first_position, done.offloaded_to) == (
        2,
        Position(3, 0),
        "file:///archive",
    )
    assert values(filled) == list(range(4, 12))
    assert filled.admin.topics.trim_topic("o", offloaded=there).effects.trimmed.ledgers == 0


def test_the_ledger_that_is_written_stays(filled: Store) -> None:
    """Also where the files have all of it; what is sent afterwards follows without a gap."""
    filled.admin.topics.trim_topic("o", offloaded=OffloadedLedgers(1 << 40, "file:///archive"))
    left = values(filled)
    assert left == list(range(12 - len(left), 12))
    with filled.create_producer("o") as producer:
        receipt = producer.send(b"12")
    assert values(filled) == [*left, 12]
    assert receipt.ledger_id >= 6


def test_a_subscription_and_an_open_transaction_hold_offloaded_ledgers(filled: Store) -> None:
    """What nobody has acknowledged is not taken away, hard limits or not, and goes once it is free."""
    filled.admin.topics.set_retention("o", size=0, hard="trim")
    filled.admin.subscriptions.create_subscription("o", "s", initial_position=Position(2, 0))
    there = OffloadedLedgers(1 << 40, "file:///archive")
    assert filled.admin.topics.trim_topic("o", offloaded=there).effects.first_position == Position(2, 0)
    with filled.subscribe("o", "s") as consumer:
        assert [int(m.value or b"") for m in consumer.receive_batch(3, timeout=0)] == [2, 3, 4]
    filled.admin.subscriptions.clear_backlog("o", "s")
    assert filled.admin.topics.trim_topic("o", offloaded=there).effects.trimmed.ledgers > 0


@pytest.mark.parametrize("start", [Position(1, 0), Position(2, 0), Position(2, 1)])
def test_a_reader_whose_next_message_was_trimmed_is_told_each_time(filled: Store, start: Position) -> None:
    """Also after further messages came; a second reader beside, from the first message left, has them all."""
    filled.admin.topics.trim_topic("o", offloaded=OffloadedLedgers(3, "file:///archive"))
    reader = filled.reader("o", start=start)
    with pytest.raises(MessageNotFound, match="the first one left is at 3:0"):
        reader.read_next(0)
    with filled.create_producer("o") as producer:
        producer.send(b"12")
    with pytest.raises(MessageNotFound, match="the first one left is at 3:0"):
        reader.read_next(0)
    assert values(filled) == list(range(4, 13))


def test_a_reader_that_starts_behind_the_last_message_of_the_last_trimmed_ledger_misses_nothing(
    filled: Store,
) -> None:
    """The first message left comes next, then the rest, and what a producer sends beside."""
    filled.admin.topics.trim_topic("o", offloaded=OffloadedLedgers(3, "file:///archive"))
    reader = filled.reader("o", start=Position(2, 2))
    taken = [int(reader.read_next(0).value or b"") for _ in range(3)]
    with filled.create_producer("o") as producer:
        producer.send(b"12")
    assert taken + [int(message.value or b"") for message in reader] == list(range(4, 13))
