"""`txnctl tables get`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.tables.tables_steps import BINARY, HOSTILE, encoded, files
from txnctl.commands.tables import get
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    @pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "x" * 129, "größe", "a\x1b[31m"], ids=ascii)
    @pytest.mark.parametrize("verb", ["create", "show", "stats", "scan", "export", "delete"])
    def test_a_hostile_name_is_bad_input(self, run: Any, path: Path, verb: str, name: str) -> None:
        """Exit 2, nothing changed, and nothing that could drive a terminal."""
        before = files(path)
        outcome = run("tables", verb, "-o", "ndjson" if verb == "export" else "json", "--", name)
        assert (outcome.status, outcome.out, outcome.error["code"]) == (2, "", "invalid-name")
        assert outcome.err.rstrip("\n").isprintable()
        assert files(path) == before

    @pytest.mark.parametrize(
        "words",
        [
            ("show", "account"),
            ("stats", "account"),
            ("get", "account", "B1"),
            ("put", "account", "B1", "1"),
            ("rm", "account", "B1"),
            ("scan", "account"),
            ("versions", "account", "B1"),
            ("intents", "account"),
            ("history", "account"),
            ("export", "account"),
            ("import", "account"),
            ("delete", "account", "--yes"),
        ],
        ids=lambda words: words[0],
    )
    def test_an_unknown_table_is_not_found_and_a_near_one_is_named(
        self, run: Any, words: tuple[str, ...]
    ) -> None:
        """Exit 3 with a hint that can be followed."""
        outcome = run("tables", *words)
        assert (outcome.status, outcome.out) == (3, "")
        assert "accounts" in outcome.err


class TestValues:
    """`get`, `put`, `rm`."""

    def test_get_prints_the_value_alone(self, run: Any) -> None:
        """Its bytes and a newline, or no newline."""
        assert run("tables", "get", "accounts", "B1").out == "100\n"
        assert run("tables", "get", "accounts", "B1", "--no-newline").out == "100"

    def test_in_json_it_is_an_object(self, run: Any) -> None:
        """With version, time and transaction, and -o name prints the version."""
        row = run("tables", "get", "accounts", "B2", "-o", "json").json
        assert (row["table"], row["key"], row["value"], row["txnId"]) == ("accounts", "B2", "200", "0:2")
        assert int(row["version"]) // 1_000_000 == row["versionMs"]
        assert not undeclared(row, get.GOT)
        assert run("tables", "get", "accounts", "B2", "-o", "name").out == f"{row['version']}\n"
        assert row["version"] in run("tables", "get", "accounts", "B2", "-o", "table").out

    @pytest.mark.parametrize(
        "value",
        [b"", b"\n", b"x\n", BINARY, HOSTILE, bytes(range(256)) * 20],
        ids=["empty", "newline", "line", "binary", "hostile", "all bytes"],
    )
    def test_any_bytes_come_back(self, run: Any, value: bytes) -> None:
        """From standard input, byte by byte, with and without `-`; JSON has Base64 where it is no text."""
        for words in ((), ("-",)):
            assert run("tables", "put", "accounts", "any", *words, stdin=value).status == 0
            assert run("tables", "get", "accounts", "any").out_bytes == value + b"\n"
            assert run("tables", "get", "accounts", "any", "--no-newline").out_bytes == value
        row = run("tables", "get", "accounts", "any", "-o", "json").json
        is_text = value.decode("utf-8", "replace").encode() == value
        found = {name: row[name] for name in ("value", "valueBase64") if name in row}
        assert found == ({"value": value.decode()} if is_text else {"valueBase64": encoded(value)})

    def test_a_key_that_is_not_utf_8_can_be_typed(self, run: Any) -> None:
        """The bytes of the word are the key."""
        assert run("tables", "put", "accounts", "\udcff", "x").status == 0
        row = run("tables", "get", "accounts", "\udcff", "-o", "json").json
        assert row["keyBase64"] == encoded(b"\xff")

    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (("put", "accounts", "B1", "8", "--if-absent"), 4),
            (("rm", "accounts", "B9"), 3),
        ],
        ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
    )
    def test_a_refused_change_leaves_no_transaction_behind(
        self, start: Any, run: Any, words: tuple[str, ...], status: int
    ) -> None:
        """Neither open nor ended, in a process of its own that knows nothing of earlier ones (invariant 24)."""
        before = [row["txnId"] for row in run("transactions", "list", "--ended", "-o", "json").json]
        command = start("tables", *words)
        command.communicate()
        assert command.returncode == status
        assert [row["txnId"] for row in run("transactions", "list", "--ended", "-o", "json").json] == before
        assert run("transactions", "list", "-o", "json").json == []
