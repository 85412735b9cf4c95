"""Redeliveries count for messages that an application received, not for messages that waited in a queue."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.processes.child import Child, Children

pytestmark = [pytest.mark.slow, pytest.mark.kills]

TYPES = list(SubscriptionType)

CONSUMER = """
    with Store.open(path) as store:
        consumer = store.subscribe("t", "s")
        say("attached")
        while True:
            hear()
            message = consumer.receive(timeout=30)
            say("received", message.value.decode())
            if message.value != b"poison":
                consumer.acknowledge(message)
"""


def prepare(path: str, type_: SubscriptionType, *, poison_at: int, messages: int = 20) -> None:
    """Messages 0 to 19 with one poisonous among them; a message goes to `grave` after two redeliveries."""
    with Store.open(path) as store:
        store.admin.subscriptions.create_subscription(
            "t", "s", subscription_type=type_, initial_position=EARLIEST,
            dead_letter_topic="grave", max_redeliver_count=2,
        )  # fmt: skip
        values = [b"%d" % number for number in range(messages)]
        values.insert(poison_at, b"poison")
        producer = store.create_producer("t")
        producer.send_batch(values[:12])
        for value in values[12:]:
            producer.send(value)


def live_until_poison(children: Children, seen: list[str]) -> None:
    """One life of a default consumer: receives one by one, and is killed by the poison."""
    life: Child = children.run(CONSUMER)
    life.expect("attached")
    while True:
        life.say("next")
        seen.append(life.expect("received"))
        if seen[-1] == "poison":
            break
    life.kill()


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("poison_at", [0, 3, 17])
def test_only_the_poison_goes_to_the_dead_letter_topic(
    path: str, children: Children, type_: SubscriptionType, poison_at: int
):
    """Three killed lives of a default consumer; the messages that waited behind the poison were never delivered."""
    prepare(path, type_, poison_at=poison_at)
    seen: list[str] = []
    for _ in range(3):
        live_until_poison(children, seen)
    with Store.open(path) as store, store.subscribe("t", "s") as consumer:
        rest = list(consumer.receive_batch(100, timeout=0))
        assert [message.value for message in store.reader("grave")] == [b"poison"]
        assert {message.redelivery_count for message in rest} <= {0}
        values = [value for value in seen if value != "poison"]
        values += [(message.value or b"").decode() for message in rest]
        assert values == [str(number) for number in range(20)]
        consumer.acknowledge(rest)
        assert store.maintenance.verify_store() == []


def test_a_mark_that_is_lost_makes_a_count_short_by_one_window(path: str, children: Children):
    """As after a power cut: the messages of the last window count as not delivered, and no count is too high."""
    prepare(path, SubscriptionType.SHARED, poison_at=3)
    seen: list[str] = []
    live_until_poison(children, seen)
    os.unlink(os.path.join(path, "received.marks"))
    live_until_poison(children, seen)
    with Store.open(path) as store, store.subscribe("t", "s") as consumer:
        rest = {message.value: message.redelivery_count for message in consumer.receive_batch(100, timeout=0)}
        assert rest.pop(b"poison") == 1
        assert set(rest.values()) == {0}


def test_an_evicted_consumer_that_is_stopped(path: str, children: Children):
    """An eviction knows as much as a death: one message was received, and twenty waited."""
    prepare(path, SubscriptionType.SHARED, poison_at=0)
    life = children.run(CONSUMER)
    life.expect("attached")
    life.say("next")
    assert life.expect("received") == "poison"
    life.stop()
    with Store.open(path) as store:
        assert store.admin.subscriptions.evict_consumers("t", "s").effects.change.messages_released == 21
        with store.subscribe("t", "s") as consumer:
            batch = consumer.receive_batch(100, timeout=0)
            assert [message.redelivery_count for message in batch] == [1] + [0] * 20


def test_messages_of_earlier_windows_were_received(path: str, children: Children):
    """A consumer with a short queue has received all windows but the last; a redelivered one among new ones too."""
    prepare(path, SubscriptionType.SHARED, poison_at=20)
    life = children.run(
        """
        with Store.open(path) as store:
            consumer = store.subscribe("t", "s", receiver_queue_size=4)
            held = [consumer.receive(timeout=30) for _ in range(4)]
            consumer.negative_acknowledge(held[1], delay=0)
            held += [consumer.receive(timeout=30) for _ in range(6)]
            say("received", *(message.value.decode() for message in held[4:]))
            hear()
        """
    )
    assert life.expect("received").split() == ["1", "4", "5", "6", "7", "8"]
    life.kill()
    with Store.open(path) as store, store.subscribe("t", "s") as consumer:
        counts = [message.redelivery_count for message in consumer.receive_batch(100, timeout=0)]
        assert counts == [1, 2, *[1] * 7, *[0] * 12]


def test_a_consumer_killed_with_an_acknowledgement_pending(path: str, children: Children):
    """Its transaction is aborted first, which withdraws its queue: that counts for nothing that was not received."""
    prepare(path, SubscriptionType.EXCLUSIVE, poison_at=0)
    for _ in range(3):
        life = children.run(
            """
            with Store.open(path) as store:
                consumer = store.subscribe("t", "s")
                txn = store.transaction()
                message = consumer.receive(timeout=30)
                consumer.acknowledge(message, txn=txn)
                say("pending", message.value.decode())
                hear()
            """
        )
        assert life.expect("pending") == "poison"
        life.kill()
    with Store.open(path) as store, store.subscribe("t", "s") as consumer:
        rest = list(consumer.receive_batch(100, timeout=0))
        assert [message.value for message in store.reader("grave")] == [b"poison"]
        assert [message.redelivery_count for message in rest] == [0] * 20


GREEDY = """
    with Store.open(path) as store:
        consumer = store.subscribe("t", "s", receiver_queue_size=int(sys.argv[2]))
        out = open(sys.argv[3], "a", buffering=1)
        say("attached")
        while True:
            for message in consumer.receive_batch(int(sys.argv[4]), timeout=0):
                out.write(message.value.decode() + "\\n")
"""


@pytest.mark.parametrize("type_", [SubscriptionType.EXCLUSIVE, SubscriptionType.KEY_SHARED])
def test_counts_of_consumers_killed_at_any_moment(
    path: str, children: Children, tmp_path: Path, type_: SubscriptionType
):
    """A count is the number of lives that received the message; of each life one call may be noted and not returned."""
    random, written = Random(5), tmp_path / "received"
    lower, upper, messages = Counter[str](), Counter[str](), 3000
    with Store.open(path) as store:
        store.admin.subscriptions.create_subscription(
            "t", "s", subscription_type=type_, initial_position=EARLIEST
        )
        producer = store.create_producer("t")
        producer.send_batch([b"%d" % number for number in range(messages // 2)])
        txn = store.begin_transaction()
        for number in range(messages // 2, messages):
            producer.send(b"%d" % number, txn=txn)
        store.commit_transaction(txn)
    for life in range(10):
        written.write_text("")
        queue, step = random.choice([3, 50, 1000]), random.choice([1, 7])
        child = children.run(GREEDY, queue, written, step)
        child.expect("attached")
        wait_until = time.monotonic() + random.random() * 0.2
        while time.monotonic() < wait_until:
            pass
        child.kill()
        seen = written.read_text().split("\n")[:-1]
        assert seen == [str(number) for number in range(len(seen))], f"life {life} received in order"
        lower.update(seen)
        upper.update(str(number) for number in range(min(len(seen) + step, messages)))
    with Store.open(path) as store, store.subscribe("t", "s", receiver_queue_size=messages) as consumer:
        found = {}
        while batch := consumer.receive_batch(messages, timeout=0):
            found |= {(message.value or b"").decode(): message.redelivery_count for message in batch}
    assert len(found) == messages
    assert max(found.values()) > 1
    wrong = {value: count for value, count in found.items() if not lower[value] <= count <= upper[value]}
    assert wrong == {}
