"""`txnctl tables put`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.limits import (
    TABLE_KEY_BYTES_MAX,
    TABLE_VALUE_BYTES_MAX,
)
from tests.txnctl.commands.tables.tables_steps import HOSTILE, files
from txnctl.commands.tables import write
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestValues:
    """`get`, `put`, `rm`."""

    def test_a_typed_value_leaves_standard_input_alone(self, run: Any) -> None:
        """`while read k v; do txnctl tables put t "$k" "$v"; done` works."""
        assert run("tables", "put", "accounts", "B4", "400", stdin=b"not this").status == 0
        assert run("tables", "get", "accounts", "B4").out == "400\n"

    @pytest.mark.parametrize("number", ["-100", "-05", "-1e3"])
    def test_negative_numbers_are_values_and_keys(self, run: Any, number: str) -> None:
        """They are no options, wherever the options stand; what is no option and no number is refused."""
        row = run("tables", "put", "accounts", number, number, "--if-absent", "-o", "json").json
        assert row["key"] == number
        assert run("tables", "put", "-o", "json", "accounts", "B1", number, "--if-version", "1").status == 4
        assert run("tables", "get", "accounts", number).out == f"{number}\n"
        assert run("tables", "versions", "accounts", number, "-o", "json").json[0]["value"] == number
        assert run("tables", "put", "accounts", "B1", "--if-abzent").status == 2
        assert run("tables", "put", "accounts", "B1", "--", "--if-abzent").status == 0
        assert run("tables", "get", "accounts", "B1").out == "--if-abzent\n"
        assert run("tables", "rm", "accounts", number).status == 0

    def test_bounds(self, run: Any) -> None:
        """Keys of 1 to 400 bytes, values of up to 5 MiB; more is bad input, typed or through a pipe."""
        longest = "k" * TABLE_KEY_BYTES_MAX
        assert run("tables", "put", "accounts", longest, "x").status == 0
        for key in ("", f"{longest}k"):
            assert run("tables", "put", "accounts", key, "x").status == 2
        largest = b"v" * TABLE_VALUE_BYTES_MAX
        assert run("tables", "put", "accounts", "large", stdin=largest).status == 0
        assert run("tables", "get", "accounts", "large").out_bytes == largest + b"\n"
        assert run("tables", "put", "accounts", "large", "-", stdin=largest + b"v").status == 2
        assert run("tables", "get", "accounts", "large").out_bytes == largest + b"\n"

    def test_a_put_says_which_version_it_made(self, run: Any) -> None:
        """-o name prints it alone, for --if-version."""
        outcome = run("tables", "put", "accounts", "B1", "101", "-o", "name")
        assert outcome.out == run("tables", "get", "accounts", "B1", "-o", "name").out
        row = run("tables", "put", "accounts", "B1", "102", "-o", "json").json
        assert not undeclared(row, write.WRITTEN)
        assert (row["key"], row["txnId"]) == ("B1", None)
        assert "Put B1 in accounts" in run("tables", "put", "accounts", "B1", "103").out

    def test_conditions(self, run: Any) -> None:
        """--if-version and --if-absent hold or it is a conflict, exit 4, and nothing changes."""
        version = run("tables", "get", "accounts", "B1", "-o", "name").out.strip()
        assert run("tables", "put", "accounts", "B1", "7", "--if-version", version).status == 0
        for words in (
            ("put", "accounts", "B1", "8", "--if-version", version),
            ("put", "accounts", "B1", "8", "--if-absent"),
            ("rm", "accounts", "B1", "--if-version", version),
            ("rm", "accounts", "B9", "--if-version", version),
        ):
            outcome = run("tables", *words, "-o", "json")
            assert (outcome.status, outcome.error["code"]) == (4, "condition-failed")
        assert run("tables", "get", "accounts", "B1").out == "7\n"
        assert run("tables", "put", "accounts", "B9", "9", "--if-absent").status == 0
        assert run("tables", "put", "accounts", "B9", "9", "--if-absent", "--if-version", "1").status == 2

    def test_a_value_cannot_drive_the_terminal(self, run: Any) -> None:
        """Nor can a key: on a terminal they are written out."""
        run("tables", "put", "accounts", "any", stdin=HOSTILE)
        run("tables", "put", "accounts", HOSTILE.decode(), "x")
        for words in (
            ("get", "accounts", "any"),
            ("scan", "accounts"),
            ("scan", "accounts", "-o", "value"),
            ("scan", "accounts", "-o", "name"),
            ("scan", "accounts", "-o", "ndjson"),
            ("export", "accounts"),
            ("export", "accounts", "-o", "csv"),
            ("versions", "accounts", HOSTILE.decode()),
            ("get", "accounts", HOSTILE.decode(), "-o", "table"),
            ("put", "accounts", HOSTILE.decode(), "y"),
        ):
            outcome = run("tables", *words, terminal=True)
            assert outcome.status == 0, outcome
            assert outcome.out.replace("\n", "").isprintable(), (words, outcome)


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_a_loser_is_told_to_whom_and_over_which_key(self, run: Any) -> None:
        """At its next operation, at its commit, and in `transactions show`."""
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "put", "accounts", "B1", "2")
        for words in (("tables", "get", "accounts", "B2", "--txn", "0:4"), ("transactions", "commit", "0:4")):
            outcome = run(*words, "-o", "json")
            assert (outcome.status, outcome.out) == (4, "")
            assert (outcome.error["code"], outcome.error["retryable"]) == ("lost-conflict", True)
            assert "B1" in outcome.error["message"]
            assert "0:5" in outcome.error["message"]
            assert "new transaction" in outcome.error["hint"]
        row = run("transactions", "show", "0:4", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "lost-conflict")
        conflict = row["conflict"]
        assert (conflict["winner"], conflict["table"], conflict["key"]) == ("0:5", "accounts", "B1")
        assert "0:5, over key B1 of table accounts" in run("transactions", "show", "0:4").out


class TestReading:
    """Commands that only read."""

    @pytest.mark.parametrize(
        "words",
        [
            ("list",),
            ("show", "accounts"),
            ("stats", "accounts"),
            ("get", "accounts", "B1"),
            ("get", "accounts", "B1", "--check", "full"),
            ("get", "accounts", "B2", "--txn", "0:4"),
            ("scan", "accounts"),
            ("scan", "accounts", "--check", "none"),
            ("scan", "accounts", "--txn", "0:4", "-o", "json"),
            ("versions", "accounts", "B1"),
            ("intents",),
            ("history",),
            ("export", "accounts"),
            ("export", "accounts", "--txn", "0:4", "-o", "csv"),
        ],
        ids=" ".join,
    )
    def test_leaves_every_file_as_it_is(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """Byte by byte, beside an open transaction's intents, and in a read-committed transaction too."""
        run("transactions", "begin", "--isolation", "read-committed")
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:5")
        before = files(path)
        assert run("tables", *words).status == 0
        assert files(path) == before
