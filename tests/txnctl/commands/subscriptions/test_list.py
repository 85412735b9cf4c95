"""`txnctl subscriptions list`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from txnctl.commands.subscriptions.list import LISTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestCreateAndList:
    """`create`, `list`, `show`, `stats`."""

    @pytest.mark.usefixtures("billing")
    def test_list_of_one_topic_or_of_all(self, run: Any, store: Store) -> None:
        """Table, JSON, names."""
        store.create_topic("payments")
        store.admin.subscriptions.create_subscription("payments", "loader")
        assert run("subs", "ls", "-o", "name").out == "billing\nloader\n"
        assert run("subscriptions", "list", "orders", "-o", "name").out == "billing\n"
        row = run("subscriptions", "list", "orders", "-o", "json").json[0]
        assert not undeclared(row, LISTED)
        assert (row["visible"], row["msgBacklog"], row["verdict"]) == (5, 5, "no-consumer")
        line = run("subscriptions", "list", "orders").out.splitlines()[1]
        assert line.split() == [
            "orders", "billing", "Shared", "READ_COMMITTED", "1:-1", "5", "0", "0", "0", "0", "0", "0", "no-consumer",
        ]  # fmt: skip
        assert run("subscriptions", "list", "nowhere").status == 3

    def test_none_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("subscriptions", "list", "-o", "json").json == []
        outcome = run("subscriptions", "list", "orders")
        assert (outcome.status, outcome.out) == (0, "")
        assert "there are no subscriptions on orders" in outcome.err
