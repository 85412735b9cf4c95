"""The model of a topic's positions: what each open transaction holds back, and that it is counted exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from storage import EARLIEST, Store
from storage.disk.view import ReadView
from storage.errors import TopicNotFound
from storage.process.clock import ManualClock
from storage.reports import chain
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.reports.stuck import Script, play, recount, scripts


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


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples of this module: each has a topic of its own."""
    place, clock = tmp_path_factory.mktemp("timeline") / "store", ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        yield opened


class TestCounts:
    """They are exact, whatever lies there."""

    @settings(max_examples=examples(60))
    @given(scripts)
    def test_what_is_freed_equals_a_recount(self, lasting: Store, script: Script) -> None:
        """Of the log from end to end; and for every subscription the sum over the chain is what it has blocked."""
        topic = f"t{len(lasting.topics())}"
        play(lasting, topic, script)
        model = row_json(lasting.reports.topic_timeline(topic))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "_RUNS_SUMMED_UP", 1)
            assert row_json(lasting.reports.topic_timeline(topic)) == model, (
                "however many runs a transaction has"
            )
        found = {each["txnId"]: each["frees"] for each in model["openTransactions"]}
        assert found == recount(lasting, topic)
        stats = row_json(lasting.reports.topic_stats(topic))
        assert model["blockedMessages"] == sum(found.values()) == stats["blockedMessages"]
        for name, row in model["subscriptions"].items():
            assert row == stats["subscriptions"][name]
            assert sum(each["unblocks"][name] for each in model["openTransactions"]) == row["blocked"]

    @settings(max_examples=examples(40))
    @given(scripts)
    def test_what_each_unblocks_is_what_its_end_unblocks(self, lasting: Store, script: Script) -> None:
        """Ending them one after the other, in the order of the chain, frees on every subscription what was said."""
        topic = f"t{len(lasting.topics())}"
        play(lasting, topic, script)
        for _ in row_json(lasting.reports.topic_timeline(topic))["openTransactions"]:
            before = row_json(lasting.reports.topic_timeline(topic))
            first = before["openTransactions"][0]
            parts = row_json(lasting.reports.show_transaction(first["txnId"]))["parts"]
            released = {part["subscription"] for part in parts if part["kind"] == "subscription"}
            lasting.admin.transactions.abort_transaction(first["txnId"], force=True)
            after = row_json(lasting.reports.topic_timeline(topic))
            for name in set(before["subscriptions"]) - released:
                freed = before["subscriptions"][name]["blocked"] - after["subscriptions"][name]["blocked"]
                assert freed == first["unblocks"][name]
            assert after["maxReadPosition"] == first["ifEnded"]["maxReadPositionAfter"]
            assert after["blockedMessages"] == first["ifEnded"]["staysBlocked"]
            assert before["blockedMessages"] - after["blockedMessages"] == first["frees"]
            following = after["openTransactions"]
            assert first["blockedNext"] == (following[0]["txnId"] if following else None)


def test_what_is_blocked_is_not_read_to_be_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times as much behind the same transactions costs as many look-ups, and not one more entry."""
    producer, txns = store.create_producer("t"), [store.begin_transaction() for _ in range(5)]
    store.admin.subscriptions.create_subscription("t", "billing", initial_position=EARLIEST)
    for txn in txns:
        producer.send_batch([b"half"] * 3, txn=txn)
        producer.send(b"whole")
    read = []
    for name in ("get", "first", "last"):
        whole = getattr(ReadView, name)

        def count(view: ReadView, *args: Any, _whole: Any = whole, **rest: Any) -> Any:
            read.append(1)
            return _whole(view, *args, **rest)

        monkeypatch.setattr(ReadView, name, count)
    scan = ReadView.scan

    def counted(view: ReadView, *args: Any, **rest: Any) -> Iterator[Any]:
        for each in scan(view, *args, **rest):
            read.append(1)
            yield each

    monkeypatch.setattr(ReadView, "scan", counted)

    def cost(report: Callable[[], Any]) -> int:
        read.clear()
        report()
        return len(read)

    reports = (
        lambda: row_json(store.reports.topic_timeline("t")),
        store.reports.list_blocking_transactions,
        lambda: row_json(store.reports.explain_transaction("0:1")),
    )
    few = [cost(report) for report in reports]
    for _ in range(500):
        producer.send(b"whole")
    assert row_json(store.reports.topic_timeline("t"))["blockedMessages"] == 505
    assert [cost(report) for report in reports] == few
