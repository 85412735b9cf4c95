"""Drawings to the scale of messages: each position and each state of a message has its place."""

from __future__ import annotations

from collections import Counter

import pytest

from storage import EARLIEST, OnOpen, Position, Store, SubscriptionType
from storage.process.clock import ManualClock
from storage.reports import message_scale
from storage.reports.message_scale import Stretch
from storage.reports.timeline import Timeline
from txnctl.output.timeline import Drawing


@pytest.fixture
def shared(store: Store) -> Store:
    """Twelve messages in two entries; of a Shared subscription one message in every state, one transaction open."""
    producer = store.create_producer("t")
    producer.send_batch([b"x"] * 8)
    consumer = store.subscribe(
        "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST, receiver_queue_size=6
    )
    first = consumer.receive_batch(6, timeout=0)
    consumer.acknowledge([first[0], first[3]])
    consumer.acknowledge([first[1]], txn=store.begin_transaction())
    producer.send(b"half", txn=store.begin_transaction())
    producer.send_batch([b"y"] * 3)
    return store


def counted(model: Timeline, name: str) -> Counter[str]:
    """The number of messages in each state."""
    counts: Counter[str] = Counter()
    for stretch in model.stretches[name]:
        counts[stretch.state] += stretch.end - stretch.begin
    return counts


def test_every_message_is_drawn_in_its_state(shared: Store) -> None:
    """Acknowledged ahead, pending, in flight, ready and blocked, each for itself, as the subscription counts them."""
    model = shared.reports.topic_timeline("t")
    row = model.subscriptions["s"]
    counts = counted(model, "s")
    assert (counts["pending"], counts["inFlight"]) == (row.pending, row.unacked_messages) == (1, 3)
    assert counts["inFlight"] + counts["ready"] == row.visible == 5
    assert counts["blocked"] == row.blocked + row.uncommitted == 4
    assert counts["acknowledged"] == 2
    assert model.stretches["s"] == [
        Stretch("acknowledged", 0, 1), Stretch("pending", 1, 2), Stretch("inFlight", 2, 3),
        Stretch("acknowledged", 3, 4), Stretch("inFlight", 4, 6), Stretch("ready", 6, 8), Stretch("blocked", 8, 12),
    ]  # fmt: skip
    drawn = dict(
        line.split(maxsplit=1)
        for _, line in Drawing(model, 16 + 24, plain=True).lines()
        if line.strip()[:1] == "s"
    )
    assert set(drawn["s"]) == set("=%+-:")


def test_a_key_that_waits_is_blocked_and_the_rest_is_ready(store: Store) -> None:
    """With --on-open skip, once dispatch has passed; what the open transaction sent is no message to hand out."""
    producer = store.create_producer("t")
    producer.send(b"half", key="k", txn=store.begin_transaction())
    producer.send_batch([b"waits", b"goes"], keys=["k", "l"])
    consumer = store.subscribe(
        "t",
        "s",
        subscription_type=SubscriptionType.KEY_SHARED,
        on_open=OnOpen.SKIP,
        initial_position=EARLIEST,
    )
    consumer.receive_batch(5, timeout=0)
    producer.send(b"more", key="m")
    model = store.reports.topic_timeline("t")
    row = model.subscriptions["s"]
    assert counted(model, "s") == {
        "blocked": row.blocked + row.uncommitted,
        "inFlight": 1,
        "ready": row.visible - 1,
    }
    assert row.blocked == 1


def test_one_open_message_is_no_larger_than_one_of_five_hundred(store: Store) -> None:
    """A batch of 500 takes 500 places, an open message takes one; the drawings agree."""
    producer = store.create_producer("t")
    producer.send(b"half", txn=store.begin_transaction())
    producer.send_batch([b"x"] * 500)
    model = store.reports.topic_timeline("t")
    places = dict(model.places)
    assert (places[Position(1, 0)], places[Position(1, 1)]) == (1, 501)
    assert model.ledgers[0].ledger.messages == 501
    own = next(line for _, line in Drawing(model, 116, plain=True).lines() if "0:1" in line)
    assert own.count("o") == 1
    assert own.count("=") > 90


def test_a_cumulative_acknowledgement_in_a_transaction_is_pending(store: Store) -> None:
    """Up to a message in the middle of an entry, without what was acknowledged before."""
    producer = store.create_producer("t")
    producer.send_batch([b"x"] * 4)
    producer.send_batch([b"y"] * 4)
    consumer = store.subscribe("t", "s", initial_position=EARLIEST)
    received = consumer.receive_batch(8, timeout=0)
    consumer.acknowledge_cumulative(received[5], txn=store.begin_transaction())
    model = store.reports.topic_timeline("t")
    row = model.subscriptions["s"]
    counts = counted(model, "s")
    assert (counts["pending"], counts["inFlight"]) == (row.pending, row.unacked_messages) == (6, 2)


def test_beyond_the_bound_a_message_is_drawn_as_its_neighbours(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many records a subscription has, the drawing reads a bounded number of them."""
    monkeypatch.setattr(message_scale, "EXAMINED_MAX", 0)
    assert [row.state for row in shared.reports.topic_timeline("t").stretches["s"]] == [
        "ready", "blocked",
    ]  # fmt: skip


def test_a_timeline_that_is_not_drawn_has_no_places(shared: Store) -> None:
    """The overview needs none."""
    assert shared.reports.topic_timelines()[0].places
    assert "places" not in str(shared.reports.store_overview())


def test_delayed_messages_are_drawn_until_they_are_due(store: Store, clock: ManualClock) -> None:
    """As the subscription counts them; due ones are ready."""
    consumer = store.subscribe("t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST)
    store.create_producer("t").send_batch([b"x"] * 4, deliver_after=[None, 5, 5, 9])
    assert len(consumer.receive_batch(9, timeout=0)) == 1
    store.create_producer("t").send_batch([b"not met"] * 2, deliver_after=[None, 5])
    for seconds, states in (
        (0, {"inFlight": 1, "ready": 1, "delayed": 4}),
        (5, {"inFlight": 1, "ready": 4, "delayed": 1}),
    ):
        clock.advance(seconds)
        model = store.reports.topic_timeline("t")
        assert counted(model, "s") == Counter(states)
        assert model.subscriptions["s"].delayed == states["delayed"]
    drawing = Drawing(model, 16 + 24, plain=True)
    assert "' delayed" in drawing.legend().replace("\u00a0", " ")
