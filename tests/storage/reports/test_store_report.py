"""What a report is made of: the facts of the other reports, of one view, without values and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from storage.errors import LostConflict, TopicNotFound
from storage.process.clock import ManualClock
from storage.reports import store_report
from tests.row_json import row_json


@pytest.fixture
def stuck(store: Store, clock: ManualClock) -> Store:
    """Two topics, an open transaction on each, and one that holds a key and acknowledgements."""
    store.create_topic("other")
    store.create_table("balances")
    for topic in ("t", "other"):
        store.admin.subscriptions.create_subscription(topic, "billing", initial_position=EARLIEST)
        producer = store.create_producer(topic)
        producer.send_batch([b"SECRET-VALUE"] * 3, keys=[b"SECRET-KEY"] * 3)
        producer.send(b"half", txn=store.begin_transaction(labels={"topic": topic}, timeout=7200))
        producer.send_batch([b"whole"] * (2 if topic == "t" else 5))
    older, third = store.begin_transaction(), store.begin_transaction(timeout=7200)
    store.table("balances").put(b"SECRET-KEY", b"SECRET-VALUE", txn=third)
    with store.subscribe("other", "billing") as consumer:
        consumer.acknowledge(consumer.receive(), txn=third)
    with pytest.raises(LostConflict):
        store.table("balances").put(b"SECRET-KEY", b"1", txn=older)
    clock.advance(90)
    return store


class TestReport:
    """`Store.report`."""

    def test_it_is_what_the_other_reports_say(self, stuck: Store) -> None:
        """One model: overview, timelines, explanations, producers, space, audit; but no key is told."""
        found, overview = row_json(stuck.reports.store_report()), row_json(stuck.reports.store_overview())
        for holder in (each for table in overview["tables"] for each in table["heldBy"]):
            holder["keyList"] = []
        for each in overview["findings"]:
            each["what"] = each["what"].replace(" (SECRET-KEY)", "")
        for row in (found, overview):
            del row["store"]["diskFreeBytes"]
        assert {name: found[name] for name in overview} == overview
        assert found["timelines"] == row_json(stuck.reports.topic_timelines())
        assert found["producerSessions"] == row_json(stuck.reports.list_producers())
        assert found["audit"] == row_json(stuck.reports.list_audit_records(store_report.HAPPENED))
        assert {row["database"] for row in found["space"]} == {
            row["database"] for row in row_json(stuck.reports.list_databases())
        }
        for row in found["openTransactions"]:
            alone = row_json(stuck.reports.explain_transaction(row["txnId"]))
            assert {**row, "parts": []} == {**alone, "parts": []}

    def test_those_that_hold_back_the_most_come_first(
        self, stuck: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that of many the others are counted alone."""
        assert [row["txnId"] for row in row_json(stuck.reports.store_report())["openTransactions"][:2]] == [
            "0:2",
            "0:1",
        ]
        monkeypatch.setattr(store_report, "EXPLAINED", 1)
        found = row_json(stuck.reports.store_report())
        assert [row["txnId"] for row in found["openTransactions"]] == ["0:2"]
        assert found["openCount"] == len(row_json(stuck.reports.list_transactions()))

    def test_some_topics_alone(self, stuck: Store) -> None:
        """Their transactions, those that acknowledged there, their producers; findings are of the whole store."""
        found = row_json(stuck.reports.store_report(["other", "persistent://public/default/other"]))
        assert [each["name"] for each in found["timelines"]] == ["other"]
        assert {row["txnId"] for row in found["openTransactions"]} == {"0:2", "0:4"}
        assert {row["name"] for row in found["producerSessions"]} == {"other"}
        assert found["findings"] == row_json(stuck.reports.store_report())["findings"]
        with pytest.raises(TopicNotFound):
            stuck.reports.store_report(["nowhere"])

    def test_neither_values_nor_keys(self, stuck: Store) -> None:
        """A report is handed on."""
        text = json.dumps(row_json(stuck.reports.store_report()), default=repr)
        assert "SECRET" not in text
        assert '"kind": "held", "table": "balances", "key": null' in text

    def test_a_store_opened_for_reading_is_left_as_it_is(self, stuck: Store) -> None:
        """Byte by byte."""
        path = Path(stuck.path)

        def contents() -> dict[str, Any]:
            return {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock.mdb"}

        before = contents()
        with Store.open(path, read_only=True) as reading:
            assert (
                row_json(reading.reports.store_report())["openCount"]
                == row_json(stuck.reports.store_report())["openCount"]
            )
        assert contents() == before
