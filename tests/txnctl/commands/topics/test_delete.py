"""`txnctl topics delete`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.commands.topics import (
    delete,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestDelete:
    """`topics delete`."""

    def test_without_a_terminal_it_needs_yes(self, run: Any) -> None:
        """Exit 9, the plan on standard error, and the topic is there."""
        run("topics", "create", "orders")
        outcome = run("topics", "delete", "orders")
        assert (outcome.status, outcome.out) == (9, "")
        assert "topic orders: 0 messages" in outcome.err
        assert run("topics", "list", "-o", "name").out == "orders\n"

    def test_it_deletes_and_leaves_a_record(self, run: Any, path: Path) -> None:
        """With the reason; a topic of that name can be made again, and its ledgers go on counting."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x")
            store.subscribe("orders", "billing").close()
        row = run("topics", "delete", "orders", "--yes", "--reason", "moved", "-o", "json").json
        assert not undeclared(row, delete.DELETED)
        assert (row["messages"], row["subscriptions"], row["dryRun"]) == (1, ["billing"], False)
        with Store.open(path) as store:
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "moved"
        assert run("topics", "list", "-o", "json").json == []
        run("topics", "create", "orders")
        with Store.open(path) as store:
            assert str(store.create_producer("orders").send(b"x")) == "2:0"

    def test_a_dry_run_has_the_numbers_of_the_real_one(self, run: Any, path: Path) -> None:
        """And changes nothing, not one byte."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send_batch([b"x"] * 7)
        before = (path / "data.mdb").read_bytes()
        dry = run("topics", "delete", "orders", "--dry-run", "-o", "json").json
        assert (path / "data.mdb").read_bytes() == before
        shown = run("topics", "delete", "orders", "--dry-run").out
        assert shown.startswith("DRY RUN: nothing was changed.\n")
        real = run("topics", "delete", "orders", "--yes", "-o", "json").json
        assert dry.pop("dryRun")
        assert not real.pop("dryRun")
        assert dry == real

    def test_what_holds_it_refuses_and_force_overrides(self, run: Any, stuck: dict[str, str]) -> None:
        """Open transactions are named; with --force they are aborted first."""
        refused = run("topics", "delete", "orders", "--yes", "-o", "json")
        assert refused.status == 4
        assert refused.error["code"] == "object-held"
        assert stuck["first"] in refused.error["message"]
        assert run("topics", "delete", "orders", "--dry-run").status == 4
        row = run("topics", "delete", "orders", "--yes", "--force", "-o", "json").json
        assert row["transactionsAborted"] == [stuck["first"], stuck["second"]]
