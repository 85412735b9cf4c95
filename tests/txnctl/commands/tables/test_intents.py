"""`txnctl tables intents`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.limits import (
    FINALIZE_INLINE_MAX,
)
from tests.txnctl.commands.tables.tables_steps import BINARY, encoded
from txnctl.commands.tables import intents
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_intents_say_who_holds_which_keys(self, run: Any) -> None:
        """Of one table, or of all."""
        run("tables", "create", "limits")
        run("transactions", "begin", "--priority", "high")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "rm", "accounts", "B2", "--txn", "0:4")
        run("tables", "put", "limits", encoded(BINARY), "1", "--key-base64", "--txn", "0:4")
        rows = run("tables", "intents", "-o", "json").json
        assert not undeclared(rows[0], intents.INTENTS)
        assert [(row["table"], row.get("key"), row["deleted"], row["state"]) for row in rows] == [
            ("accounts", "B1", False, "OPEN"),
            ("accounts", "B2", True, "OPEN"),
            ("limits", None, False, "OPEN"),
        ]
        held = {(row["txnId"], row["priority"], row["ownerState"]) for row in rows}
        assert held == {("0:4", "high", "detached")}
        (row,) = run("tables", "intents", "limits", "-o", "json").json
        assert row == {**rows[2], "ageMs": row["ageMs"]}
        assert run("tables", "intents", "-o", "name").out_bytes == b"B1\nB2\n" + BINARY + b"\n"
        assert len(run("tables", "intents", "-n", "1").out.splitlines()) == 2
        run("transactions", "commit", "0:4")
        assert "there are no write intents in accounts" in run("tables", "intents", "accounts").err

    def test_intents_that_wait_to_be_finalised(self, run: Any, path: Path) -> None:
        """A large commit leaves them, `intents` lists them, `gc` makes values of them; the answers stay the same."""
        with Store.open(path) as store:
            txn = store.begin_transaction()
            for number in range(FINALIZE_INLINE_MAX + 1):
                store.table("accounts").put(b"N%05d" % number, b"1", txn=txn)
            store.commit_transaction(txn)
        rows = run("tables", "intents", "accounts", "-o", "json").json
        assert {row["state"] for row in rows} == {"COMMITTED"}
        assert run("tables", "get", "accounts", "N00000").out == "1\n"
        done = run("store", "gc", "-o", "json").json
        assert done["intentsFinalized"] == len(rows)
        assert run("tables", "intents", "accounts", "-o", "json").json == []
        assert run("tables", "get", "accounts", "N00000").out == "1\n"
