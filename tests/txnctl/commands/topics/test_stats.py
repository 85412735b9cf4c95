"""`txnctl topics stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.topics import (
    stats,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestStats:
    """`topics stats`."""

    def test_json_has_pulsars_names(self, run: Any, stuck: dict[str, str]) -> None:
        """Subscriptions are a map by name, with the level and the split backlog of each."""
        row = run("topics", "stats", "orders", "-o", "json").json
        assert not undeclared(row, stats.STATS)
        assert row["maxReadPosition"] == "1:5"
        assert row["readableMessages"] == 4
        assert row["skippedMessages"] == 1
        assert row["blockedMessages"] == 3
        assert row["blockedBy"]["txnId"] == stuck["first"]
        assert row["blockedBy"]["ownerState"] == "detached"
        billing, monitor = row["subscriptions"]["billing"], row["subscriptions"]["monitor"]
        assert billing["type"] == "Shared"
        assert billing["subscriptionIsolationLevel"] == "READ_COMMITTED"
        assert [billing[name] for name in ("visible", "blocked", "uncommitted", "pending")] == [2, 3, 3, 0]
        assert billing["msgBacklog"] == 8
        assert monitor["subscriptionIsolationLevel"] == "READ_UNCOMMITTED"
        assert monitor["msgBacklog"] == 0

    def test_the_table_tells_who_blocks_and_what_to_type(self, run: Any, stuck: dict[str, str]) -> None:
        """Line by line as the operator reads it."""
        out = run("topics", "stats", "orders").out
        head, positions, readable, blocked, uncommitted, _, headings, billing, monitor, _, following = (
            out.splitlines()
        )
        assert head.startswith("orders      11 messages, 1 marker, ")
        assert head.split("as of ")[1].endswith("Z")
        assert positions == "  positions   first 1:0   maxReadPosition 1:5   lastConfirmedEntry 1:8"
        assert readable == "  readable    4 committed (1 aborted skipped)"
        assert blocked.startswith("  BLOCKED     3 committed, oldest waiting ")
        assert blocked.endswith(f", behind transaction {stuck['first']}")
        assert uncommitted == "  uncommitted 3 in 2 open transactions"
        assert headings.split()[:4] == ["SUBSCRIPTION", "TYPE", "ISOLATION", "LEVEL"]
        assert billing.split() == [
            "billing",
            "Shared",
            "READ_COMMITTED",
            "1:1",
            "2",
            "3",
            "0",
            "0",
            "no-consumer",
        ]
        assert monitor.split() == [
            "monitor",
            "Exclusive",
            "READ_UNCOMMITTED",
            "1:8",
            "0",
            "0",
            "0",
            "0",
            "ok",
        ]
        assert following == f"Next: txnctl transactions explain {stuck['first']}"

    @pytest.mark.usefixtures("stuck")
    def test_the_next_command_is_one_that_exists(self, run: Any) -> None:
        """It can be typed as it stands."""
        words = run("topics", "stats", "orders").out.splitlines()[-1].removeprefix("Next: txnctl ").split()
        assert run(*words).status == 0

    def test_an_empty_topic_is_two_lines_of_facts(self, run: Any) -> None:
        """No section that has nothing to say."""
        run("topics", "create", "orders")
        out = run("topics", "stats", "orders").out.splitlines()
        assert len(out) == 3
        assert out[0].startswith("orders      0 messages, 0 markers, 0 B")
        assert "Next" not in out[-1]

    @pytest.mark.usefixtures("stuck")
    def test_colour_is_for_terminals_and_changes_no_word(self, run: Any) -> None:
        """Without it there is not one escape character."""
        plain = run("topics", "stats", "orders", "--color", "never", terminal=True).out
        coloured = run("topics", "stats", "orders", "--color", "always").out
        assert "\x1b" not in plain
        assert "\x1b[" in coloured
        for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"):
            coloured = coloured.replace(code, "")
        assert coloured.splitlines()[1:3] == plain.splitlines()[1:3]

    @pytest.mark.usefixtures("stuck")
    def test_attached_consumers_are_counted(self, run: Any, path: Path) -> None:
        """With one attached the verdict is no longer `no-consumer`."""
        with Store.open(path) as store, store.subscribe("orders", "billing"):
            row = run("topics", "stats", "orders", "-o", "json").json["subscriptions"]["billing"]
            line = next(
                each for each in run("topics", "stats", "orders").out.splitlines() if "billing" in each
            )
        assert [each["state"] for each in row["consumers"]] == ["alive"]
        assert line.split()[-2:] == ["1", "mixed"]
