"""Shared work: `storage/subscription/dispatch/share.py`, and the holder's part in `storage/client/receive_window.py`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from storage import Consumer, Message, Store, SubscriptionType
from storage.subscription.dispatch.receiver_queue import ReceiverQueue
from tests.storage.walk_steps import KEY_SHARED, SHARED, Attach, receive, send, values


def in_rounds(consumers: Sequence[Consumer], *, acknowledges: bool = True) -> list[list[bytes]]:
    """Let the consumers receive one message each in turn, as equally fast ones do, until all come up empty; their values."""
    received: list[list[bytes]] = [[] for _ in consumers]
    while True:
        is_empty = True
        for consumer, mine in zip(consumers, received, strict=True):
            for message in consumer.receive_batch(1, timeout=0):
                is_empty = False
                mine.append(message.value or b"")
                if acknowledges:
                    consumer.acknowledge(message)
        if is_empty:
            return received


def take_all(consumer: Consumer) -> list[Message]:
    """Receive until the consumer comes up empty."""
    found: list[Message] = []
    while messages := receive(consumer):
        found += messages
    return found


def attached(attach: Attach, type_: SubscriptionType, number: int) -> list[Consumer]:
    return [attach(type_) for _ in range(number)]


class TestShares:
    """Every consumer finds work."""

    @pytest.mark.parametrize("type_", [SHARED, KEY_SHARED])
    @pytest.mark.parametrize("acknowledges", [False, True])
    def test_two_consumers_of_twenty_messages(
        self, store: Store, attach: Attach, type_: SubscriptionType, acknowledges: bool
    ) -> None:
        """Messages that were there before either received: each gets 8 to 12."""
        send(store, *map(str, range(20)))
        received = in_rounds(attached(attach, type_, 2), acknowledges=acknowledges)
        assert [8 <= len(mine) <= 12 for mine in received] == [True, True]
        assert sorted(int(value) for mine in received for value in mine) == list(range(20))

    def test_ten_consumers_of_a_thousand_messages(self, store: Store, attach: Attach) -> None:
        """The most and the least of equally fast consumers differ by a fifth at most."""
        store.create_producer("t").send_batch([b"%d" % number for number in range(1000)])
        received = in_rounds(attached(attach, SHARED, 10), acknowledges=False)
        counts = [len(mine) for mine in received]
        assert sum(counts) == 1000
        assert max(counts) - min(counts) <= max(counts) / 5

    @pytest.mark.parametrize("per_key", [1, 10])
    def test_two_consumers_of_twenty_keys(self, store: Store, attach: Attach, per_key: int) -> None:
        """Each gets 8 to 12 keys, and each key in order."""
        producer = store.create_producer("t")
        for number in range(per_key):
            for key in range(20):
                producer.send(b"%d-%d" % (key, number), key=str(key))
        received = in_rounds(attached(attach, KEY_SHARED, 2), acknowledges=False)
        keys = [{value.split(b"-")[0] for value in mine} for mine in received]
        assert [8 <= len(mine) <= 12 for mine in keys] == [True, True]
        assert not keys[0] & keys[1]
        for mine in received:
            assert sorted(mine, key=lambda value: int(value.split(b"-")[1])) == sorted(
                mine, key=lambda value: (int(value.split(b"-")[1]), mine.index(value))
            )

    def test_a_slow_consumer_leaves_the_rest_to_a_fast_one(self, store: Store, attach: Attach) -> None:
        """The slow one gives back what waits, in its next call; all of it but its own share comes to the fast one."""
        send(store, *map(str, range(100)))
        slow, fast = attached(attach, SHARED, 2)
        assert values(slow, 1) == [b"0"]
        taken = take_all(fast)
        assert values(slow, 1) == [b"1"]
        given_back = take_all(fast)
        assert len(taken) == 50
        assert 20 <= len(given_back) <= 30

    def test_one_consumer_alone_takes_all_at_once(self, store: Store, attach: Attach) -> None:
        """One dispatch, without a look at what waits."""
        send(store, *map(str, range(100)))
        consumer = attach(SHARED)
        before = store.connection.environment.last_commit()
        assert len(receive(consumer, 100)) == 100
        assert store.connection.environment.last_commit() - before == 1


class TestGivingBack:
    """What waits untouched at a holder, when another consumer has asked and found nothing."""

    def test_it_counts_as_never_delivered(self, store: Store, attach: Attach) -> None:
        """The redelivery count is 0, and the order that of the log."""
        send(store, *map(str, range(10)))
        holder = attach(SHARED)
        assert values(holder, 1) == [b"0"]
        asking = attach(SHARED)
        assert receive(asking) == []
        assert values(holder, 1) == [b"1"]
        found = take_all(asking)
        assert [(message.value, message.redelivery_count) for message in found][:2] == [(b"6", 0), (b"7", 0)]

    def test_nothing_goes_back_before_the_holder_calls(self, store: Store, attach: Attach) -> None:
        """However often the others ask; and a poll that was noted is not written again."""
        send(store, *map(str, range(10)))
        holder = attach(SHARED)
        assert values(holder, 1) == [b"0"]
        asking = attach(SHARED)
        commits = []
        for _ in range(3):
            assert receive(asking) == []
            commits.append(store.connection.environment.last_commit())
        assert commits[0] == commits[1] == commits[2]

    def test_an_acknowledgement_is_a_call_of_the_holder_too(self, store: Store, attach: Attach) -> None:
        """The holder need not receive again."""
        send(store, *map(str, range(10)))
        holder = attach(SHARED)
        (first,) = receive(holder, 1)
        asking = attach(SHARED)
        assert receive(asking) == []
        holder.acknowledge(first)
        assert [message.value for message in take_all(asking)] == [b"%d" % number for number in range(6, 10)]
        assert values(holder, 1) == [b"1"]

    def test_the_order_of_a_key_is_kept(self, store: Store, attach: Attach) -> None:
        """Whole keys go back; messages of a key that the application of the holder has stay with the holder."""
        for number in range(5):
            for key in "abcd":
                send(store, f"{key}{number}", key=key)
        holder = attach(KEY_SHARED)
        first = values(holder, 1)
        asking = attach(KEY_SHARED)
        assert receive(asking) == []
        rest = in_rounds([holder, asking], acknowledges=False)
        for key in b"abcd":
            mine = [[value for value in found if value[0] == key] for found in (first + rest[0], rest[1])]
            assert [found for found in mine if found] == [[bytes([key, 48 + number]) for number in range(5)]]
        assert rest[1]

    def test_a_message_is_never_in_two_hands(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An interruption between the commit that gives back and the holder's queue: it is looked at again."""
        send(store, *map(str, range(10)))
        holder = attach(SHARED)
        assert values(holder, 1) == [b"0"]
        asking = attach(SHARED)
        assert receive(asking) == []
        with monkeypatch.context() as patch:
            patch.setattr(ReceiverQueue, "drop", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                holder.receive(timeout=0)
        found = [*values(asking), *values(holder), *values(asking), *values(holder)]
        assert len(found) == len(set(found))


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
