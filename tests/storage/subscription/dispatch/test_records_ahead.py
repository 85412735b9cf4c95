"""The records that a walk meets: `storage/subscription/dispatch/records_ahead.py`."""

from __future__ import annotations

import pytest

from storage import Consumer, Store, SubscriptionType
from storage.disk.view import ReadView
from storage.subscription import catalogue as subscriptions, pending_ack
from storage.subscription.dispatch.records_ahead import RecordsAhead
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.span import SPAN_MESSAGES_MAX
from storage.topic import catalogue as topics, log, state as states
from storage.topic.entry import Entry
from storage.values.position import Position
from tests.storage.many_messages import write_messages
from tests.storage.walk_steps import EXCLUSIVE, SHARED, Attach

SIZES = (1, 3, 64, SPAN_MESSAGES_MAX, SPAN_MESSAGES_MAX + 1, 200)
"""Messages of an entry; beyond a span's an entry has records of its own."""


def named(store: Store) -> set[int]:
    """The entries that some record names, after a check of every entry with the records themselves."""
    found = set[int]()
    with store.connection.view() as view:
        topic = topics.get(view, "t")
        opened = OpenSubscription(view, subscriptions.get(view, topic, "a"))
        ahead, last = RecordsAhead(opened), states.load(view, topic.topic_id).last_confirmed
        for number, entry in enumerate(log.scan(view, topic.topic_id, Position(0, -1), last)):
            agree(opened, ahead, entry)
            if ahead.names(entry):
                found.add(number)
    return found


def agree(opened: OpenSubscription[ReadView], ahead: RecordsAhead, entry: Entry) -> None:
    """See that delivery and acknowledgements are those that the records have, looked up for the one entry."""
    at, count = entry.position, entry.count
    known, delivery = opened.deliveries.find(at), ahead.delivery(entry)
    parts = sorted((part.messages, *part.fate()) for part in delivery.parts)
    assert parts == (sorted((part.messages, *part.fate()) for part in known.parts) if known else [])
    done = opened.acks.of(at, count) | pending_ack.covered(opened.cursor, at, count)
    assert ahead.acknowledged(entry) == done
    assert ahead.names(entry) or not (parts or done)


@pytest.mark.parametrize("type_", [EXCLUSIVE, SHARED])
@pytest.mark.parametrize("size", SIZES)
def test_entries_of_every_state(store: Store, attach: Attach, type_: SubscriptionType, size: int) -> None:
    """Acknowledged, in part, in flight, given back, and new: what is looked up by span is what each entry has."""
    write_messages(store, "t", 60 * size, size=size)
    consumer = attach(type_, window=10 * size)
    assert named(store) == set()
    messages = list(consumer.receive_batch(10 * size, timeout=0))
    assert named(store) >= set(range(10))
    consumer.acknowledge(messages[: 2 * size])
    consumer.acknowledge([*messages[4 * size : 6 * size], messages[-1]])
    consumer.negative_acknowledge(messages[3 * size], delay=30)
    assert named(store) >= set(range(10))
    consumer.receive_batch(10 * size, timeout=0)
    beyond = set(range(20, 60))
    assert (named(store) & beyond == set()) is (size <= SPAN_MESSAGES_MAX)


def test_a_pending_cumulative_acknowledgement(store: Store, attach: Attach) -> None:
    """It covers entries without a record, which the consumer has not received again."""
    write_messages(store, "t", 30)
    consumer: Consumer = attach(EXCLUSIVE)
    messages = consumer.receive_batch(30, timeout=0)
    consumer.acknowledge_cumulative(messages[9], txn=store.begin_transaction())
    assert named(store) == set(range(30))
