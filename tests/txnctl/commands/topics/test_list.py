"""`txnctl topics list`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.topics.list import LISTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestList:
    """`topics list`."""

    def test_an_empty_list_is_success(self, run: Any) -> None:
        """Nothing on standard output but what the format needs."""
        outcome = run("topics", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "topics create" in outcome.err
        assert run("topics", "list", "-o", "json").out == "[]\n"
        assert run("topics", "list", "-o", "ndjson").out == ""

    @pytest.mark.usefixtures("stuck")
    def test_each_topic_has_its_counts(self, run: Any) -> None:
        """The same in JSON and in the table."""
        run("topics", "create", "empty")
        empty, orders = run("topics", "list", "-o", "json").json
        assert not undeclared(orders, LISTED)
        assert orders["topic"] == "persistent://public/default/orders"
        assert (orders["msgCount"], orders["markerCount"]) == (11, 1)
        assert (orders["maxReadPosition"], orders["lastConfirmedEntry"]) == ("1:5", "1:8")
        assert (orders["ongoingTxnCount"], orders["uncommittedMessages"]) == (2, 3)
        assert (empty["msgCount"], empty["firstPosition"], empty["lastPublishMs"]) == (0, None, None)
        table = run("topics", "list").out.splitlines()
        assert table[0].split()[:3] == ["TOPIC", "MESSAGES", "SIZE"]
        assert [line.split()[0] for line in table[1:]] == ["empty", "orders"]
        assert run("topics", "list", "-o", "name").out == "empty\norders\n"

    @pytest.mark.usefixtures("stuck")
    def test_its_short_name_is_ls(self, run: Any) -> None:
        """As everywhere."""
        assert run("topics", "ls", "-o", "name").out == "orders\n"
