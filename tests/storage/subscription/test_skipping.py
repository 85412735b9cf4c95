"""`--on-open skip`: an open transaction holds back its own messages, and on Key_Shared later ones of their keys."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, MessageId, OnOpen, Position, Store, SubscriptionType
from storage.clock import ManualClock
from storage.errors import InvalidValue, NotDeliverable, SubscriptionBusy
from storage.schema import AWAITED, DELIVERIES, HELD

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
BLOCK, SKIP = OnOpen
SKIPPING = pytest.mark.parametrize("type_", [SHARED, KEY_SHARED])
Attach = Callable[..., Consumer]


@pytest.fixture
def attach(store: Store) -> Attach:
    """Attaches to the subscription `a` of topic `t`, from the beginning, skipping what is open."""

    def made(type_: SubscriptionType | None = SHARED, **more: Any) -> Consumer:
        more = {"subscription_type": type_, "initial_position": EARLIEST, "on_open": "skip"} | more
        return store.subscribe("t", "a", **more)

    return made


def send(store: Store, *texts: str, txn: Any = None) -> None:
    """One entry for each text, of one message for each word; `key=value` has a key."""
    producer = store.create_producer("t")
    for text in texts:
        words = [word.split("=") for word in text.split()]
        producer.send_batch(
            [word[-1].encode() for word in words],
            keys=[word[0] if len(word) > 1 else None for word in words],
            txn=txn,
        )


def receive(consumer: Consumer, count: int = 99, acknowledge: bool = True) -> str:
    """The values of the next messages, acknowledged."""
    batch = consumer.receive_batch(count, timeout=0)
    if batch and acknowledge:
        consumer.acknowledge(batch)
    return " ".join((value or b"").decode() for value in batch.values)


def classes(store: Store) -> dict[str, int]:
    """The backlog by class, where there is any."""
    stats = store.subscription_stats("t", "a")
    names = ("visible", "blocked", "uncommitted", "abortedAhead", "acknowledgedAhead", "pending")
    return {name: stats[name] for name in names if stats[name]}


class TestShared:
    """Each open transaction holds back its own messages alone."""

    @SKIPPING
    def test_what_is_committed_comes_at_once(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Behind an open transaction, without waiting for it and without seeing it (invariant 2)."""
        send(store, "1")
        send(store, "open", txn=store.begin())
        send(store, "2 3", "4")
        assert receive(attach(type_)) == "1 2 3 4"

    @SKIPPING
    def test_what_was_held_follows_the_commit(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """All of it, once, and markDeletePosition waits below it until then."""
        txn, consumer = store.begin(), attach(type_)
        send(store, "a b", "c", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        assert store.subscription_stats("t", "a")["markDeletePosition"] == "1:-1"
        store.commit(txn)
        assert receive(consumer) == "a b c"
        assert receive(consumer) == ""
        assert store.subscription_stats("t", "a")["markDeletePosition"] == "1:3"
        assert store.verify(full=True) == []

    @SKIPPING
    def test_what_was_held_leaves_the_backlog_with_the_abort(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Nothing of it is ever handed out."""
        txn, consumer = store.begin(), attach(type_)
        send(store, "a b", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        store.abort(txn)
        assert classes(store) == {"abortedAhead": 2, "acknowledgedAhead": 1}
        assert receive(consumer) == ""
        assert classes(store) == {}
        assert store.subscription_stats("t", "a")["markDeletePosition"] == "1:2"

    def test_max_read_position_is_what_it_is(self, store: Store, attach: Attach) -> None:
        """Others, and readers, stop where they stop."""
        txn = store.begin()
        send(store, "open", txn=txn)
        send(store, "1")
        assert receive(attach()) == "1"
        assert store.topic_stats("t")["maxReadPosition"] == "1:-1"
        assert list(store.reader("t")) == []

    def test_ends_in_any_order(self, store: Store, attach: Attach) -> None:
        """The transaction that ends first comes first, whichever began first."""
        one, two, consumer = store.begin(), store.begin(), attach()
        send(store, "a", txn=one)
        send(store, "b", txn=two)
        send(store, "c", txn=one)
        assert receive(consumer) == ""
        store.commit(two)
        assert receive(consumer) == "b"
        store.commit(one)
        assert receive(consumer) == "a c"

    @SKIPPING
    @pytest.mark.parametrize("window", [1, 2, 3])
    def test_nothing_is_lost_where_the_room_ends(
        self, store: Store, attach: Attach, type_: SubscriptionType, window: int
    ) -> None:
        """A transaction larger than a window comes in parts, and what follows it too."""
        txn, consumer = store.begin(), attach(type_, receiver_queue_size=window)
        send(store, "a b c", "d", "e f", txn=txn)
        send(store, "1 2", "3")
        assert [receive(consumer) for _ in range(3)] == {
            1: ["1", "2", "3"], 2: ["1 2", "3", ""], 3: ["1 2 3", "", ""]
        }[window]  # fmt: skip
        store.commit(txn)
        send(store, "4")
        parts = [receive(consumer) for _ in range(8)]
        assert sorted(" ".join(parts).split()) == ["4", "a", "b", "c", "d", "e", "f"]
        assert store.subscription_stats("t", "a")["markDeletePosition"] == "1:6"

    def test_parts_that_are_in_flight_come_once(self, store: Store, attach: Attach) -> None:
        """A consumer that does not acknowledge is handed the rest, and nothing twice."""
        txn, consumer = store.begin(), attach(receiver_queue_size=2)
        send(store, "a b c", "d", txn=txn)
        send(store, "1")
        assert receive(consumer, acknowledge=False) == "1"
        store.commit(txn)
        assert [receive(consumer, acknowledge=False) for _ in range(3)] == ["a b", "c d", ""]

    def test_two_consumers_share_what_follows(self, store: Store, attach: Attach) -> None:
        """What was held goes to either of them, once."""
        txn, one, two = store.begin(), attach(receiver_queue_size=1), attach(receiver_queue_size=1)
        send(store, "a", "b", txn=txn)
        assert (receive(one), receive(two)) == ("", "")
        store.commit(txn)
        assert (receive(one), receive(two), receive(one)) == ("a", "b", "")

    def test_what_died_with_its_consumer_comes_again(self, store: Store, path: str, attach: Attach) -> None:
        """In another process too, with what it was passed over for."""
        txn, other = store.begin(), Store.open(path)
        send(store, "a", txn=txn)
        send(store, "1")
        attach()
        lost = other.subscribe("t", "a")
        assert receive(lost, acknowledge=False) == "1"
        other.close()
        store.commit(txn)
        assert receive(attach()) == "a 1"

    def test_one_given_back_comes_before_what_is_new(
        self, store: Store, attach: Attach, clock: ManualClock
    ) -> None:
        """A delay is kept, while a transaction stays open before it."""
        consumer = attach()
        send(store, "open", txn=store.begin())
        send(store, "1", "2")
        first, second = consumer.receive_batch(2, timeout=0)
        consumer.negative_acknowledge(first, delay=30)
        consumer.acknowledge(second)
        assert receive(consumer) == ""
        clock.advance(30)
        send(store, "3")
        assert receive(consumer) == "1 3"

    def test_a_letter_goes_to_the_dead_letter_topic(self, store: Store, attach: Attach) -> None:
        """Of a transaction that has ended, like every other."""
        txn = store.begin()
        consumer = attach(max_redeliver_count=0, dead_letter_topic="grave")
        send(store, "a", txn=txn)
        assert receive(consumer) == ""
        store.commit(txn)
        consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert receive(consumer) == ""
        assert [message.value for message in store.reader("grave")] == [b"a"]

    def test_a_waiting_consumer_wakes_when_a_transaction_ends(self, store: Store, path: str) -> None:
        """Whoever commits it."""
        txn, found = store.begin(), list[str]()
        store.create_topic("w")
        store.create_producer("w").send(b"held", txn=txn)

        def wait() -> None:
            with Store.open(path) as other:
                consumer = other.subscribe(
                    "w", "a", subscription_type=SHARED, on_open=SKIP, initial_position=EARLIEST
                )
                ready.set()
                found.append((consumer.receive(timeout=60).value or b"").decode())

        ready = threading.Event()
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert ready.wait(30)
        store.commit(txn)
        waiting.join(30)
        assert found == ["held"]

    def test_passing_over_is_one_record(self, store: Store, attach: Attach) -> None:
        """However many messages a transaction has; nothing is acknowledged, or noted of each."""
        txn, consumer = store.begin(), attach()
        send(store, *["x y z"] * 50, txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        with store.connection.view() as view:
            assert (view.count(AWAITED), view.count(HELD), view.count(DELIVERIES)) == (1, 0, 0)
        assert classes(store) == {"uncommitted": 150, "acknowledgedAhead": 1}

    def test_nothing_is_written_for_what_is_only_uncommitted(self, store: Store, attach: Attach) -> None:
        """A waiting consumer does not answer each send of an open transaction with a commit of its own."""
        consumer, txn = attach(), store.begin()
        send(store, "a", txn=txn)
        before = store.connection.environment.last_commit()
        assert receive(consumer) == ""
        assert store.connection.environment.last_commit() == before


class TestKeys:
    """Key_Shared: later messages of the keys that an open transaction carries wait for it (invariant 21)."""

    def test_only_its_keys_wait(self, store: Store, attach: Attach) -> None:
        """Per message, not per entry; no key holds nothing, and an empty one is a key."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=0 l=0", "m=0")
        send(store, "k=open =open open", txn=txn)
        send(store, "k=1 l=1 none =1", "l=2 k=2", "m=1")
        assert receive(consumer) == "0 0 0 1 none 2 1"
        assert classes(store) == {"uncommitted": 3, "blocked": 3, "acknowledgedAhead": 4}
        store.commit(txn)
        assert receive(consumer) == "open open open 1 1 2"
        assert store.verify(full=True) == []

    def test_an_abort_frees_what_waited(self, store: Store, attach: Attach) -> None:
        """Without the aborted messages."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1", "k=2")
        assert receive(consumer) == ""
        store.abort(txn)
        assert receive(consumer) == "1 2"

    def test_what_comes_before_its_message_does_not_wait(self, store: Store, attach: Attach) -> None:
        """A key is held from the transaction's first message of it on."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "l=open", txn=txn)
        send(store, "k=1")
        send(store, "k=open", txn=txn)
        send(store, "k=2")
        assert receive(consumer) == "1"

    def test_two_transactions_of_one_key(self, store: Store, attach: Attach) -> None:
        """Each waits for the one before it, and what comes after waits for both, whichever ends first."""
        for first_to_end in (0, 1):
            one, two = txns = [store.begin(), store.begin()]
            consumer = attach(KEY_SHARED)
            send(store, "k=one", txn=one)
            send(store, "k=two", txn=two)
            send(store, "k=3")
            assert receive(consumer) == ""
            store.commit(txns[first_to_end])
            assert receive(consumer) == ("" if first_to_end else "one")
            assert classes(store)["blocked"] >= 1
            store.commit(txns[1 - first_to_end])
            assert receive(consumer) == ("one two 3" if first_to_end else "two 3")

    @pytest.mark.parametrize("window", [1, 2, 1000])
    def test_the_order_of_a_key_with_two_consumers(self, store: Store, attach: Attach, window: int) -> None:
        """What follows a commit goes to one of them, as long as it has not acknowledged what came before."""
        txn = store.begin()
        one, two = (attach(KEY_SHARED, receiver_queue_size=window) for _ in range(2))
        send(store, "k=a", "k=b", txn=txn)
        send(store, "k=1", "l=1")
        assert (receive(one), receive(two)) == ("1", "")
        store.commit(txn)
        (first,) = one.receive_batch(1, timeout=0)
        assert first.value == b"a"
        assert receive(two) == ""
        one.acknowledge(first)
        assert " ".join(receive(one) for _ in range(3)).strip() == "b 1"

    def test_a_transaction_of_one_key_larger_than_a_window(self, store: Store, attach: Attach) -> None:
        """Its own messages do not hold each other back once it has ended."""
        txn, consumer = store.begin(), attach(KEY_SHARED, receiver_queue_size=2)
        send(store, "k=a k=b k=c", "k=d", "k=e", txn=txn)
        send(store, "k=1")
        assert receive(consumer) == ""
        store.commit(txn)
        assert " ".join(receive(consumer) for _ in range(6)).strip() == "a b c d e 1"

    def test_what_others_passed_over_is_known(self, store: Store, path: str, attach: Attach) -> None:
        """A consumer of another process holds keys that it has never met."""
        txn, mine = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "l=1")
        with Store.open(path) as other:
            theirs = other.subscribe("t", "a")
            assert receive(mine) == "1"
            send(store, "k=open l=open", txn=txn)
            send(store, "m=1")
            assert receive(theirs) == "1"
            send(store, "k=2 l=2 m=2")
            assert receive(mine) == "2"
            assert classes(store)["blocked"] == 2

    def test_many_held_ones_hold_up_nobody(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are not met again before their transaction ends, so that their number has no bound."""
        monkeypatch.setattr("storage.subscription.dispatch.HELD_MESSAGES_MAX", 2)
        consumer = attach(KEY_SHARED)
        send(store, "k=a", "k=b", "k=c", "k=d", txn=store.begin())
        for _ in range(5):
            send(store, "k=1 k=2 k=3")
        send(store, "l=1")
        assert receive(consumer) == "1"
        assert classes(store)["blocked"] == 15

    def test_the_keys_of_what_has_ended_are_forgotten(self, store: Store, attach: Attach) -> None:
        """Whether it was awaited, or only met while it was open."""
        consumer = attach(KEY_SHARED)
        for number in range(3):
            txn = store.begin()
            send(store, f"k{number}=open", txn=txn)
            if number:
                send(store, f"k{number}=1")
            assert receive(consumer) == ""
            store.commit(txn)
            assert receive(consumer) == ("open 1" if number else "open")
        assert not consumer._held_keys.is_any

    def test_too_many_keys_to_remember_hold_all(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From there on every key waits, and comes when the transaction ends."""
        monkeypatch.setattr("storage.subscription.held_keys.KEYS_REMEMBERED_MAX", 2)
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "a=open", "b=open", "c=open", txn=txn)
        send(store, "z=1 none")
        assert receive(consumer) == "none"
        store.commit(txn)
        assert receive(consumer) == "open open open 1"

    def test_one_that_is_met_together_with_the_end(self, store: Store, attach: Attach) -> None:
        """What comes behind an awaited transaction and before its marker waits, and follows at once."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "l=1")
        assert receive(consumer) == "1"
        send(store, "k=2")
        store.commit(txn)
        assert receive(consumer) == "open 2"
        assert store.verify(full=True) == []

    def test_one_entry_that_waits_for_two_transactions(self, store: Store, attach: Attach) -> None:
        """Its messages come each with its own, also where both have ended when somebody asks."""
        one, two, consumer = store.begin(), store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=one)
        send(store, "l=open", txn=two)
        send(store, "k=1 l=2 m=3")
        assert receive(consumer) == "3"
        store.commit(one)
        store.commit(two)
        came = " ".join(receive(consumer, acknowledge=False) for _ in range(3)).split()
        assert sorted(came) == ["1", "2", "open", "open"]
        assert store.verify(full=True) == []

    def test_without_an_order_to_keep_nothing_waits(self, store: Store, attach: Attach) -> None:
        """Shared has no keys."""
        consumer = attach(SHARED)
        send(store, "k=open", txn=store.begin())
        send(store, "k=1")
        assert receive(consumer) == "1"


class TestAcknowledging:
    """What the subscription cannot be handed yet cannot be acknowledged."""

    @SKIPPING
    @pytest.mark.parametrize("in_txn", [False, True])
    def test_not_while_its_transaction_is_open(
        self, store: Store, attach: Attach, type_: SubscriptionType, in_txn: bool
    ) -> None:
        """Neither plainly nor in a transaction; and what is behind it can be."""
        consumer, txn = attach(type_), store.begin()
        send(store, "open", txn=store.begin())
        send(store, "1")
        with pytest.raises(NotDeliverable, match="before its transaction ends"):
            consumer.acknowledge(MessageId(1, 0), txn=txn if in_txn else None)
        consumer.acknowledge(MessageId(1, 1), txn=txn if in_txn else None)
        assert receive(consumer) == ""

    def test_not_while_its_key_is_held(self, store: Store, attach: Attach) -> None:
        """It names the transaction; other messages of the entry may be acknowledged."""
        consumer, txn = attach(KEY_SHARED), store.begin()
        send(store, "k=open", txn=txn)
        send(store, "k=1 l=1")
        assert receive(consumer) == "1"
        with pytest.raises(NotDeliverable, match=f"{txn} has an earlier message of its key"):
            consumer.acknowledge(MessageId(1, 1, 0))
        consumer.acknowledge(MessageId(1, 1, 1))

    def test_never_when_it_was_aborted(self, store: Store, attach: Attach) -> None:
        """Also before dispatch has passed it."""
        consumer, txn = attach(), store.begin()
        send(store, "open", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        store.abort(txn)
        with pytest.raises(NotDeliverable, match="aborted"):
            consumer.acknowledge(MessageId(1, 0))

    def test_in_a_transaction_that_is_aborted(self, store: Store, attach: Attach) -> None:
        """What was pending comes again, while another transaction stays open before it (invariant 7)."""
        consumer, txn = attach(KEY_SHARED), store.begin()
        send(store, "k=open", txn=store.begin())
        send(store, "l=1", "l=2")
        consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
        assert receive(consumer) == ""
        store.abort(txn)
        assert receive(consumer) == "1 2"


class TestModes:
    """On-open is part of the isolation level."""

    @pytest.mark.parametrize("type_", [EXCLUSIVE, FAILOVER])
    def test_not_where_the_order_of_the_log_is_kept(self, store: Store, type_: SubscriptionType) -> None:
        """Neither at creation nor by a change, and the error says what to do; nothing is created."""
        with pytest.raises(InvalidValue, match="Shared and Key_Shared"):
            store.subscribe("t", "a", subscription_type=type_, on_open="skip")
        with pytest.raises(InvalidValue, match="Shared and Key_Shared"):
            store.admin.create_subscription("t", "a", subscription_type=type_, on_open="skip")
        assert store.topic_stats("t")["subscriptions"] == {}
        store.admin.create_subscription("t", "a", subscription_type=SHARED, on_open="skip")
        with pytest.raises(InvalidValue, match=type_.value) as caught:
            store.subscribe("t", "a", subscription_type=type_)
        assert "on-open block" in (caught.value.hint or "")
        store.subscribe("t", "a", subscription_type=type_, on_open="block").close()
        with pytest.raises(InvalidValue):
            store.admin.update_subscription("t", "a", on_open="skip")

    def test_not_where_nothing_waits(self, store: Store) -> None:
        """READ_UNCOMMITTED is handed what is open."""
        with pytest.raises(InvalidValue, match="READ_COMMITTED"):
            store.subscribe(
                "t", "a", subscription_type=SHARED, subscription_isolation_level=RU, on_open="skip"
            )
        store.admin.create_subscription("t", "a", subscription_type=SHARED, on_open="skip")
        with pytest.raises(InvalidValue, match="on-open skip belongs to READ_COMMITTED"):
            store.admin.update_subscription("t", "a", subscription_isolation_level=RU)
        store.admin.update_subscription("t", "a", subscription_isolation_level=RU, on_open="block")

    def test_what_is_not_named_is_the_subscription_s(self, store: Store, path: str, attach: Attach) -> None:
        """Durable, and seen with nobody attached; block is the default at creation."""
        attach().close()
        with Store.open(path) as other:
            assert other.subscribe("t", "a").on_open is SKIP
            assert other.subscription_stats("t", "a")["onOpen"] == "skip"
        assert store.subscribe("t", "b").on_open is BLOCK

    def test_no_other_while_somebody_is_attached(self, attach: Attach) -> None:
        """Naming both, and who is there; asking for the same is joining."""
        attach(consumer_name="first")
        attach()
        with pytest.raises(SubscriptionBusy, match=r"on-open skip, not block.*first"):
            attach(on_open="block")

    def test_no_other_word(self, attach: Attach) -> None:
        """The error names those there are."""
        with pytest.raises(InvalidValue, match="hop"):
            attach(on_open="hop")

    @SKIPPING
    def test_from_skip_to_block(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        """What was passed over comes in its place; what was acknowledged beyond it stays so, and nothing twice."""
        txn = store.begin()
        send(store, "k=open", txn=txn)
        send(store, "k=1", "l=2", "3")
        with attach(type_) as consumer:
            seen = receive(consumer)
        with attach(type_, on_open="block") as consumer:
            send(store, "4")
            assert receive(consumer) == ""
            store.commit(txn)
            rest = receive(consumer)
        assert (seen, rest) == {SHARED: ("1 2 3", "open 4"), KEY_SHARED: ("2 3", "open 1 4")}[type_]
        assert store.verify(full=True) == []

    @SKIPPING
    def test_from_block_to_skip(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        """What was blocked comes at once, and what is open when it is committed."""
        txn = store.begin()
        send(store, "0")
        send(store, "k=open", txn=txn)
        send(store, "l=1", "2")
        with attach(type_, on_open=None) as consumer:
            assert receive(consumer) == "0"
        result = store.admin.update_subscription("t", "a", on_open="skip", reason="no need to wait")
        assert result["changes"] == ["onOpen block -> skip"]
        with attach(None, on_open=None) as consumer:
            assert receive(consumer) == "1 2"
            store.commit(txn)
            assert receive(consumer) == "open"
        assert store.verify(full=True) == []

    def test_a_dry_run_changes_nothing(self, store: Store, attach: Attach) -> None:
        """And says what it would."""
        attach().close()
        result = store.admin.update_subscription("t", "a", on_open="block", dry_run=True)
        assert (result["changes"], result["onOpen"]) == (["onOpen skip -> block"], "block")
        assert store.subscription_stats("t", "a")["onOpen"] == "skip"

    def test_from_shared_to_key_shared_and_back(self, store: Store, attach: Attach) -> None:
        """The order of keys is kept from the change on, also for what was given back before it."""
        txn = store.begin()
        send(store, "k=open", txn=txn)
        send(store, "k=1", "k=2", "l=3")
        with attach(SHARED) as consumer:
            first, *_ = consumer.receive_batch(99, timeout=0)
            assert first.value == b"1"
        with attach(KEY_SHARED) as consumer:
            assert receive(consumer) == "3"
            store.commit(txn)
            assert receive(consumer) + " " + receive(consumer) == "open 1 2"
        assert store.verify(full=True) == []

    def test_from_read_uncommitted(self, store: Store, attach: Attach) -> None:
        """What was acknowledged while uncommitted stays acknowledged, and is counted so."""
        txn = store.begin()
        send(store, "a", "b", txn=txn)
        send(store, "1")
        with attach(subscription_isolation_level=RU, on_open="block") as consumer:
            assert receive(consumer, 1) == "a"
        with attach(subscription_isolation_level=RC) as consumer:
            assert receive(consumer) == "1"
            assert classes(store) == {"uncommitted": 1, "acknowledgedAhead": 1}
            store.commit(txn)
            assert receive(consumer) == "b"

    def test_a_seek_forgets_what_was_passed_over(self, store: Store, attach: Attach) -> None:
        """All from the new place on comes, and the transaction's when it ends."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1", "l=2")
        assert receive(consumer) == "2"
        store.admin.seek("t", "a", Position(1, 1))
        assert receive(consumer) == "1 2"
        store.admin.seek("t", "a", EARLIEST)
        assert receive(consumer) == "2"
        store.commit(txn)
        assert receive(consumer) == "open 1"
        assert store.verify(full=True) == []

    def test_a_deleted_subscription_leaves_nothing(self, store: Store, attach: Attach) -> None:
        """Neither what it awaited nor what it held."""
        consumer = attach(KEY_SHARED)
        send(store, "k=open", txn=store.begin())
        send(store, "k=1")
        assert receive(consumer) == ""
        consumer.unsubscribe()
        with store.connection.view() as view:
            assert (view.count(AWAITED), view.count(HELD)) == (0, 0)


class TestVisibleSet:
    """Skipping, looking and counting go by what the subscription may be handed."""

    def test_skipping(self, store: Store, attach: Attach) -> None:
        """Leaves alone what is undecided or waits for its key; it comes afterwards."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1 l=1", "m=2", "n=3")
        assert store.admin.skip("t", "a", 2)["skipped"] == 2
        assert store.admin.clear_backlog("t", "a")["skipped"] == 1
        assert store.admin.clear_backlog("t", "a")["skipped"] == 0
        assert receive(consumer) == ""
        store.commit(txn)
        assert receive(consumer) == "open 1"

    def test_skipping_past_the_end_of_a_transaction(self, store: Store, attach: Attach) -> None:
        """What it passed over before is not lost with the marker."""
        txn, consumer = store.begin(), attach()
        send(store, "open1", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        send(store, "open2", txn=txn)
        store.commit(txn)
        assert store.admin.skip("t", "a", 1)["skipped"] == 1
        send(store, "2")
        assert receive(consumer) == "open2 2"
        assert store.verify(full=True) == []

    def test_skipping_past_a_transaction_that_waits_for_a_key(self, store: Store, attach: Attach) -> None:
        """It has ended, but another one holds its key: what is behind it may go, it itself stays and comes."""
        one, two, consumer = store.begin(), store.begin(), attach(KEY_SHARED)
        send(store, "k=one", txn=one)
        send(store, "k=two", txn=two)
        send(store, "l=1")
        assert receive(consumer) == "1"
        store.commit(two)
        send(store, "m=2")
        assert store.admin.clear_backlog("t", "a")["skipped"] == 1
        assert receive(consumer) == ""
        store.commit(one)
        assert receive(consumer) == "one two"
        assert store.verify(full=True) == []

    @pytest.mark.parametrize(("end", "skipped"), [("commit", 2), ("abort", 1)])
    def test_skipping_a_message_held_behind_an_ended_transaction(
        self, store: Store, attach: Attach, end: str, skipped: int
    ) -> None:
        """Dispatch has not come to the marker: the record of the held message goes with the marker."""
        txn, consumer = store.begin(), attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=held", "free")
        assert receive(consumer) == "free"
        getattr(store, end)(txn)
        assert store.admin.skip("t", "a", 2)["skipped"] == skipped
        assert store.verify(full=True) == []
        send(store, "k=next")
        assert receive(consumer) == "next"
        assert store.verify(full=True) == []

    @SKIPPING
    def test_skipping_an_aborted_message_that_was_passed_over(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Dispatch has not come to the marker: the message counts as acknowledged, and not as aborted too."""
        other, txn, consumer = store.begin(), store.begin(), attach(type_)
        send(store, "1")
        send(store, "open", txn=other)
        send(store, "aborted", txn=txn)
        send(store, "2")
        assert receive(consumer) == "1 2"
        store.abort(txn)
        assert classes(store) == {"uncommitted": 1, "abortedAhead": 1, "acknowledgedAhead": 1}
        assert store.admin.clear_backlog("t", "a")["skipped"] == 0
        assert classes(store) == {"uncommitted": 1, "acknowledgedAhead": 2}
        assert store.verify(full=True) == []
        store.commit(other)
        assert receive(consumer) == "open"
        assert classes(store) == {}
        assert store.verify(full=True) == []

    def test_the_last_message(self, store: Store, attach: Attach) -> None:
        """The largest that can be handed out: neither undecided nor held by its key."""
        txn = store.begin()
        attach(KEY_SHARED)
        send(store, "k=open", txn=txn)
        assert store.last_message_id("t", subscription="a") is None
        send(store, "l=1 k=1")
        send(store, "k=open2", "k=open3", txn=txn)
        assert store.last_message_id("t", subscription="a") == MessageId(1, 1, 0)
        assert store.last_message_id("t") is None
        store.commit(txn)
        assert store.last_message_id("t", subscription="a") == MessageId(1, 3)

    def test_peeking(self, store: Store, attach: Attach) -> None:
        """The next messages, without those that wait."""
        attach(KEY_SHARED)
        send(store, "k=open", txn=store.begin())
        send(store, "k=1 l=1", "2")
        assert [message.value for message in store.peek("t", "a", 9)] == [b"1", b"2"]

    def test_who_holds_how_much(self, store: Store, attach: Attach) -> None:
        """By transaction, its own messages and those behind it; the chain counts the same."""
        one, two, consumer = store.begin(), store.begin(), attach(KEY_SHARED)
        send(store, "k=open open", txn=one)
        send(store, "l=open", txn=two)
        send(store, "k=1 k=2 l=1 m=1")
        assert receive(consumer) == "1"
        held = store.subscription_stats("t", "a")["heldBy"]
        assert held == [
            {"txnId": str(one), "uncommitted": 2, "blocked": 2},
            {"txnId": str(two), "uncommitted": 1, "blocked": 1},
        ]
        assert [row["unblocks"] for row in store.blocked("t")] == [{"a": 2}, {"a": 1}]
        blocked = consumer.blocked_by()
        assert blocked is not None
        assert (blocked.messages, blocked.uncommitted, blocked.txn_id) == (3, 3, one)

    def test_aborting_frees_what_the_dry_run_says(self, store: Store, attach: Attach) -> None:
        """Of a transaction that is not the first of its topic too."""
        consumer = attach(KEY_SHARED)
        send(store, "k=open", txn=store.begin())
        two = store.begin()
        send(store, "l=open", txn=two)
        send(store, "k=1 l=1 l=2")
        assert receive(consumer) == ""
        said, done = store.abort(two, dry_run=True), store.abort(two)
        assert said["effects"] == done["effects"]
        (effect,) = done["effects"]
        assert effect["unblocks"]["a"] == {
            "visibleBefore": 0, "visibleAfter": 2, "blockedBefore": 3, "blockedAfter": 1
        }  # fmt: skip
        assert receive(consumer) == "1 2"


def test_a_transaction_over_tables_is_handed_only_what_was_there(store: Store, attach: Attach) -> None:
    """What was committed after it began comes to the next one, though it was sent before."""
    late, consumer = store.begin(), attach()
    send(store, "late", txn=late)
    send(store, "1")
    store.create_table("balances")
    with store.transaction() as txn:
        store.table("balances").put(b"B", b"1", txn=txn)
        store.commit(late)
        assert [m.value for m in consumer.receive_batch(9, timeout=0, txn=txn)] == []
        assert consumer.next_is_newer_than(txn)
    assert receive(consumer) == "late 1"
