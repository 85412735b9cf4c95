"""`txnctl tables scan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.tables.tables_steps import BINARY, encoded
from txnctl.commands.tables import scan
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestEmpty:
    """A table without rows."""

    def test_a_note_says_that_nothing_is_there(self, run: Any) -> None:
        """On standard error, for people; the exit code is that of success, and other formats say nothing."""
        run("tables", "create", "empty")
        outcome = run("tables", "scan", "empty")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no rows" in outcome.err
        assert "no rows" in run("tables", "scan", "accounts", "--prefix", "X").err
        assert run("tables", "scan", "accounts").err == ""
        for output, shown in (("json", []), ("ndjson", None), ("name", None), ("value", None)):
            quiet = run("tables", "scan", "empty", "-o", output)
            assert (quiet.status, quiet.err) == (0, "")
            assert quiet.json == shown if output == "json" else quiet.out == ""


class TestScan:
    """`scan`."""

    def test_rows_come_in_the_order_of_their_keys(self, run: Any) -> None:
        """In every format the same ones."""
        rows = run("tables", "scan", "accounts", "-o", "json").json
        assert [(row["key"], row["value"], row["txnId"]) for row in rows] == [
            ("B1", "100", "0:1"),
            ("B2", "200", "0:2"),
            ("B3", "300", "0:3"),
        ]
        assert not undeclared(rows[0], scan.SCANNED)
        assert run("tables", "scan", "accounts", "-o", "ndjson").rows == rows
        assert run("tables", "scan", "accounts", "-o", "name").out == "B1\nB2\nB3\n"
        assert run("tables", "scan", "accounts", "-o", "value").out == "100\n200\n300\n"
        heading, *lines = run("tables", "scan", "accounts").out.splitlines()
        assert heading.split() == ["KEY", "WRITTEN", "TXN", "VERSION", "VALUE"]
        assert [line.split() for line in lines] == [
            [row["key"], row["versionAt"], row["txnId"], row["version"], row["value"]] for row in rows
        ]

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("--start", "B2"), ["B2", "B3"]),
            (("--end", "B2"), ["B1"]),
            (("--start", "B2", "--end", "B3"), ["B2"]),
            (("--start", "B3", "--end", "B1"), []),
            (("--prefix", "B"), ["B1", "B2", "B3"]),
            (("--prefix", "B2"), ["B2"]),
            (("--prefix", "C"), []),
            (("--prefix", "QjI=", "--key-base64"), ["B2"]),
            (("--reverse",), ["B3", "B2", "B1"]),
            (("--reverse", "-n", "1"), ["B3"]),
            (("--limit", "2"), ["B1", "B2"]),
            (("--reverse", "--end", "B3"), ["B2", "B1"]),
        ],
        ids=" ".join,
    )
    def test_ranges(self, run: Any, words: tuple[str, ...], found: list[str]) -> None:
        """By prefix, from a key on, below a key, both directions, with a limit."""
        assert [row["key"] for row in run("tables", "scan", "accounts", *words, "-o", "json").json] == found

    @pytest.mark.parametrize("words", [("-n", "0"), ("-n", "x"), ("--limit", "-1")], ids=" ".join)
    def test_a_limit_is_a_number(self, run: Any, words: tuple[str, ...]) -> None:
        """Exit 2."""
        assert run("tables", "scan", "accounts", *words).status == 2

    def test_an_empty_range_is_success(self, run: Any) -> None:
        """An empty array, or nothing."""
        assert run("tables", "scan", "accounts", "--prefix", "Z", "-o", "json").json == []
        assert run("tables", "scan", "accounts", "--prefix", "Z").out == ""

    def test_many_rows_come_in_line(self, run: Any, path: Path) -> None:
        """One heading, every key once, though they are read and printed in pages."""
        with Store.open(path) as store:
            store.create_table("many")
            store.table("many").import_rows((b"%05d" % number, b"x" * 20) for number in range(2500))
        lines = run("tables", "scan", "many").out.splitlines()
        assert len(lines) == 2501
        assert [line.split()[0] for line in lines[1:]] == [f"{number:05d}" for number in range(2500)]

    def test_binary_keys_have_a_line_each(self, run: Any) -> None:
        """-o name prints the very bytes; JSON has them as Base64."""
        run("tables", "put", "accounts", encoded(BINARY), "x", "--key-base64")
        assert run("tables", "scan", "accounts", "-o", "name").out_bytes.splitlines()[-1] == BINARY
        assert run("tables", "scan", "accounts", "-o", "json").json[-1]["keyBase64"] == encoded(BINARY)


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_a_transaction_shows_its_keys(self, run: Any) -> None:
        """In `show`, `list` and the dry run of `abort`, whose numbers are those of the real one."""
        run("transactions", "begin", "--priority", "low")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "put", "accounts", encoded(BINARY), "1", "--key-base64", "--txn", "0:4")
        row = run("transactions", "show", "0:4", "-o", "json").json
        (part,) = row["parts"]
        assert (part["kind"], part["table"], part["keys"]) == ("table", "accounts", 2)
        assert part["keyList"] == [{"key": "B1"}, {"keyBase64": encoded(BINARY)}]
        assert (row["isolation"], row["priority"], row["tables"]) == ("SERIALIZABLE", "low", ["accounts"])
        shown = run("transactions", "show", "0:4").out
        assert "holds keys of table accounts  2 keys  B1, \\xff\\xfe\\x00" in shown
        assert "priority low" in shown
        assert "SERIALIZABLE, low" in run("transactions", "list").out
        dry = run("transactions", "abort", "0:4", "--dry-run", "-o", "json").json
        lines = [line.split() for line in run("transactions", "abort", "0:4", "--dry-run").out.splitlines()]
        assert ["releases", "2", "write", "intents", "accounts"] in lines
        real = run("transactions", "abort", "0:4", "-o", "json").json
        assert dry["effects"] == real["effects"]
        assert real["effects"][0]["intents"] == 2
        assert run("tables", "scan", "accounts", "-o", "value").out == "100\n200\n300\n"


class TestCompletion:
    """The names of tables, open transactions, named constants."""

    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("txnctl tables get acc", ["accounts"]),
            ("txnctl tables scan ", ["accounts", "limits"]),
            ("txnctl tables put accounts B1 1 --txn ", ["0:4"]),
            ("txnctl tables put accounts B1 -1 --txn ", ["0:4"]),
            ("txnctl transactions begin --isolation ser", ["SERIALIZABLE"]),
            ("txnctl transactions begin --priority h", ["highest", "high"]),
            ("txnctl tables get accounts B1 --check ", ["minimal", "full", "none"]),
        ],
    )
    def test_what_is_offered(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
    ) -> None:
        """As the scripts ask for it."""
        run("tables", "create", "limits")
        run("transactions", "begin")
        monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_LINE", line)
        assert [each.split("\t")[1] for each in run().out.splitlines() if each] == offered
