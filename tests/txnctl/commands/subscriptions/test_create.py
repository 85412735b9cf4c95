"""`txnctl subscriptions create`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from txnctl.commands.subscriptions import (
    create,
)
from txnctl.commands.subscriptions.one_subscription import STATS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


FULL = "persistent://public/default/orders"


class TestCreateAndList:
    """`create`, `list`, `show`, `stats`."""

    def test_defaults(self, run: Any) -> None:
        """Exclusive, READ_COMMITTED, from the end, nobody attached."""
        outcome = run("subscriptions", "create", "orders", "billing")
        assert outcome.out == (
            "Created subscription billing on orders (Exclusive, READ_COMMITTED); its backlog begins after 1:-1.\n"
        )
        row = run("subscriptions", "show", "orders", "billing", "-o", "json").json
        assert not undeclared(row, STATS)
        assert (row["topic"], row["subscription"]) == (FULL, "billing")
        assert (row["type"], row["subscriptionIsolationLevel"]) == ("Exclusive", "READ_COMMITTED")
        assert (row["consumers"], row["deadLetterTopic"], row["maxRedeliverCount"]) == ([], None, None)

    @pytest.mark.parametrize("level", ["READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted"])
    @pytest.mark.parametrize("kind", ["KEY_SHARED", "Key_Shared", "key-shared"])
    def test_constants_are_taken_in_every_spelling(self, run: Any, level: str, kind: str) -> None:
        """And printed as Pulsar has them."""
        words = ("--isolation-level", level, "--subscription-type", kind, "-o", "json")
        row = run("subscriptions", "create", "orders", "audit", *words).json
        assert not undeclared(row, create.CREATED)
        assert (row["type"], row["subscriptionIsolationLevel"]) == ("Key_Shared", "READ_UNCOMMITTED")

    @pytest.mark.usefixtures("billing")
    @pytest.mark.parametrize(
        ("start", "first"),
        [
            ("earliest", "1:0"),
            ("latest", None),
            ("1:3", "1:3"),
            ("@2020-01-01", "1:0"),
            ("@2999-01-01", None),
        ],
    )
    def test_it_begins_where_it_is_told(self, run: Any, store: Store, start: str, first: str | None) -> None:
        """earliest, latest, a position, a time."""
        assert run("subscriptions", "create", "orders", "s", "--from", start).status == 0
        peeked = store.reports.peek_messages("orders", "s", 1)
        assert (str(peeked[0].message_id) if peeked else None) == first

    def test_a_second_one_of_the_name_is_a_conflict(self, run: Any) -> None:
        """Exit 4, the first is left as it is; an unknown topic is 3, a bad name 2."""
        run("subscriptions", "create", "orders", "billing", "--subscription-type", "shared")
        assert run("subscriptions", "create", "orders", "billing").status == 4
        assert run("subscriptions", "show", "orders", "billing", "-o", "json").json["type"] == "Shared"
        assert run("subscriptions", "create", "nowhere", "billing").status == 3
        assert run("subscriptions", "create", "orders", "../x").status == 2
        assert run("subscriptions", "create", "orders", "x", "--from", "1:x").status == 2
