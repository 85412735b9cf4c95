"""Subscriptions: `storage/admin/subscriptions.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import EARLIEST, LATEST, MessageId, Position, Store, SubscriptionType
from storage.errors import (
    ConsumerEvicted,
    ConsumerNotFound,
    SubscriptionBusy,
    SubscriptionNotFound,
)
from tests.row_json import row_json
from tests.storage.admin.administration_steps import RC, RU, attach, send, values

SHARED = SubscriptionType.SHARED


CALLS: dict[str, Callable[[Store, bool], dict[str, Any]]] = {
    "seek": lambda store, dry: row_json(
        store.admin.subscriptions.seek_subscription("t", "a", Position(1, 2), dry_run=dry)
    ),
    "skip": lambda store, dry: row_json(store.admin.subscriptions.skip_messages("t", "a", 2, dry_run=dry)),
    "clear": lambda store, dry: row_json(store.admin.subscriptions.clear_backlog("t", "a", dry_run=dry)),
    "acknowledge": lambda store, dry: row_json(
        store.admin.acknowledgements.acknowledge_messages("t", "a", [MessageId(1, 1)], dry_run=dry)
    ),
    "evict": lambda store, dry: row_json(store.admin.subscriptions.evict_consumers("t", "a", dry_run=dry)),
    "update": lambda store, dry: row_json(
        store.admin.subscriptions.update_subscription("t", "a", max_redeliver_count=1, dry_run=dry)
    ),
    "delete": lambda store, dry: row_json(
        store.admin.subscriptions.delete_subscription("t", "a", force=True, dry_run=dry)
    ),
    "delete topic": lambda store, dry: row_json(
        store.admin.topics.delete_topic("t", force=True, dry_run=dry)
    ),
}


class TestSeek:
    """The message named is the next one."""

    @pytest.mark.parametrize(
        ("start", "expected"),
        [(EARLIEST, "01234"), (LATEST, ""), (Position(1, 2), "234"), (MessageId(1, 3, 1), "4"), (Position(9, 9), "")],
        ids=str,
    )  # fmt: skip
    def test_back_and_forth(self, store: Store, start: Any, expected: str) -> None:
        """Back over what was acknowledged, forth over what was not, into a batch, beyond the end."""
        send(store, 3)
        store.create_producer("t").send_batch([b"3", b"4"])
        with attach(store) as consumer:
            consumer.acknowledge(consumer.receive_batch(2, timeout=0))
        store.admin.subscriptions.seek_subscription("t", "a", start)
        assert values(attach(store)) == [value.encode() for value in expected]

    def test_a_trimmed_message_leads_to_the_first_ledger(self, store: Store) -> None:
        """A message inside a batch too; each message from the first ledger on is delivered."""
        store.create_topic("short", ledger_entries_max=1)
        store.admin.topics.set_retention("short", time_ms=0)
        producer = store.create_producer("short")
        producer.send_batch([b"0", b"1"])
        producer.send_batch([b"2", b"3"])
        consumer = store.subscribe("short", "a", initial_position=EARLIEST)
        consumer.acknowledge(consumer.receive_batch(2, timeout=0))
        store.admin.topics.trim_topic("short")
        result = store.admin.subscriptions.seek_subscription("short", "a", MessageId(1, 0, 1))
        assert result.effects.change.mark_delete_position_after == Position(2, -1)
        assert values(consumer) == [b"2", b"3"]

    @pytest.mark.parametrize("beyond", [MessageId(1, 3, 1), MessageId(1, 4, 1), MessageId(2, 0, 1)], ids=str)
    def test_a_message_not_written_yet_leaves_out_none(self, store: Store, beyond: MessageId) -> None:
        """Not even the first messages of the batch that is written at that position later."""
        send(store, 3)
        consumer = attach(store)
        store.admin.subscriptions.seek_subscription("t", "a", beyond)
        producer = store.create_producer("t")
        for batch in ([b"3", b"4"], [b"5", b"6"]):
            producer.send_batch(batch)
        assert values(consumer) == [b"3", b"4", b"5", b"6"]

    def test_what_is_in_flight_is_withdrawn(self, store: Store) -> None:
        """From the queue too: an attached consumer goes on at the new place, as if nothing had been handed out."""
        send(store, 4)
        consumer = attach(store)
        consumer.receive(timeout=1)
        store.admin.subscriptions.seek_subscription("t", "a", Position(1, 2))
        received = consumer.receive_batch(9, timeout=0)
        assert [(message.value, message.redelivery_count) for message in received] == [(b"2", 0), (b"3", 0)]

    def test_what_was_skipped_shows_again_where_the_level_shows_it(self, store: Store) -> None:
        """After a change to READ_UNCOMMITTED a seek brings back what READ_COMMITTED had passed."""
        txn = store.begin_transaction()
        send(store, 1, txn=txn)
        store.admin.transactions.abort_transaction(txn)
        with attach(store, subscription_isolation_level=RC) as consumer:
            assert values(consumer) == []
        store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RU)
        assert values(attach(store)) == []
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert len(store.reports.peek_messages("t", "a", 9)) == 1


class TestEvict:
    """A stopped consumer keeps its messages until it is evicted."""

    def test_what_it_held_goes_to_others(self, store: Store) -> None:
        """And everything it tries later is refused, what is in its queue included."""
        send(store, 3)
        evicted = attach(store, subscription_type=SHARED, consumer_name="stopped")
        message = evicted.receive(timeout=1)
        other = attach(store)
        assert (
            row_json(store.admin.subscriptions.evict_consumers("t", "a", "stopped"))["messagesReleased"] == 3
        )
        for call in (evicted.acknowledge, evicted.negative_acknowledge):
            with pytest.raises(ConsumerEvicted):
                call(message)
        for _ in range(2):
            with pytest.raises(ConsumerEvicted):
                evicted.receive(timeout=0)
        assert values(other) == [b"0", b"1", b"2"]
        evicted.close()
        assert [
            each["consumerName"] for each in row_json(store.reports.subscription_stats("t", "a"))["consumers"]
        ] != ["stopped"]

    def test_all_or_one_by_name(self, store: Store) -> None:
        """Without a name everybody goes; an unknown name is said so."""
        for name in ("x", "y"):
            attach(store, subscription_type=SHARED, consumer_name=name)
        with pytest.raises(ConsumerNotFound):
            store.admin.subscriptions.evict_consumers("t", "a", "z")
        assert row_json(store.admin.subscriptions.evict_consumers("t", "a"))["evicted"] == ["x", "y"]
        assert row_json(store.reports.subscription_stats("t", "a"))["consumers"] == []


class TestUpdate:
    """Type, level and dead-letter policy without a consumer."""

    def test_it_is_refused_while_anybody_is_attached(self, store: Store) -> None:
        """But for the policy, which every consumer takes over."""
        attach(store, consumer_name="mine")
        with pytest.raises(SubscriptionBusy, match="mine"):
            store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RU)
        store.admin.subscriptions.update_subscription(
            "t", "a", max_redeliver_count=3, dead_letter_topic="graveyard"
        )
        stats = row_json(store.reports.subscription_stats("t", "a"))
        assert (stats["maxRedeliverCount"], stats["deadLetterTopic"]) == (3, "graveyard")

    def test_it_says_what_changed(self, store: Store) -> None:
        """Before and after of each; nothing if it was so already."""
        attach(store).close()
        result = row_json(
            store.admin.subscriptions.update_subscription(
                "t", "a", subscription_type=SHARED, subscription_isolation_level=RU
            )
        )
        assert result["changes"] == [
            "type Exclusive -> Shared", "subscriptionIsolationLevel READ_COMMITTED -> READ_UNCOMMITTED",
        ]  # fmt: skip
        again = row_json(store.admin.subscriptions.update_subscription("t", "a", subscription_type=SHARED))
        assert again["changes"] == []


class TestOnSubscriptions:
    """What holds for all of them."""

    @pytest.mark.parametrize("what", CALLS)
    def test_a_dry_run_changes_nothing_and_says_what_the_real_one_says(self, store: Store, what: str) -> None:
        """The same numbers, and not a single commit."""
        send(store, 4)
        consumer = attach(store, subscription_type=SHARED)
        consumer.receive_batch(2, timeout=0)
        commits = row_json(store.reports.store_info())["commits"]
        rehearsed = CALLS[what](store, True)
        assert row_json(store.reports.store_info())["commits"] == commits
        done = CALLS[what](store, False)
        assert {**rehearsed, "dryRun": False} == {**done, "dryRun": False}
        assert row_json(store.reports.store_info())["commits"] > commits

    @pytest.mark.parametrize("what", [name for name in CALLS if name != "delete topic"])
    def test_there_must_be_the_subscription(self, store: Store, what: str) -> None:
        """The error names those that there are."""
        store.admin.subscriptions.create_subscription("t", "other")
        with pytest.raises(SubscriptionNotFound) as caught:
            CALLS[what](store, False)
        assert "other" in (caught.value.hint or "")

    def test_a_change_leaves_an_audit_record_with_its_reason(self, store: Store) -> None:
        """Who, what, when, why, in the same store transaction; a dry run leaves none."""
        attach(store).close()
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST, reason="replay of Monday")
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST, reason="only looking", dry_run=True)
        (row,) = row_json(store.reports.list_audit_records())
        assert (row["action"], row["target"], row["reason"]) == (
            "subscriptions seek",
            "t a",
            "replay of Monday",
        )
