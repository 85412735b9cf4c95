"""`txnctl tables stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.limits import (
    FINALIZE_INLINE_MAX,
    TABLE_HOLDERS_MAX,
)
from txnctl.commands.tables import stats
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_stats_lead_to_who_holds_keys(self, run: Any) -> None:
        """Where there are write intents the next command is named."""
        assert "Next:" not in run("tables", "stats", "accounts").out
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        assert "Next: txnctl tables intents accounts" in run("tables", "stats", "accounts").out

    def test_stats_say_who_holds_keys(self, run: Any, path: Path) -> None:
        """Open transactions, the oldest first, each with its intents; those of ended ones are counted apart."""
        for _ in range(2):
            run("transactions", "begin", "--priority", "high")
        for txn, key in (("0:5", "B1"), ("0:4", "B2"), ("0:4", "new"), ("0:4", "new")):
            assert run("tables", "put", "accounts", key, "1", "--txn", txn).status == 0
        with Store.open(path) as store:
            done = store.begin_transaction()
            for number in range(FINALIZE_INLINE_MAX + 1):
                store.table("accounts").put(b"~%d" % number, b"", txn=done)
            store.commit_transaction(done)
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert not undeclared(row, stats.STATS)
        assert (row["intents"], row["heldIntents"], row["ongoingTxnCount"]) == (68, 3, 2)
        assert [(each["txnId"], each["intents"], each["priority"]) for each in row["holders"]] == [
            ("0:4", 2, "high"),
            ("0:5", 1, "high"),
        ]
        assert {", ".join(each) for each in row["holders"]} == {
            "txnId, intents, priority, owner, ownerState, lastUser, lastUserState, ageMs"
        }
        lines = run("tables", "stats", "accounts").out.splitlines()
        assert (
            "  intents     68: 3 held by 2 open transactions, 65 left by ended ones, to be finalised" in lines
        )
        assert [line.split()[:2] for line in lines if "detached" in line] == [["0:4", "2"], ["0:5", "1"]]
        for txn in ("0:4", "0:5"):
            run("transactions", "abort", txn)
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert (row["intents"], row["heldIntents"], row["ongoingTxnCount"], row["holders"]) == (65, 0, 0, [])
        assert "Next: txnctl store gc" in run("tables", "stats", "accounts").out

    def test_stats_name_the_oldest_holders_and_count_the_others(self, run: Any, path: Path) -> None:
        """Of thirty, twenty are named; whose other table's keys they hold is not in it."""
        with Store.open(path) as store:
            store.create_table("other")
            txns = [store.begin_transaction() for _ in range(30)]
            for number, txn in enumerate(reversed(txns)):
                store.table("accounts").put(b"k%d" % number, b"", txn=txn)
            store.table("other").put(b"k", b"", txn=store.begin_transaction())
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert [each["txnId"] for each in row["holders"]] == [str(txn) for txn in txns[:TABLE_HOLDERS_MAX]]
        assert (row["ongoingTxnCount"], row["heldIntents"]) == (30, 30)
        assert "  and 10 more" in run("tables", "stats", "accounts").out.splitlines()
        assert run("tables", "stats", "other", "-o", "json").json["ongoingTxnCount"] == 1
