"""`txnctl subscriptions stats`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.subscriptions import (
    cursor_move,
    delete,
    evict,
    seek,
    update,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestCursor:
    """`seek`, `skip`, `clear-backlog`."""

    @pytest.mark.parametrize(
        ("words", "fields"),
        [
            (("seek", "orders", "billing", "1:3"), seek.SOUGHT),
            (("skip", "orders", "billing", "4"), cursor_move.SKIPPED),
            (("clear-backlog", "orders", "billing"), cursor_move.SKIPPED),
            (("evict", "orders", "billing"), evict.EVICTED),
            (
                ("update", "orders", "billing", "--isolation-level", "read-uncommitted"),
                update.UPDATED,
            ),
            (("delete", "orders", "billing"), delete.DELETED),
        ],
    )
    def test_a_dry_run_says_what_the_real_one_does(
        self, run: Any, words: tuple[str, ...], fields: Any
    ) -> None:
        """Rule 10: the same numbers; and it changes nothing, and leaves nothing in the audit trail."""
        before = run("subscriptions", "stats", "orders", "billing", "-o", "json").json
        dry = run("subscriptions", *words, "--dry-run", "-o", "json").json
        assert run("subscriptions", *words, "--dry-run").out.startswith("DRY RUN: nothing was changed.\n\n")
        after = run("subscriptions", "stats", "orders", "billing", "-o", "json").json
        for row in (before, after):
            del row["asOfAt"], row["asOfMs"]
        assert after == before
        real = run("subscriptions", *words, "--yes", "--reason", "because", "-o", "json").json
        assert not undeclared(real, fields)
        assert (dry.pop("dryRun"), real.pop("dryRun")) == (True, False)
        assert dry == real
