"""Consumers in other processes: what a dead one held, what a stopped one keeps, and how waiting ones wake."""

from __future__ import annotations

import time

import pytest

from storage import EARLIEST, MessageId, Store, SubscriptionType
from storage.errors import ConsumerEvicted, SubscriptionBusy
from tests.processes.child import Child, Children
from tests.row_json import row_json
from tests.waiting import wait_for

SOON_S = 30.0
"""A waiting consumer is given a dead one's messages within about a second, on a busy machine later; its own wait is longer."""

CONSUMER = """
    with Store.open(path) as store:
        consumer = store.subscribe("t", "s", receiver_queue_size=int(sys.argv[2]))
        say("attached", consumer.consumer_name)
        while True:
            order = hear()
            if order == "receive":
                say("received", *(m.value.decode() for m in consumer.receive_batch(100, timeout=30)))
            elif order == "acknowledge":
                try:
                    consumer.acknowledge(last)
                except errors.ConsumerEvicted as error:
                    say("evicted", error.message)
            elif order == "one":
                last = consumer.receive(timeout=30)
                say("received", last.value.decode())
            elif order == "pend":
                txn = store.transaction()
                last = consumer.receive(timeout=30)
                consumer.acknowledge(last, txn=txn)
                say("pending", last.value.decode())
            else:
                break
"""

NOISE = """
    with Store.open(path) as store:
        producer = store.create_producer("noise")
        say("noisy")
        while not hear_is_over():
            producer.send(b"noise")
            let_pass(0.01, "noise has a pace")
"""

VALUES = [str(number) for number in range(20)]


def fill(path: str, type_: SubscriptionType) -> None:
    """Twenty messages of four keys on topic `t`, and a subscription `s` before them."""
    with Store.open(path) as store:
        store.admin.subscriptions.create_subscription(
            "t", "s", subscription_type=type_, initial_position=EARLIEST
        )
        producer = store.create_producer("t")
        for value in VALUES:
            producer.send(value.encode(), key=f"k{int(value) % 4}")


def attach(children: Children, window: int = 1000) -> Child:
    consumer = children.run(CONSUMER, window)
    consumer.expect("attached")
    return consumer


def receive(consumer: Child) -> list[str]:
    consumer.say("receive")
    return consumer.expect("received").split()


@pytest.mark.parametrize(
    "type_", [SubscriptionType.FAILOVER, SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]
)
@pytest.mark.parametrize("has_noise", [False, True])
def test_a_killed_consumers_messages_soon_reach_one_that_waits(
    path: str, children: Children, type_: SubscriptionType, has_noise: bool
):
    """Whatever the type, and whether or not others write meanwhile: all of them, in order where there is one."""
    fill(path, type_)
    killed = attach(children)
    assert receive(killed) == VALUES
    waiting = attach(children)
    waiting.say("receive")
    if has_noise:
        with Store.open(path) as store:
            store.create_topic("noise")
        children.run(
            NOISE.replace("hear_is_over()", "has_let_go()").replace(
                "with Store", "from tests.processes.parent import has_let_go\n    with Store", 1
            )
        ).expect("noisy")
    assert not waiting.has_spoken(within=0.8), "they are in flight elsewhere"
    began = time.monotonic()
    killed.kill()
    found = waiting.expect("received").split()
    assert time.monotonic() - began < SOON_S
    assert found == VALUES


@pytest.mark.parametrize(
    "type_", [SubscriptionType.FAILOVER, SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]
)
def test_a_killed_consumers_messages_soon_reach_one_that_polls(
    path: str, children: Children, type_: SubscriptionType
):
    """A consumer that never waits, because it polls with a timeout of 0, takes over from a dead one as well."""
    fill(path, type_)
    killed = attach(children)
    assert receive(killed) == VALUES
    with Store.open(path) as store, store.subscribe("t", "s") as polling:
        assert polling.receive_batch(100, timeout=0) == []
        killed.kill()
        found = wait_for(
            lambda: list(polling.receive_batch(100, timeout=0)), "messages of the dead one come", SOON_S
        )
        assert [(message.value or b"").decode() for message in found] == VALUES


def test_a_killed_consumers_messages_soon_reach_one_that_always_finds_some(path: str, children: Children):
    """A busy consumer never comes up empty, and takes over from a dead one on its way."""
    fill(path, SubscriptionType.SHARED)
    killed = attach(children)
    assert receive(killed) == VALUES
    with Store.open(path) as store, store.subscribe("t", "s") as busy:
        for _ in range(20):
            store.subscribe("t", "s")  # the dead consumer is not among the next few
        producer, found = store.create_producer("t"), list[str]()
        killed.kill()
        until = time.monotonic() + SOON_S
        while "0" not in found and time.monotonic() < until:
            producer.send(b"new")
            messages = busy.receive_batch(100, timeout=0)
            assert messages, "it comes up empty"
            found += [(message.value or b"").decode() for message in messages]
        assert "0" in found


@pytest.mark.parametrize("type_", list(SubscriptionType))
def test_a_killed_consumers_messages_are_free_for_the_next_command_at_once(
    path: str, children: Children, type_: SubscriptionType
):
    """A consumer that attaches after the death is handed everything in order, counted as redelivered."""
    fill(path, type_)
    killed = attach(children)
    assert receive(killed) == VALUES
    killed.kill()
    with Store.open(path) as store, store.subscribe("t", "s") as next_one:
        found = next_one.receive_batch(100, timeout=0)
        assert [(message.value or b"").decode() for message in found] == VALUES
        assert {message.redelivery_count for message in found} == {1}
        assert [
            each["consumerName"] for each in row_json(store.reports.subscription_stats("t", "s"))["consumers"]
        ] == ["consumer-2"]


@pytest.mark.parametrize("type_", list(SubscriptionType))
def test_what_a_killed_consumer_had_pending_comes_first_again(
    path: str, children: Children, type_: SubscriptionType
):
    """Also a process that has just written hands the dead one's transactional acknowledgements out again, in order."""
    fill(path, type_)
    killed = attach(children)
    killed.say("pend")
    assert killed.expect("pending") == "0"
    with Store.open(path) as store:
        store.create_producer("t").send(b"20")
        killed.kill()
        with store.subscribe("t", "s") as next_one:
            found = [(message.value or b"").decode() for message in next_one.receive_batch(100, timeout=0)]
            assert found == [*VALUES, "20"]
            assert row_json(store.reports.list_transactions()) == []


def test_what_a_waiting_failover_consumer_takes_over_comes_in_order_with_what_was_pending(
    path: str, children: Children
):
    """The dead one's pending acknowledgement is undone before anything behind it is handed out."""
    fill(path, SubscriptionType.FAILOVER)
    killed, waiting = attach(children, 5), attach(children)
    killed.say("pend")
    assert killed.expect("pending") == "0"
    waiting.say("receive")
    assert not waiting.has_spoken(within=0.7)
    killed.kill()
    assert waiting.expect("received").split() == VALUES


def test_an_exclusive_subscription_is_free_as_soon_as_its_consumer_is_killed(path: str, children: Children):
    """While it lives, another is refused and told who it is; after kill -9 the next attaches."""
    fill(path, SubscriptionType.EXCLUSIVE)
    first = attach(children)
    with Store.open(path) as store:
        with pytest.raises(SubscriptionBusy, match=f":{first.pid} "):
            store.subscribe("t", "s")
        first.kill()
        with store.subscribe("t", "s") as second:
            assert len(second.receive_batch(100, timeout=0)) == len(VALUES)


def test_a_stopped_consumer_keeps_its_messages_until_it_is_evicted(path: str, children: Children):
    """Another one gets nothing of them, then everything; the evicted one's acknowledgement is refused."""
    fill(path, SubscriptionType.SHARED)
    stopped = attach(children, 100)
    stopped.say("one")
    assert stopped.expect("received") == "0"
    stopped.stop()
    with Store.open(path) as store, store.subscribe("t", "s") as other:
        assert other.receive_batch(100, timeout=1.2) == []
        names = row_json(store.reports.subscription_stats("t", "s"))["consumers"]
        assert [(each["consumerName"], each["state"]) for each in names] == [
            ("consumer-1", "stopped"),
            ("consumer-2", "alive"),
        ]
        store.admin.subscriptions.evict_consumers("t", "s", "consumer-1")
        assert [(m.value or b"").decode() for m in other.receive_batch(100, timeout=0)] == VALUES
        stopped.resume()
        stopped.say("acknowledge")
        assert "evicted" in stopped.expect("evicted")
        assert row_json(store.reports.subscription_stats("t", "s"))["unackedMessages"] == len(VALUES)
        store.admin.subscriptions.evict_consumers("t", "s", "consumer-2")
        with pytest.raises(ConsumerEvicted):
            other.receive_batch(1, timeout=0)


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
def test_a_stopped_holder_keeps_its_window_and_gives_back_in_its_next_call(
    path: str, children: Children, type_: SubscriptionType
):
    """No message is in two hands: the one that asks gets nothing before the holder goes on, and then the holder's rest."""
    fill(path, type_)
    holder = attach(children)
    holder.say("one")
    assert holder.expect("received") == "0"
    with Store.open(path) as store, store.subscribe("t", "s") as asking:
        holder.stop()
        assert asking.receive_batch(100, timeout=1.2) == []
        holder.resume()
        kept = receive(holder)
        given: list[str] = []
        while messages := asking.receive_batch(100, timeout=0):
            given += [(message.value or b"").decode() for message in messages]
            assert {message.redelivery_count for message in messages} == {0}
    assert len({*kept, *given}) == len(kept) + len(given)
    assert len(given) >= (8 if type_ is SubscriptionType.SHARED else len(KEY_0))


def test_a_stopped_failover_consumer_stays_the_active_one(path: str, children: Children):
    """The next one in line waits while the first is merely stopped, and takes over when it is killed."""
    fill(path, SubscriptionType.FAILOVER)
    stopped, waiting = attach(children), attach(children)
    assert receive(stopped) == VALUES
    stopped.stop()
    waiting.say("receive")
    assert not waiting.has_spoken(within=1.2)
    stopped.kill()
    assert waiting.expect("received").split() == VALUES


def test_a_consumer_that_ends_without_closing_leaves_its_messages_to_the_others(
    path: str, children: Children
):
    """A process that just exits is as dead as a killed one, and what it acknowledged stays acknowledged."""
    fill(path, SubscriptionType.SHARED)
    leaving = attach(children)
    leaving.say("one")
    assert leaving.expect("received") == "0"
    waiting = attach(children)
    leaving.say("acknowledge")
    waiting.say("receive")
    leaving.say("exit")
    leaving.succeed()
    assert waiting.expect("received").split() == VALUES[1:]


KEY_0 = ["0", "4", "8", "12", "16"]
OTHER_KEYS = [value for value in VALUES if value not in KEY_0]


def test_an_operator_moves_a_key_to_another_consumer_in_its_order(path: str, children: Children):
    """What the first consumer has queued of the key goes back, and follows at the second one."""
    fill(path, SubscriptionType.KEY_SHARED)
    first = attach(children)
    first.say("one")
    assert first.expect("received") == "0"
    second = attach(children)
    second.say("one")
    assert not second.has_spoken(within=0.3), "everything is in flight at the first"
    with Store.open(path) as store:
        store.admin.acknowledgements.negative_acknowledge_messages("t", "s", [MessageId(1, 0)], delay=0)
    assert second.expect("received") == "0"
    others = receive(first)
    second.say("acknowledge")
    rest = list[str]()
    while KEY_0[-1] not in rest:
        rest += receive(second)
    assert [value for value in rest if value in KEY_0] == KEY_0[1:]
    assert not set(others) & set(KEY_0)


def test_an_abort_by_another_process_gives_a_key_back_in_its_order(path: str, children: Children):
    """The acknowledgement is made pending by one process and undone by the same, while the consumer has a queue."""
    fill(path, SubscriptionType.KEY_SHARED)
    first = attach(children)
    first.say("one")
    assert first.expect("received") == "0"
    with Store.open(path) as store:
        txn = store.begin_transaction()
        store.admin.acknowledgements.acknowledge_messages("t", "s", [MessageId(1, 0)], txn=txn)
        assert receive(first) == OTHER_KEYS
        second = attach(children)
        second.say("receive")
        assert not second.has_spoken(within=0.7), "the key is held"
        store.admin.transactions.abort_transaction(txn)
        found = second.expect("received").split()
        found += receive(second) + receive(second)
        assert found == KEY_0[: len(found)]


def test_a_dead_letter_policy_counts_the_consumers_that_a_message_kills(path: str, children: Children):
    """A message in flight at two consumers that died goes to the dead-letter topic instead of to a third."""
    with Store.open(path) as store:
        store.admin.subscriptions.create_subscription(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST,
            dead_letter_topic="grave", max_redeliver_count=1,
        )  # fmt: skip
        store.create_producer("t").send(b"poison")
    for _ in range(2):
        victim = attach(children)
        assert receive(victim) == ["poison"]
        victim.kill()
    with Store.open(path) as store, store.subscribe("t", "s") as third:
        assert third.receive_batch(1, timeout=0) == []
        assert [message.value for message in store.reader("grave")] == [b"poison"]
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
