"""Output: `txnctl/commands/consume/output.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.consume.consume_steps import send, send_batch
from txnctl.output.field import undeclared
from txnctl.output.messages import DELIVERED_FIELDS, MESSAGE_FIELDS

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestFormats:
    """The same messages in every format."""

    @pytest.fixture(autouse=True)
    def _messages(self, path: Path) -> None:
        send(path, b"a", None, b"\xff", key="B1", properties={"p": "v"}, event_time=5)
        send_batch(path, 3)

    def test_ndjson_where_it_is_piped(self, run: Any) -> None:
        """A declared object a message."""
        rows = run("consume", "orders").rows
        assert [row.get("value") for row in rows] == ["a", None, None, "0", "1", "2"]
        assert rows[2]["valueBase64"] == "/w=="
        assert [row["messageId"] for row in rows] == ["1:0", "1:1", "1:2", "1:3:0", "1:3:1", "1:3:2"]
        assert rows[0]["properties"] == {"p": "v"}
        for row in rows:
            assert not undeclared(row, MESSAGE_FIELDS)

    def test_json_is_one_array_of_the_same(self, run: Any) -> None:
        """An empty list is one too."""
        assert run("consume", "orders", "-o", "json").json == run("consume", "orders").rows
        assert run("consume", "orders", "-o", "json", "--from", "latest").json == []
        assert run("consume", "orders", "-o", "json", "-n", "5").json == run("consume", "orders").rows[:5]

    def test_values_and_names(self, run: Any, start: Any) -> None:
        """Bare bytes, whatever they are, and ids."""
        for words in ((), ("-s", "s", "--from", "earliest")):
            out, _ = start("consume", "orders", "-o", "value", *words).communicate(timeout=20)
            assert out == b"a\n\n\xff\n0\n1\n2\n"
        assert run("consume", "orders", "-o", "name", "-n", "4").out == "1:0\n1:1\n1:2\n1:3:0\n"

    def test_a_table_on_a_terminal(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """A column appears where a message has something to say there."""
        monkeypatch.setenv("COLUMNS", "120")
        lines = run("consume", "orders", terminal=True).out.splitlines()
        assert lines[0].split() == [
            "MESSAGE",
            "ID",
            "PUBLISHED",
            "EVENT",
            "TIME",
            "PROPERTIES",
            "KEY",
            "VALUE",
        ]
        assert len(lines) == 7
        plain = run("consume", "orders", "--from", "1:3", terminal=True).out.splitlines()
        assert plain[0].split() == ["MESSAGE", "ID", "PUBLISHED", "KEY", "VALUE"]
        assert plain[1].endswith("-    0")

    def test_a_column_that_comes_later_gets_new_headings(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is left out because the first page did not have it."""
        monkeypatch.setattr("txnctl.commands.consume.output.PAGE_ROWS", 2)
        lines = run("consume", "orders", "--from", "1:2", "-o", "table").out.splitlines()
        send(path, b"last", properties={"late": "yes"})
        later = run("consume", "orders", "--from", "1:3", "-o", "table").out.splitlines()
        assert sum("PROPERTIES" in line for line in lines) == 1
        assert sum("PROPERTIES" in line for line in later) == 1
        assert "late=yes" in later[-1]

    @pytest.mark.parametrize("form", ["table", "value", "ndjson", "json"])
    def test_stored_data_cannot_drive_a_terminal(self, run: Any, path: Path, form: str) -> None:
        """Escape sequences in values, keys and properties are written out."""
        evil = "\x1b[31m\u009b2J\u202eevil\x07"
        send(path, evil.encode(), key=evil, properties={evil: evil})
        out = run("consume", "orders", "-o", form, terminal=True).out
        assert "evil" in out
        assert out.replace("\n", "").isprintable()

    def test_what_a_subscription_hands_out_says_how_often(self, run: Any) -> None:
        """All formats again, with the redelivery count."""
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "--ack", "none")
        rows = run(*words).rows
        assert [row["redeliveryCount"] for row in rows] == [0] * 6
        assert not undeclared(rows[0], DELIVERED_FIELDS)
        again = run(*words, "-o", "json").json
        assert [row["redeliveryCount"] for row in again] == [1] * 6
        assert "REDELIVERED" in run(*words, "-o", "table").out.splitlines()[0]
        assert run(*words, "-o", "name").out.splitlines() == [row["messageId"] for row in rows]
