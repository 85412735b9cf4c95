"""`txnctl store space`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txnctl.commands.store import space
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestInfo:
    """`store info`, `space`."""

    def test_space_adds_up_to_no_more_than_the_file(self, run: Any, path: Path) -> None:
        """The largest first."""
        rows = run("store", "space", "-o", "json").json
        assert not undeclared(rows[0], space.SPACE)
        sizes = [row["bytes"] for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert 0 < sum(sizes) <= (path / "data.mdb").stat().st_size


class TestTopics:
    """`store space --topics`."""

    def test_topics_and_tables_stand_by_size(self, run: Any) -> None:
        """Entries, other records, and what a trim frees once no subscription holds the topic."""
        for words in (
            "topics create small",
            "topics create large",
            "tables create rows",
            "tables put rows k v",
        ):
            assert run(*words.split()).status == 0
        assert run("subscriptions", "create", "large", "billing").status == 0
        assert run("produce", "large", "-m", "x" * 5000).status == 0
        assert run("topics", "config", "large", "--retention-size", "0").status == 0
        rows = run("store", "space", "--topics", "-o", "json").json
        assert not undeclared(rows[0], space.SPACE)
        assert [row["name"] for row in rows] == ["large", "orders", "rows", "small"]
        large = rows[0]
        assert large["contentBytes"] > 5000
        assert large["sizeBytes"] == large["contentBytes"] + large["otherBytes"]
        assert (large["freedBytes"], large["heldBy"], large["isExact"]) == (0, "subscription billing", True)
        assert run("subscriptions", "clear-backlog", "large", "billing", "--yes").status == 0
        (largest,) = run("store", "space", "--topics", "-n", "1", "-o", "json").json
        assert largest["name"] in ("large", "rows")
        assert "NAME    KIND " in run("store", "space", "--topics").out
        assert run("store", "space", "--topics", "--freeable").status == 2
        assert run("store", "space", "--topics", "-o", "name").status == 2


class TestFreeable:
    """`store space --freeable`."""

    def test_each_topic_and_table_has_its_commands(self, run: Any) -> None:
        """A harmless change comes before a truncation, which frees all; a table goes whole; names are refused."""
        assert run("topics", "create", "old").status == 0
        assert run("subscriptions", "create", "old", "billing").status == 0
        assert run("produce", "old", "-m", "unread").status == 0
        assert run("topics", "create", "read").status == 0
        assert run("produce", "read", "-m", "by all").status == 0
        assert run("tables", "create", "rows").status == 0
        assert run("tables", "put", "rows", "k", "v").status == 0
        rows = run("store", "space", "--freeable", "-o", "json").json
        assert not undeclared(rows[0], space.SPACE)
        told = {(row["kind"], row["name"]): row for row in rows}  # the last command of each
        assert "topics truncate old" in told["topic", "old"]["command"]
        assert told["topic", "old"]["heldBy"] == "subscription billing"
        assert told["topic", "old"]["freedBytes"] == told["topic", "old"]["sizeBytes"] > 0
        assert "topics config read --retention-size 0" in told["topic", "read"]["command"]
        assert "tables delete rows" in told["table", "rows"]["command"]
        assert run("topics", "config", "read", "--retention-size", "0").status == 0
        lines = run("store", "space", "--freeable").out
        assert "topics trim read" in lines
        assert "; the rest is held" not in lines
        assert run("store", "space", "--freeable", "-o", "name").status == 2

    def test_a_store_without_content_is_noted_once(self, run: Any) -> None:
        """One line on standard error, and an empty result."""
        assert run("topics", "delete", "orders", "--yes", "--force").status == 0
        assert run("store", "gc", "--yes").status == 0
        outcome = run("store", "space", "--freeable")
        assert (outcome.out, outcome.err) == ("", "txnctl: no topic or table takes space\n")

    def test_a_backlog_that_holds_a_topic_has_a_command_of_its_own(self, run: Any) -> None:
        """The message that billing has not acknowledged: named, with the command, before the truncation."""
        for words in ("topics create old", "subscriptions create old billing", "produce old -m unread"):
            assert run(*words.split()).status == 0
        rows = [row for row in run("store", "space", "--freeable", "-o", "json").json if row["name"] == "old"]
        assert [row["command"].split()[1:3] for row in rows] == [
            ["subscriptions", "clear-backlog"],
            ["topics", "truncate"],
        ]
        assert not undeclared(rows[0], space.SPACE)
        assert rows[0]["freedBytes"] == rows[0]["sizeBytes"] > 0
        told = run("store", "space", "--freeable").out
        assert (
            " is not acknowledged by subscription billing\n  Next: txnctl subscriptions clear-backlog old billing"
            in told
        )
        assert run("subscriptions", "clear-backlog", "old", "billing", "--yes").status == 0
        told = run("store", "space", "--freeable").out
        assert "clear-backlog" not in told
        assert "topics config old --retention-size 0" in told
