"""`txnctl topics peek`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from txnctl.commands.topics.peek import PEEK_DEFAULT
from txnctl.output.field import undeclared
from txnctl.output.messages import MESSAGE_FIELDS

pytestmark = pytest.mark.usefixtures("path")


class TestPeek:
    """`topics peek`."""

    @pytest.mark.usefixtures("stuck")
    def test_nothing_is_consumed(self, run: Any, path: Path) -> None:
        """The same messages again and again, and the data file as it was."""
        before = (path / "data.mdb").read_bytes()
        first = run("topics", "peek", "orders", "-s", "billing", "-o", "json").json
        assert run("topics", "peek", "orders", "-s", "billing", "-o", "json").json == first
        assert (path / "data.mdb").read_bytes() == before
        assert [each["value"] for each in first] == ["plain 2", "plain 3"]
        assert not undeclared(first[0], MESSAGE_FIELDS)

    @pytest.mark.usefixtures("stuck")
    def test_a_table_tells_what_waits_behind_a_transaction(self, run: Any) -> None:
        """With the command that explains it; where the shown messages are all that was asked for, nothing."""
        assert "stopped before the end of orders: " in run("topics", "peek", "orders", "-o", "table").err
        assert "transactions explain 0:" in run("topics", "peek", "orders", "-o", "table").err
        assert run("topics", "peek", "orders", "-o", "table", "-n", "1").err == ""

    @pytest.mark.usefixtures("stuck")
    def test_without_a_subscription_it_reads_the_topic(self, run: Any) -> None:
        """From the earliest on, at READ_COMMITTED, unless said otherwise."""
        assert run("topics", "peek", "orders", "-o", "value").out == "plain 0\nplain 1\nplain 2\nplain 3\n"
        assert run("topics", "peek", "orders", "-o", "name", "--from", "1:2").out == "1:2\n1:3\n"
        assert run("topics", "peek", "orders", "-o", "name", "-n", "1").out == "1:0\n"
        assert (
            run("topics", "peek", "orders", "-o", "name", "--from", "@1970-01-01", "-n", "1").out == "1:0\n"
        )
        assert run("topics", "peek", "orders", "-o", "name", "--from", "@9999-01-01").out == ""
        for since in ("--since", "--from"):
            assert run("topics", "peek", "orders", "-o", "name", since, "1h", "-n", "1").out == "1:0\n"
            assert run("topics", "peek", "orders", "-o", "name", since, "9999-01-01").out == ""
        dirty = run(
            "topics",
            "peek",
            "orders",
            "--isolation-level",
            "READ_UNCOMMITTED",
            "--from",
            "1:4",
            "-o",
            "ndjson",
        ).rows
        assert [(each["value"], each["txnState"]) for each in dirty] == [
            ("aborted", "ABORTED"),
            ("open 0", "OPEN"),
            ("open 1", "OPEN"),
            ("later 0", None),
            ("later 1", None),
            (None, None),
            ("second", "OPEN"),
        ]

    def test_an_end_of_the_list_that_is_none_is_said(self, run: Any, path: Path) -> None:
        """Without -n; where all are shown, nothing is said."""
        run("topics", "create", "orders")
        with Store.open(path) as store, store.create_producer("orders") as producer:
            producer.send_batch([b"x"] * PEEK_DEFAULT)
            assert run("topics", "peek", "orders").err == ""
            producer.send(b"y")
        outcome = run("topics", "peek", "orders", "-o", "name")
        assert outcome.err == f"txnctl: {PEEK_DEFAULT} messages shown, and there are more: -n N shows N\n"
        assert len(outcome.out.splitlines()) == PEEK_DEFAULT
        assert run("topics", "peek", "orders", "-n", "1").err == ""

    @pytest.mark.usefixtures("stuck")
    def test_a_pipe_gets_ndjson_and_a_terminal_a_table(self, run: Any) -> None:
        """As `consume` does."""
        assert run("topics", "peek", "orders").rows[0]["messageId"] == "1:0"
        assert run("topics", "peek", "orders", terminal=True).out.startswith("MESSAGE ID ")

    def test_a_long_value_is_cut_in_the_table_alone(self, run: Any, path: Path) -> None:
        """The table says how long it is."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x" * 5000, key=b"\xff\x00")
        out = run("topics", "peek", "orders", "-o", "table").out
        assert max(len(line) for line in out.splitlines()) < 200
        assert "x... (4.9 KiB)" in out
        assert "\\xff\\x00" in out, "as `consume` shows it on a terminal"
        assert run("topics", "peek", "orders").rows[0]["value"] == "x" * 5000

    def test_a_value_cannot_drive_the_terminal(self, run: Any, path: Path) -> None:
        """Stored escape sequences come out written out."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"\x1b[2Jgone\x07\nline", key=b"\xc2\x9b31m")
        out = run("topics", "peek", "orders", "-o", "table", terminal=True).out
        assert "\\x1b[2Jgone\\x07\\nline" in out
        assert len(out.splitlines()) == 2
        assert out.replace("\n", "").isprintable()

    @pytest.mark.usefixtures("stuck")
    def test_a_subscription_brings_its_own_place_and_level(self, run: Any) -> None:
        """Naming another is bad input, not ignored."""
        for words in (("--from", "earliest"), ("--isolation-level", "read-committed")):
            outcome = run("topics", "peek", "orders", "-s", "billing", *words)
            assert outcome.status == 2, outcome

    @pytest.mark.usefixtures("stuck")
    def test_an_unknown_subscription_is_not_found(self, run: Any) -> None:
        """And those that there are are named."""
        outcome = run("topics", "peek", "orders", "-s", "bills", "-o", "json")
        assert outcome.status == 3
        assert "billing" in outcome.error["hint"]

    def test_nothing_visible_is_success(self, run: Any) -> None:
        """An empty document of each kind."""
        run("topics", "create", "orders")
        assert run("topics", "peek", "orders", "-o", "json").json == []
        assert run("topics", "peek", "orders").out == ""
        assert run("topics", "peek", "orders", "-o", "table").err.startswith("txnctl: nothing")

    def test_messages_of_a_key(self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """At both levels and for a subscription; a look that ends before the end of the topic says where."""
        with Store.open(path) as store:
            store.create_topic("keys")
            txn = store.begin_transaction()
            producer = store.create_producer("keys")
            producer.send_batch([b"1", b"2", b"3"], keys=["k", "other", "k"])
            producer.send(b"4", key="k", txn=txn)
            producer.send(b"none")
            store.admin.subscriptions.create_subscription("keys", "s", initial_position=EARLIEST)
        peek = ("topics", "peek", "keys", "--key", "k", "-o", "value")
        assert run(*peek).out == "1\n3\n"
        assert run(*peek, "-n", "1").out == "1\n"
        assert run(*peek, "--from", "1:0:1").out == "3\n"
        assert run(*peek, "--isolation-level", "READ_UNCOMMITTED").out == "1\n3\n4\n"
        assert run(*peek, "-s", "s").out == "1\n3\n"
        assert run("topics", "peek", "keys", "-k", "", "-o", "value").out == ""
        assert run(*peek[:3], "--key", "aw==", "--key-base64", "-o", "value").out == "1\n3\n"
        assert run(*peek, "--tail", "2").status == 2
        assert run("topics", "peek", "keys", "--key-base64").status == 2
        monkeypatch.setattr("txnctl.commands.topics.peek.PEEK_MAX", 2)
        monkeypatch.setattr("storage.reports.browse.PEEK_KEY_ENTRIES_MAX", 0)
        assert "looked through 1:0:1, and there are more" in run(*peek).err
        assert "there are more" in run(*peek, "-s", "s").err
