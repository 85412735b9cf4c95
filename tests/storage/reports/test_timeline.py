"""The model of a topic's positions: what each open transaction holds back, and that it is counted exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from storage import EARLIEST, Store
from storage.disk.view import ReadView
from storage.process.clock import ManualClock
from storage.reports import blocking_chain
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.reports.stuck import Script, play, recount, scripts


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
            patch.setattr(blocking_chain, "_RUNS_SUMMED_UP", 1)
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
    assert row_json(store.reports.topic_timeline("t"))["blockedMessages"] == 506
    assert [cost(report) for report in reports] == few
