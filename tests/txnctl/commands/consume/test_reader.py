"""Reader: `txnctl/commands/consume/reader.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.consume.consume_steps import send_batch

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestReading:
    """Without -s."""

    def test_it_changes_nothing(self, run: Any, path: Path) -> None:
        """Read commands leave the files byte-identical."""
        send_batch(path, 10)
        before = {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"}
        assert run("consume", "orders").status == 0
        assert {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"} == before

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--from", "earliest"), "0 1 2 3 4 5 6 7"),
            (("--from", "latest"), ""),
            (("--from", "1:1"), "3 4 5 6 7"),
            (("--from", "1:0:2"), "2 3 4 5 6 7"),
            (("--from", "1:9"), ""),
            (("--to", "1:1"), "0 1 2 3"),
            (("--to", "1:0:1"), "0 1"),
            (("--to", "earliest"), ""),
            (("--to", "latest"), "0 1 2 3 4 5 6 7"),
            (("--from", "1:0:1", "--to", "1:2:0"), "1 2 3 4"),
            (("--from", "1:2", "--to", "1:1"), ""),
            (("-n", "2", "--from", "1:0:1"), "1 2"),
            (("-n", "4"), "0 1 2 3"),
            (("--from", "@2020-01-01"), "0 1 2 3 4 5 6 7"),
            (("--from", "@9000000000000"), ""),
            (("--to", "@2020-01-01"), ""),
        ],
    )
    def test_begin_and_end(self, run: Any, path: Path, words: Sequence[str], expected: str) -> None:
        """A position or message id is the first, or last, one read."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send_batch([b"0", b"1", b"2"])
            producer.send(b"3")
            producer.send_batch([b"4", b"5", b"6", b"7"])
        outcome = run("consume", "orders", "-o", "value", *words)
        assert outcome.status == 0
        assert outcome.out.split() == expected.split()

    def test_a_time_is_the_first_entry_stored_then_or_later(self, run: Any, path: Path) -> None:
        """Also across ledgers."""
        with Store.open(path) as store:
            store.create_topic("short", ledger_entries_max=2)
            producer = store.create_producer("short")
            times = []
            for number in range(7):
                time.sleep(0.003)
                producer.send(b"%d" % number)
                times.append(store.reader("short", start=store.reports.last_message_id("short")).read_next(0))
        for number, message in enumerate(times):
            out = run("consume", "short", "-o", "value", "--from", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number, 7)]
            out = run("consume", "short", "-o", "value", "--to", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number + 1)]

    def test_open_and_aborted_transactions(self, run: Any, path: Path) -> None:
        """READ_COMMITTED stops and says why; READ_UNCOMMITTED shows all with their states."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            aborted, opened = store.begin_transaction(), store.begin_transaction()
            producer.send(b"dropped", txn=aborted)
            store.admin.transactions.abort_transaction(aborted)
            producer.send(b"first")
            producer.send_batch([b"held 1", b"held 2"], txn=opened)
            producer.send_batch([b"behind 1", b"behind 2", b"behind 3"])
        outcome = run("consume", "orders", "-o", "value")
        assert (outcome.status, outcome.out) == (0, "first\n")
        assert "3 committed messages wait behind open transaction 0:2, with 2 uncommitted" in outcome.err
        for level in ("READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted"):
            outcome = run("consume", "orders", "--isolation-level", level)
            assert [(row["value"], row["txnState"]) for row in outcome.rows] == [
                ("dropped", "ABORTED"),
                ("first", None),
                ("held 1", "OPEN"),
                ("held 2", "OPEN"),
                ("behind 1", None),
                ("behind 2", None),
                ("behind 3", None),
            ]
            assert outcome.err == ""
        assert run("consume", "orders", "-n", "1").err == ""

    def test_uncommitted_messages_alone_are_said_too(self, run: Any, path: Path) -> None:
        """Nothing waits, and yet it is not the end."""
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x", txn=store.begin_transaction())
        outcome = run("consume", "orders")
        assert outcome.out == ""
        assert "1 uncommitted message not shown, the first of open transaction 0:1" in outcome.err

    def test_the_transaction_of_the_environment_is_none_of_its_business(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script inside `transactions run` may read."""
        monkeypatch.setenv("TXNCTL_TXN", "0:99")
        assert run("consume", "orders").status == 0

    @pytest.mark.parametrize(
        "words",
        [
            ("--txn", "0:1"),
            ("--ack", "none"),
            ("--exec", "true"),
            ("--consumer", "me"),
            ("--subscription-type", "shared"),
            ("-s", "s", "--to", "1:1"),
            ("-s", "s", "--on-error", "retry"),
            ("-s", "s", "--exec", "true", "--ack", "auto"),
            ("-f", "-o", "json"),
            ("-n", "0"),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, run: Any, path: Path, words: Sequence[str]) -> None:
        """Exit 2; no subscription comes into being."""
        assert run("consume", "orders", *words).status == 2
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_subscriptions("orders")) == []

    def test_what_is_not_there(self, run: Any) -> None:
        """Exit 3, with and without a subscription."""
        assert run("consume", "none").status == 3
        assert run("consume", "none", "-s", "s").status == 3
