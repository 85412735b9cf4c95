"""Visible set: `storage/subscription/dispatch/visible_set.py`."""

from __future__ import annotations

import pytest

from storage import MessageId, Store, SubscriptionType
from tests.row_json import row_json
from tests.storage.ending import end_transaction
from tests.storage.skip_walk_steps import (
    KEY_SHARED,
    SKIPPING,
    Attach,
    classes,
    receive,
    send,
)


class TestVisibleSet:
    """Skipping, looking and counting go by what the subscription may be handed."""

    def test_skipping(self, store: Store, attach_skipping: Attach) -> None:
        """Leaves alone what is undecided or waits for its key; it comes afterwards."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=1 l=1", "m=2", "n=3")
        assert row_json(store.admin.subscriptions.skip_messages("t", "a", 2))["skipped"] == 2
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 1
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 0
        assert receive(consumer) == ""
        store.commit_transaction(txn)
        assert receive(consumer) == "open 1"

    def test_skipping_past_the_end_of_a_transaction(self, store: Store, attach_skipping: Attach) -> None:
        """What it passed over before is not lost with the marker."""
        txn, consumer = store.begin_transaction(), attach_skipping()
        send(store, "open1", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        send(store, "open2", txn=txn)
        store.commit_transaction(txn)
        assert row_json(store.admin.subscriptions.skip_messages("t", "a", 1))["skipped"] == 1
        send(store, "2")
        assert receive(consumer) == "open2 2"
        assert store.maintenance.verify_store(full=True) == []

    def test_skipping_past_a_transaction_that_waits_for_a_key(
        self, store: Store, attach_skipping: Attach
    ) -> None:
        """It has ended, but another one holds its key: what is behind it may go, it itself stays and comes."""
        one, two, consumer = store.begin_transaction(), store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=one", txn=one)
        send(store, "k=two", txn=two)
        send(store, "l=1")
        assert receive(consumer) == "1"
        store.commit_transaction(two)
        send(store, "m=2")
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 1
        assert receive(consumer) == ""
        store.commit_transaction(one)
        assert receive(consumer) == "one two"
        assert store.maintenance.verify_store(full=True) == []

    @SKIPPING
    def test_skipping_an_aborted_message_that_was_passed_over(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType
    ) -> None:
        """Dispatch has not come to the marker: the message counts as acknowledged, and not as aborted too."""
        other, txn, consumer = store.begin_transaction(), store.begin_transaction(), attach_skipping(type_)
        send(store, "1")
        send(store, "open", txn=other)
        send(store, "aborted", txn=txn)
        send(store, "2")
        assert receive(consumer) == "1 2"
        store.admin.transactions.abort_transaction(txn)
        assert classes(store) == {"uncommitted": 1, "abortedAhead": 1, "acknowledgedAhead": 1}
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 0
        assert classes(store) == {"uncommitted": 1, "acknowledgedAhead": 2}
        assert store.maintenance.verify_store(full=True) == []
        store.commit_transaction(other)
        assert receive(consumer) == "open"
        assert classes(store) == {}
        assert store.maintenance.verify_store(full=True) == []

    @pytest.mark.parametrize(("end", "skipped"), [("commit", 2), ("abort", 1)])
    def test_skipping_a_message_held_behind_an_ended_transaction(
        self, store: Store, attach_skipping: Attach, end: str, skipped: int
    ) -> None:
        """Dispatch has not come to the marker: the record of the held message goes with the marker."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "k=held", "free")
        assert receive(consumer) == "free"
        end_transaction(store, end, txn)
        assert row_json(store.admin.subscriptions.skip_messages("t", "a", 2))["skipped"] == skipped
        assert store.maintenance.verify_store(full=True) == []
        send(store, "k=next")
        assert receive(consumer) == "next"
        assert store.maintenance.verify_store(full=True) == []

    def test_the_last_message(self, store: Store, attach_skipping: Attach) -> None:
        """The largest that can be handed out: neither undecided nor held by its key."""
        txn = store.begin_transaction()
        attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        assert store.reports.last_message_id("t", subscription="a") is None
        send(store, "l=1 k=1")
        send(store, "k=open2", "k=open3", txn=txn)
        assert store.reports.last_message_id("t", subscription="a") == MessageId(1, 1, 0)
        assert store.reports.last_message_id("t") is None
        store.commit_transaction(txn)
        assert store.reports.last_message_id("t", subscription="a") == MessageId(1, 3)

    def test_peeking(self, store: Store, attach_skipping: Attach) -> None:
        """The next messages, without those that wait."""
        attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=store.begin_transaction())
        send(store, "k=1 l=1", "2")
        assert [message.value for message in store.reports.peek_messages("t", "a", 9)] == [b"1", b"2"]

    def test_aborting_frees_what_the_dry_run_says(self, store: Store, attach_skipping: Attach) -> None:
        """Of a transaction that is not the first of its topic too."""
        consumer = attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=store.begin_transaction())
        two = store.begin_transaction()
        send(store, "l=open", txn=two)
        send(store, "k=1 l=1 l=2")
        assert receive(consumer) == ""
        said, done = (
            row_json(store.admin.transactions.abort_transaction(two, dry_run=True)),
            row_json(store.admin.transactions.abort_transaction(two)),
        )
        assert said["effects"] == done["effects"]
        (effect,) = done["effects"]
        assert effect["unblocks"]["a"] == {
            "visibleBefore": 0, "visibleAfter": 2, "blockedBefore": 3, "blockedAfter": 1
        }  # fmt: skip
        assert receive(consumer) == "1 2"
