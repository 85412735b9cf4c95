"""Chain: `storage/reports/blocking_chain.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage import Store
from storage.errors import TopicNotFound
from storage.process.clock import ManualClock
from tests.row_json import row_json


def held(model: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of every open transaction: id, from where to where it holds, how many it frees."""
    return [
        (each["txnId"], each["holdsFrom"], each["holdsThrough"], each["frees"])
        for each in model["openTransactions"]
    ]


class TestChain:
    """Who waits for whom."""

    def test_each_holds_from_its_first_message_to_that_of_the_next(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A later one frees its own stretch only when those before it have ended."""
        producer = store.create_producer("t")
        first, second = store.begin_transaction(labels={"job": "7"}), store.begin_transaction()
        producer.send(b"plain")
        producer.send_batch([b"1", b"2"], txn=first)
        producer.send_batch([b"behind"] * 5)
        producer.send(b"3", txn=second)
        producer.send(b"4", txn=first)
        producer.send_batch([b"behind both"] * 7)
        clock.advance(90)
        model = row_json(store.reports.topic_timeline("t"))
        assert held(model) == [("0:1", "1:1", "1:2", 5), ("0:2", "1:3", "1:5", 7)]
        assert (model["blockedMessages"], model["oldestBlockedMs"]) == (12, model["asOfMs"] - 90_000)
        mine, after = model["openTransactions"]
        assert (mine["messages"], mine["lastPosition"], mine["positions"]) == (3, "1:4", ["1:1", "1:4"])
        assert (mine["place"], mine["blockedNext"], after["blockedNext"]) == (1, "0:2", None)
        assert (mine["labels"], mine["ownerState"], mine["ageMs"]) == ({"job": "7"}, "detached", 90_000)

    def test_what_happens_if_one_ended_now(self, store: Store) -> None:
        """The first moves maxReadPosition to the next; another moves nothing; the last one's marker is the end."""
        producer = store.create_producer("t")
        first, second = store.begin_transaction(), store.begin_transaction()
        producer.send(b"1", txn=first)
        producer.send_batch([b"behind"] * 5)
        producer.send(b"2", txn=second)
        producer.send_batch([b"behind both"] * 7)
        mine, after = row_json(store.reports.topic_timeline("t"))["openTransactions"]
        assert mine["ifEnded"] == {
            "maxReadPositionBefore": "1:-1", "maxReadPositionAfter": "1:1", "frees": 5, "staysBlocked": 7,
        }  # fmt: skip
        assert after["ifEnded"] == {
            "maxReadPositionBefore": "1:-1", "maxReadPositionAfter": "1:-1", "frees": 0, "staysBlocked": 12,
        }  # fmt: skip
        store.admin.transactions.abort_transaction(first)
        (after,) = row_json(store.reports.topic_timeline("t"))["openTransactions"]
        assert after["ifEnded"]["maxReadPositionAfter"] == "1:5"
        store.commit_transaction(second)
        assert row_json(store.reports.topic_timeline("t"))["maxReadPosition"] == "1:5"
        assert row_json(store.reports.topic_timeline("t"))["openTransactions"] == []

    def test_a_ledger_that_is_full_rolls_over_for_the_marker(self, store: Store) -> None:
        """Where maxReadPosition goes is then the first entry of the next ledger."""
        store.create_topic("small", ledger_entries_max=2)
        producer, txn = store.create_producer("small"), store.begin_transaction()
        producer.send(b"1", txn=txn)
        producer.send(b"2")
        (row,) = row_json(store.reports.topic_timeline("small"))["openTransactions"]
        assert row["ifEnded"]["maxReadPositionAfter"] == "2:0"
        store.admin.transactions.abort_transaction(txn)
        assert row_json(store.reports.topic_timeline("small"))["maxReadPosition"] == "2:0"

    def test_ledgers_say_what_lies_before_them(self, store: Store) -> None:
        """So that a position is a place on an axis of entries."""
        store.create_topic("small", ledger_entries_max=2)
        store.create_producer("small").send(b"1")
        for _ in range(4):
            store.create_producer("small").send(b"more")
        ledgers = row_json(store.reports.topic_timeline("small"))["ledgers"]
        assert [(each["ledgerId"], each["entries"], each["entriesBefore"]) for each in ledgers] == [
            (1, 2, 0),
            (2, 2, 2),
            (3, 1, 4),
        ]

    def test_all_topics_come_from_one_view(self, store: Store) -> None:
        """In the order of their names; each is the model of that topic, and it is JSON."""
        store.create_topic("a")
        models = row_json(store.reports.topic_timelines())
        assert [each["name"] for each in models] == ["a", "t"]
        assert models[1] == row_json(store.reports.topic_timeline("t"))
        assert json.loads(json.dumps(models)) == models

    def test_there_must_be_the_topic(self, store: Store) -> None:
        """Else it is not found."""
        with pytest.raises(TopicNotFound):
            store.reports.topic_timeline("u")
