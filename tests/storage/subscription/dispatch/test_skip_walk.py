"""`--on-open skip`: an open transaction holds back its own messages, and on Key_Shared later ones of their keys."""

from __future__ import annotations

import threading

import pytest

from storage import EARLIEST, IsolationLevel, MessageId, OnOpen, Position, Store, SubscriptionType
from storage.disk.schema import AWAITED, HELD
from storage.errors import InvalidValue, NotDeliverable, SubscriptionBusy
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.skip_walk_steps import (
    EXCLUSIVE,
    FAILOVER,
    KEY_SHARED,
    SHARED,
    SKIPPING,
    Attach,
    classes,
    receive,
    send,
)

RC, RU = IsolationLevel


BLOCK, SKIP = OnOpen


class TestShared:
    """Each open transaction holds back its own messages alone."""

    @SKIPPING
    def test_what_is_committed_comes_at_once(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType
    ) -> None:
        """Behind an open transaction, without waiting for it and without seeing it (invariant 2)."""
        send(store, "1")
        send(store, "open", txn=store.begin_transaction())
        send(store, "2 3", "4")
        assert receive(attach_skipping(type_)) == "1 2 3 4"

    @SKIPPING
    def test_what_was_held_follows_the_commit(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType
    ) -> None:
        """All of it, once, and markDeletePosition waits below it until then."""
        txn, consumer = store.begin_transaction(), attach_skipping(type_)
        send(store, "a b", "c", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:-1"
        store.commit_transaction(txn)
        assert receive(consumer) == "a b c"
        assert receive(consumer) == ""
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:3"
        assert store.maintenance.verify_store(full=True) == []

    @SKIPPING
    def test_what_was_held_leaves_the_backlog_with_the_abort(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType
    ) -> None:
        """Nothing of it is ever handed out."""
        txn, consumer = store.begin_transaction(), attach_skipping(type_)
        send(store, "a b", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        store.admin.transactions.abort_transaction(txn)
        assert classes(store) == {"abortedAhead": 2, "acknowledgedAhead": 1}
        assert receive(consumer) == ""
        assert classes(store) == {}
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:2"

    def test_max_read_position_is_what_it_is(self, store: Store, attach_skipping: Attach) -> None:
        """Others, and readers, stop where they stop."""
        txn = store.begin_transaction()
        send(store, "open", txn=txn)
        send(store, "1")
        assert receive(attach_skipping()) == "1"
        assert row_json(store.reports.topic_stats("t"))["maxReadPosition"] == "1:-1"
        assert list(store.reader("t")) == []

    def test_parts_that_are_in_flight_come_once(self, store: Store, attach_skipping: Attach) -> None:
        """A consumer that does not acknowledge is handed the rest, and nothing twice."""
        txn, consumer = store.begin_transaction(), attach_skipping(window=2)
        send(store, "a b c", "d", txn=txn)
        send(store, "1")
        assert receive(consumer, acknowledge=False) == "1"
        store.commit_transaction(txn)
        assert [receive(consumer, acknowledge=False) for _ in range(3)] == ["a b", "c d", ""]

    def test_two_consumers_share_what_follows(self, store: Store, attach_skipping: Attach) -> None:
        """What was held goes to either of them, once."""
        txn, one, two = (
            store.begin_transaction(),
            attach_skipping(window=1),
            attach_skipping(window=1),
        )
        send(store, "a", "b", txn=txn)
        assert (receive(one), receive(two)) == ("", "")
        store.commit_transaction(txn)
        assert (receive(one), receive(two), receive(one)) == ("a", "b", "")

    def test_what_died_with_its_consumer_comes_again(
        self, store: Store, path: str, attach_skipping: Attach
    ) -> None:
        """In another process too, with what it was passed over for."""
        txn, other = store.begin_transaction(), Store.open(path)
        send(store, "a", txn=txn)
        send(store, "1")
        with attach_skipping():
            lost = other.subscribe("t", "a")
        assert receive(lost, acknowledge=False) == "1"
        other.close()
        store.commit_transaction(txn)
        assert receive(attach_skipping()) == "a 1"

    def test_one_given_back_comes_before_what_is_new(
        self, store: Store, attach_skipping: Attach, clock: ManualClock
    ) -> None:
        """A delay is kept, while a transaction stays open before it."""
        consumer = attach_skipping()
        send(store, "open", txn=store.begin_transaction())
        send(store, "1", "2")
        first, second = consumer.receive_batch(2, timeout=0)
        consumer.negative_acknowledge(first, delay=30)
        consumer.acknowledge(second)
        assert receive(consumer) == ""
        clock.advance(30)
        send(store, "3")
        assert receive(consumer) == "1 3"

    def test_a_letter_goes_to_the_dead_letter_topic(self, store: Store, attach_skipping: Attach) -> None:
        """Of a transaction that has ended, like every other."""
        txn = store.begin_transaction()
        consumer = attach_skipping(max_redeliver_count=0, dead_letter_topic="grave")
        send(store, "a", txn=txn)
        assert receive(consumer) == ""
        store.commit_transaction(txn)
        consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert receive(consumer) == ""
        assert [message.value for message in store.reader("grave")] == [b"a"]

    def test_a_waiting_consumer_wakes_when_a_transaction_ends(self, store: Store, path: str) -> None:
        """Whoever commits it."""
        txn, found = store.begin_transaction(), list[str]()
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
        store.commit_transaction(txn)
        waiting.join(30)
        assert found == ["held"]


class TestKeys:
    """Key_Shared: later messages of the keys that an open transaction carries wait for it (invariant 21)."""

    def test_only_its_keys_wait(self, store: Store, attach_skipping: Attach) -> None:
        """Per message, not per entry; no key holds nothing, and an empty one is a key."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=0 l=0", "m=0")
        send(store, "k=open =open open", txn=txn)
        send(store, "k=1 l=1 none =1", "l=2 k=2", "m=1")
        assert receive(consumer) == "0 0 0 1 none 2 1"
        assert classes(store) == {"uncommitted": 3, "blocked": 3, "acknowledgedAhead": 4}
        store.commit_transaction(txn)
        assert receive(consumer) == "open open open 1 1 2"
        assert store.maintenance.verify_store(full=True) == []

    def test_an_abort_frees_what_waited(self, store: Store, attach_skipping: Attach) -> None:
        """Without the aborted messages."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1", "k=2")
        assert receive(consumer) == ""
        store.admin.transactions.abort_transaction(txn)
        assert receive(consumer) == "1 2"

    def test_what_comes_before_its_message_does_not_wait(self, store: Store, attach_skipping: Attach) -> None:
        """A key is held from the transaction's first message of it on."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "l=open", txn=txn)
        send(store, "k=1")
        send(store, "k=open", txn=txn)
        send(store, "k=2")
        assert receive(consumer) == "1"

    def test_two_transactions_of_one_key(self, store: Store, attach_skipping: Attach) -> None:
        """Each waits for the one before it, and what comes after waits for both, whichever ends first."""
        for first_to_end in (0, 1):
            one, two = txns = [store.begin_transaction(), store.begin_transaction()]
            consumer = attach_skipping(KEY_SHARED)
            send(store, "k=one", txn=one)
            send(store, "k=two", txn=two)
            send(store, "k=3")
            assert receive(consumer) == ""
            store.commit_transaction(txns[first_to_end])
            assert receive(consumer) == ("" if first_to_end else "one")
            assert classes(store)["blocked"] >= 1
            store.commit_transaction(txns[1 - first_to_end])
            assert receive(consumer) == ("one two 3" if first_to_end else "two 3")
            consumer.close()

    @pytest.mark.parametrize("window", [1, 2, 1000])
    def test_the_order_of_a_key_with_two_consumers(
        self, store: Store, attach_skipping: Attach, window: int
    ) -> None:
        """What follows a commit goes to one of them, as long as it has not acknowledged what came before."""
        txn = store.begin_transaction()
        one, two = (attach_skipping(KEY_SHARED, window=window) for _ in range(2))
        send(store, "k=a", "k=b", txn=txn)
        send(store, "k=1", "l=1")
        assert (receive(one), receive(two)) == ("1", "")
        store.commit_transaction(txn)
        (first,) = one.receive_batch(1, timeout=0)
        assert first.value == b"a"
        assert receive(two) == ""
        one.acknowledge(first)
        assert " ".join(receive(one) for _ in range(3)).strip() == "b 1"

    def test_a_transaction_of_one_key_larger_than_a_window(
        self, store: Store, attach_skipping: Attach
    ) -> None:
        """Its own messages do not hold each other back once it has ended."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED, window=2)
        send(store, "k=a k=b k=c", "k=d", "k=e", txn=txn)
        send(store, "k=1")
        assert receive(consumer) == ""
        store.commit_transaction(txn)
        assert " ".join(receive(consumer) for _ in range(6)).strip() == "a b c d e 1"

    def test_too_many_keys_to_remember_hold_all(
        self, store: Store, attach_skipping: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From there on every key waits, and comes when the transaction ends."""
        monkeypatch.setattr("storage.subscription.dispatch.blocked_keys.KEYS_REMEMBERED_MAX", 2)
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "a=open", "b=open", "c=open", txn=txn)
        send(store, "z=1 none")
        assert receive(consumer) == "none"
        store.commit_transaction(txn)
        assert receive(consumer) == "open open open 1"

    def test_one_that_is_met_together_with_the_end(self, store: Store, attach_skipping: Attach) -> None:
        """What comes behind an awaited transaction and before its marker waits, and follows at once."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "l=1")
        assert receive(consumer) == "1"
        send(store, "k=2")
        store.commit_transaction(txn)
        assert receive(consumer) == "open 2"
        assert store.maintenance.verify_store(full=True) == []

    def test_one_entry_that_waits_for_two_transactions(self, store: Store, attach_skipping: Attach) -> None:
        """Its messages come each with its own, also where both have ended when somebody asks."""
        one, two, consumer = store.begin_transaction(), store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=one)
        send(store, "l=open", txn=two)
        send(store, "k=1 l=2 m=3")
        assert receive(consumer) == "3"
        store.commit_transaction(one)
        store.commit_transaction(two)
        came = " ".join(receive(consumer, acknowledge=False) for _ in range(3)).split()
        assert sorted(came) == ["1", "2", "open", "open"]
        assert store.maintenance.verify_store(full=True) == []

    def test_without_an_order_to_keep_nothing_waits(self, store: Store, attach_skipping: Attach) -> None:
        """Shared has no keys."""
        consumer = attach_skipping(SHARED)
        send(store, "k=open", txn=store.begin_transaction())
        send(store, "k=1")
        assert receive(consumer) == "1"


class TestAcknowledging:
    """What the subscription cannot be handed yet cannot be acknowledged."""

    @SKIPPING
    @pytest.mark.parametrize("in_txn", [False, True])
    def test_not_while_its_transaction_is_open(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType, in_txn: bool
    ) -> None:
        """Neither plainly nor in a transaction; and what is behind it can be."""
        consumer, txn = attach_skipping(type_), store.begin_transaction()
        send(store, "open", txn=store.begin_transaction())
        send(store, "1")
        with pytest.raises(NotDeliverable, match="before its transaction ends"):
            consumer.acknowledge(MessageId(1, 0), txn=txn if in_txn else None)
        consumer.acknowledge(MessageId(1, 1), txn=txn if in_txn else None)
        assert receive(consumer) == ""

    def test_not_while_its_key_is_held(self, store: Store, attach_skipping: Attach) -> None:
        """It names the transaction; other messages of the entry may be acknowledged."""
        consumer, txn = attach_skipping(KEY_SHARED), store.begin_transaction()
        send(store, "k=open", txn=txn)
        send(store, "k=1 l=1")
        assert receive(consumer) == "1"
        with pytest.raises(NotDeliverable, match=f"{txn} has an earlier message of its key"):
            consumer.acknowledge(MessageId(1, 1, 0))
        consumer.acknowledge(MessageId(1, 1, 1))

    @pytest.mark.parametrize("in_txn", [False, True])
    def test_not_by_an_operator_before_a_consumer_has_looked(
        self, store: Store, attach_skipping: Attach, in_txn: bool
    ) -> None:
        """A message is held behind its key by the log itself, whether or not dispatch has come to the message."""
        attach_skipping(KEY_SHARED).close()
        txn, own = store.begin_transaction(), store.begin_transaction()
        send(store, "k=open", txn=txn)
        send(store, "k=1 l=1", "m=1")
        acknowledge = store.admin.acknowledgements.acknowledge_messages
        for held in ([MessageId(1, 1)], [MessageId(1, 2), MessageId(1, 1, 0)]):
            with pytest.raises(NotDeliverable, match=f"{txn} has an earlier message of its key"):
                acknowledge("t", "a", held, txn=own if in_txn else None)
        acknowledge("t", "a", [MessageId(1, 1, 1), MessageId(1, 2)], txn=own if in_txn else None)
        store.commit_transaction(txn)
        assert receive(attach_skipping(KEY_SHARED)) == "open 1"

    def test_never_when_it_was_aborted(self, store: Store, attach_skipping: Attach) -> None:
        """Also before dispatch has passed it."""
        consumer, txn = attach_skipping(), store.begin_transaction()
        send(store, "open", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        store.admin.transactions.abort_transaction(txn)
        with pytest.raises(NotDeliverable, match="aborted"):
            consumer.acknowledge(MessageId(1, 0))

    def test_in_a_transaction_that_is_aborted(self, store: Store, attach_skipping: Attach) -> None:
        """What was pending comes again, while another transaction stays open before it (invariant 7)."""
        consumer, txn = attach_skipping(KEY_SHARED), store.begin_transaction()
        send(store, "k=open", txn=store.begin_transaction())
        send(store, "l=1", "l=2")
        consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
        assert receive(consumer) == ""
        store.admin.transactions.abort_transaction(txn)
        assert receive(consumer) == "1 2"


class TestModes:
    """On-open is part of the isolation level."""

    @pytest.mark.parametrize("type_", [EXCLUSIVE, FAILOVER])
    def test_not_where_the_order_of_the_log_is_kept(self, store: Store, type_: SubscriptionType) -> None:
        """Neither at creation nor by a change, and the error says what to do; nothing is created."""
        with pytest.raises(InvalidValue, match="Shared and Key_Shared"):
            store.subscribe("t", "a", subscription_type=type_, on_open="skip")
        with pytest.raises(InvalidValue, match="Shared and Key_Shared"):
            store.admin.subscriptions.create_subscription("t", "a", subscription_type=type_, on_open="skip")
        assert row_json(store.reports.topic_stats("t"))["subscriptions"] == {}
        store.admin.subscriptions.create_subscription("t", "a", subscription_type=SHARED, on_open="skip")
        with pytest.raises(InvalidValue, match=type_.value) as caught:
            store.subscribe("t", "a", subscription_type=type_)
        assert "on-open block" in (caught.value.hint or "")
        store.subscribe("t", "a", subscription_type=type_, on_open="block").close()
        with pytest.raises(InvalidValue):
            store.admin.subscriptions.update_subscription("t", "a", on_open="skip")

    def test_not_where_nothing_waits(self, store: Store) -> None:
        """READ_UNCOMMITTED is handed what is open."""
        with pytest.raises(InvalidValue, match="READ_COMMITTED"):
            store.subscribe(
                "t", "a", subscription_type=SHARED, subscription_isolation_level=RU, on_open="skip"
            )
        store.admin.subscriptions.create_subscription("t", "a", subscription_type=SHARED, on_open="skip")
        with pytest.raises(InvalidValue, match="on-open skip belongs to READ_COMMITTED"):
            store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RU)
        store.admin.subscriptions.update_subscription(
            "t", "a", subscription_isolation_level=RU, on_open="block"
        )

    def test_what_is_not_named_is_the_subscription_s(
        self, store: Store, path: str, attach_skipping: Attach
    ) -> None:
        """Durable, and seen with nobody attached; block is the default at creation."""
        attach_skipping().close()
        with Store.open(path) as other:
            assert other.subscribe("t", "a").on_open is SKIP
            assert row_json(other.reports.subscription_stats("t", "a"))["onOpen"] == "skip"
        assert store.subscribe("t", "b").on_open is BLOCK

    def test_no_other_while_somebody_is_attached(self, attach_skipping: Attach) -> None:
        """Naming both, and who is there; asking for the same is joining."""
        attach_skipping(consumer_name="first")
        attach_skipping()
        with pytest.raises(SubscriptionBusy, match=r"on-open skip, not block.*first"):
            attach_skipping(on_open="block")

    def test_no_other_word(self, attach_skipping: Attach) -> None:
        """The error names those there are."""
        with pytest.raises(InvalidValue, match="hop"):
            attach_skipping(on_open="hop")

    @SKIPPING
    def test_from_skip_to_block(self, store: Store, attach_skipping: Attach, type_: SubscriptionType) -> None:
        """What was passed over comes in its place; what was acknowledged beyond it stays so, and nothing twice."""
        txn = store.begin_transaction()
        send(store, "k=open", txn=txn)
        send(store, "k=1", "l=2", "3")
        with attach_skipping(type_) as consumer:
            seen = receive(consumer)
        with attach_skipping(type_, on_open="block") as consumer:
            send(store, "4")
            assert receive(consumer) == ""
            store.commit_transaction(txn)
            rest = receive(consumer)
        assert (seen, rest) == {SHARED: ("1 2 3", "open 4"), KEY_SHARED: ("2 3", "open 1 4")}[type_]
        assert store.maintenance.verify_store(full=True) == []

    @SKIPPING
    def test_from_block_to_skip(self, store: Store, attach_skipping: Attach, type_: SubscriptionType) -> None:
        """What was blocked comes at once, and what is open when it is committed."""
        txn = store.begin_transaction()
        send(store, "0")
        send(store, "k=open", txn=txn)
        send(store, "l=1", "2")
        with attach_skipping(type_, on_open=None) as consumer:
            assert receive(consumer) == "0"
        result = row_json(
            store.admin.subscriptions.update_subscription("t", "a", on_open="skip", reason="no need to wait")
        )
        assert result["changes"] == ["onOpen block -> skip"]
        with attach_skipping(None, on_open=None) as consumer:
            assert receive(consumer) == "1 2"
            store.commit_transaction(txn)
            assert receive(consumer) == "open"
        assert store.maintenance.verify_store(full=True) == []

    def test_a_dry_run_changes_nothing(self, store: Store, attach_skipping: Attach) -> None:
        """And says what it would."""
        attach_skipping().close()
        result = row_json(
            store.admin.subscriptions.update_subscription("t", "a", on_open="block", dry_run=True)
        )
        assert (result["changes"], result["onOpen"]) == (["onOpen skip -> block"], "block")
        assert row_json(store.reports.subscription_stats("t", "a"))["onOpen"] == "skip"

    def test_from_shared_to_key_shared_and_back(self, store: Store, attach_skipping: Attach) -> None:
        """The order of keys is kept from the change on, also for what was given back before it."""
        txn = store.begin_transaction()
        send(store, "k=open", txn=txn)
        send(store, "k=1", "k=2", "l=3")
        with attach_skipping(SHARED) as consumer:
            first, *_ = consumer.receive_batch(99, timeout=0)
            assert first.value == b"1"
        with attach_skipping(KEY_SHARED) as consumer:
            assert receive(consumer) == "3"
            store.commit_transaction(txn)
            assert receive(consumer) + " " + receive(consumer) == "open 1 2"
        assert store.maintenance.verify_store(full=True) == []

    def test_from_read_uncommitted(self, store: Store, attach_skipping: Attach) -> None:
        """What was acknowledged while uncommitted stays acknowledged, and is counted so."""
        txn = store.begin_transaction()
        send(store, "a", "b", txn=txn)
        send(store, "1")
        with attach_skipping(subscription_isolation_level=RU, on_open="block") as consumer:
            assert receive(consumer, 1) == "a"
        with attach_skipping(subscription_isolation_level=RC) as consumer:
            assert receive(consumer) == "1"
            assert classes(store) == {"uncommitted": 1, "acknowledgedAhead": 1}
            store.commit_transaction(txn)
            assert receive(consumer) == "b"

    def test_a_seek_forgets_what_was_passed_over(self, store: Store, attach_skipping: Attach) -> None:
        """All from the new place on comes, and the transaction's when it ends."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1", "l=2")
        assert receive(consumer) == "2"
        store.admin.subscriptions.seek_subscription("t", "a", Position(1, 1))
        assert receive(consumer) == "1 2"
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert receive(consumer) == "2"
        store.commit_transaction(txn)
        assert receive(consumer) == "open 1"
        assert store.maintenance.verify_store(full=True) == []

    def test_a_deleted_subscription_leaves_nothing(self, store: Store, attach_skipping: Attach) -> None:
        """Neither what it awaited nor what it held."""
        consumer = attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=store.begin_transaction())
        send(store, "k=1")
        assert receive(consumer) == ""
        consumer.unsubscribe()
        with store.connection.view() as view:
            assert (view.count(AWAITED), view.count(HELD)) == (0, 0)
