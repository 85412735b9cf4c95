"""`txnctl tables rm`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.commands.tables.tables_steps import BINARY, encoded

pytestmark = pytest.mark.usefixtures("path")


class TestValues:
    """`get`, `put`, `rm`."""

    def test_a_key_without_a_value_is_not_found(self, run: Any) -> None:
        """Exit 3, nothing on stdout; never written, or deleted."""
        assert run("tables", "rm", "accounts", "B1").status == 0
        for key in ("B1", "B9"):
            outcome = run("tables", "get", "accounts", key, "-o", "json")
            assert (outcome.status, outcome.out, outcome.error["code"]) == (3, "", "key-not-found")
            assert outcome.error["details"] == {"table": "accounts", "key": key}

    def test_a_key_may_be_any_bytes(self, run: Any) -> None:
        """As Base64, also one with a zero byte; what is not Base64 is bad input."""
        key = encoded(BINARY)
        row = run("tables", "put", "accounts", key, "x", "--key-base64", "-o", "json").json
        assert row["keyBase64"] == key
        assert "key" not in row
        assert run("tables", "get", "accounts", key, "--key-base64").out == "x\n"
        assert (
            run("tables", "versions", "accounts", key, "--key-base64", "-o", "json").json[0]["value"] == "x"
        )
        assert run("tables", "rm", "accounts", key, "--key-base64").status == 0
        for words in (("get", "accounts", "B1="), ("scan", "accounts", "--prefix", "é")):
            assert run("tables", *words, "--key-base64").status == 2

    def test_deleting(self, run: Any) -> None:
        """What is not there cannot be deleted, exit 3, unless that is well."""
        assert run("tables", "rm", "accounts", "B1").out.startswith("Deleted B1 from accounts")
        assert run("tables", "rm", "accounts", "B1").status == 3
        assert run("tables", "rm", "accounts", "B1", "--missing-ok").status == 0
        assert run("tables", "scan", "accounts", "-o", "name").out == "B2\nB3\n"


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_a_commit_says_what_it_wrote(self, run: Any) -> None:
        """Keys by table, beside messages."""
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "B1", "1", "--txn", txn)
        run("tables", "rm", "accounts", "B2", "--txn", txn)
        assert run("transactions", "commit", txn).out == f"Committed {txn}: 2 keys of accounts.\n"
        assert run("tables", "scan", "accounts", "-o", "value").out == "1\n300\n"
