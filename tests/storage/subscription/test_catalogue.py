"""Subscriptions and who is attached: creation, modes, start (semantics sections 4 and 5)."""

from __future__ import annotations

import pytest

from storage import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    MessageId,
    Position,
    Store,
    SubscriptionType,
)
from storage.errors import (
    AlreadyExists,
    InvalidName,
    InvalidPosition,
    SubscriptionBusy,
    SubscriptionNotFound,
    TopicNotFound,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.subscription.attaching import attach, send, values

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
TYPES = list(SubscriptionType)


class TestCreation:
    """A subscription comes into being with its first consumer, or before."""

    def test_defaults_apply_at_creation(self, store: Store) -> None:
        """Exclusive and READ_COMMITTED unless named."""
        consumer = attach(store)
        assert consumer.subscription_type is EXCLUSIVE
        assert consumer.subscription_isolation_level is RC

    @pytest.mark.parametrize("type_", TYPES)
    @pytest.mark.parametrize("level", [RC, RU])
    def test_type_and_level_are_durable_with_no_consumer_attached(
        self, store: Store, path: str, clock: ManualClock, type_: SubscriptionType, level: IsolationLevel
    ) -> None:
        """They are shown after the store was closed, and are what an unnamed mode means from then on."""
        attach(store, type_, level).close()
        store.close()
        with Store.open(path, clock=clock) as again:
            stats = row_json(again.reports.topic_stats("t"))["subscriptions"]["a"]
            assert (stats["type"], stats["subscriptionIsolationLevel"]) == (type_.value, level.value)
            assert stats["consumers"] == []
            consumer = attach(again)
            assert (consumer.subscription_type, consumer.subscription_isolation_level) == (type_, level)

    def test_it_may_be_created_before_anybody_comes(self, store: Store) -> None:
        """With everything that a consumer could name; a second time is refused."""
        create = store.admin.subscriptions.create_subscription
        create("t", "a", subscription_type=SHARED, subscription_isolation_level=RU, initial_position=EARLIEST)
        send(store, "x")
        assert values(attach(store)) == [b"x"]
        with pytest.raises(AlreadyExists):
            create("t", "a")

    @pytest.mark.parametrize("name", ["", "a b", "../a", "a/b", "ä", "x" * 129, "a\0"])
    def test_a_bad_name_is_refused(self, store: Store, name: str) -> None:
        """Of a subscription and of a consumer."""
        with pytest.raises(InvalidName):
            store.subscribe("t", name)
        with pytest.raises(InvalidName):
            attach(store, name=name)
        assert row_json(store.reports.list_subscriptions("t")) == []

    def test_there_must_be_the_topic(self, store: Store) -> None:
        """Subscribing creates no topic, and the error names near ones."""
        with pytest.raises(TopicNotFound) as caught:
            store.subscribe("tt", "a")
        assert "t" in (caught.value.hint or "")
        assert store.topics() == ["t"]

    def test_subscriptions_do_not_share_anything(self, store: Store) -> None:
        """Each has its own cursor over the same messages."""
        send(store, "x")
        for name in ("a", "b"):
            consumer = store.subscribe("t", name, initial_position=EARLIEST)
            consumer.acknowledge(consumer.receive(timeout=1))
        assert {
            row["subscription"]: row["msgBacklog"] for row in row_json(store.reports.list_subscriptions())
        } == {
            "a": 0,
            "b": 0,
        }


class TestStart:
    """A position or message id is the first one read."""

    @pytest.mark.parametrize(
        ("start", "expected"),
        [(EARLIEST, "0123456"), (Position(1, 0), "0123456"), (Position(1, 1), "3456"), (MessageId(1, 1), "3456"),
         (MessageId(1, 0, 0), "0123456"), (MessageId(1, 0, 2), "23456"), (MessageId(1, 0, 9), "3456"),
         (Position(1, 3), "56"), (MessageId(1, 3, 1), "6"), (Position(1, -1), "0123456"), (Position(0, 7), "0123456"),
         (LATEST, ""), (Position(1, 4), ""), (Position(1, 99), ""), (Position(9, 0), "")],
        ids=str,
    )  # fmt: skip
    def test_of_a_subscription_and_of_a_reader(self, store: Store, start: object, expected: str) -> None:
        """Both begin there, inside a batch too."""
        producer = store.create_producer("t")
        producer.send_batch([b"0", b"1", b"2"])
        producer.send(b"3")
        producer.send(b"4")
        producer.send_batch([b"5", b"6"])
        wanted = [value.encode() for value in expected]
        assert values(attach(store, start=start)) == wanted
        assert [m.value for m in store.reader("t", start=start)] == wanted  # type: ignore[arg-type]

    @pytest.mark.parametrize("start", [LATEST, Position(1, 99), Position(9, 0)], ids=str)
    def test_at_or_beyond_the_end_misses_nothing_that_follows(self, store: Store, start: object) -> None:
        """Whatever is sent later is in the backlog."""
        send(store, "old")
        consumer = attach(store, start=start)
        send(store, "new")
        assert values(consumer) == [b"new"]

    @pytest.mark.parametrize(
        ("text", "expected"), [("earliest", "012"), ("1:1", "12"), ("1:2", "2"), ("latest", "")]
    )
    def test_a_position_may_be_written_out(self, store: Store, text: str, expected: str) -> None:
        """The texts of the command line mean the same here."""
        send(store, *"012")
        wanted = [value.encode() for value in expected]
        assert values(attach(store, start=text)) == wanted
        assert [m.value for m in store.reader("t", start=text)] == wanted  # type: ignore[arg-type]

    @pytest.mark.parametrize("start", [Position(1 << 70, 0), Position(-1, 0), "soon", "1:2:3:4", None, 7])
    def test_what_is_no_position_is_refused(self, store: Store, start: object) -> None:
        """By subscriptions, readers and seek alike."""
        store.admin.subscriptions.create_subscription("t", "b")
        calls = [
            lambda: attach(store, start=start),
            lambda: store.reader("t", start=start),  # type: ignore[arg-type]
            lambda: row_json(store.admin.subscriptions.seek_subscription("t", "b", start)),  # type: ignore[arg-type]
        ]
        for call in calls:
            with pytest.raises(InvalidPosition):
                call()


class TestUnsubscribe:
    """Close, and delete the subscription."""

    def test_it_is_gone_with_its_cursor(self, store: Store) -> None:
        """The same name is another subscription, from its own start."""
        send(store, "x")
        with attach(store) as consumer:
            consumer.acknowledge(consumer.receive(timeout=1))
            consumer.unsubscribe()
        with pytest.raises(SubscriptionNotFound):
            store.reports.subscription_stats("t", "a")
        assert values(attach(store)) == [b"x"]

    def test_it_is_refused_while_others_are_attached(self, store: Store) -> None:
        """And the one that asked stays attached."""
        send(store, "x")
        one, _ = attach(store, SHARED), attach(store, name="other")
        with pytest.raises(SubscriptionBusy, match="other"):
            one.unsubscribe()
        assert values(one) == [b"x"]

    def test_a_consumer_of_a_deleted_subscription_is_told(self, store: Store) -> None:
        """It is handed nothing, acknowledges nothing, and may be closed."""
        send(store, "0", "1")
        consumer = attach(store)
        message = consumer.receive(timeout=1)
        store.admin.subscriptions.delete_subscription("t", "a", force=True)
        for call in (lambda: consumer.receive(timeout=0), lambda: consumer.acknowledge(message)):
            with pytest.raises(SubscriptionNotFound):
                call()
        attach(store)
        with pytest.raises(SubscriptionNotFound):
            consumer.acknowledge(message)
        consumer.close()
        assert row_json(store.reports.subscription_stats("t", "a"))["msgBacklog"] == 2
