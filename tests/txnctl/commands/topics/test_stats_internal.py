"""`txnctl topics stats-internal`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.topics import (
    stats_internal,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestStatsInternal:
    """`topics stats-internal`."""

    def test_json_has_ledgers_cursors_and_segments(self, run: Any, stuck: dict[str, str]) -> None:
        """All declared, all from one view."""
        row = run("topics", "stats-internal", "orders", "-o", "json").json
        assert not undeclared(row, stats_internal.INTERNAL)
        assert [(ledger["ledgerId"], ledger["entries"]) for ledger in row["ledgers"]] == [(1, 9)]
        assert row["cursors"]["monitor"]["markDeletePosition"] == "1:8"
        assert [each["txnId"] for each in row["openTransactions"]] == [stuck["first"], stuck["second"]]
        assert row["abortedSegments"][0]["transactions"] == 1

    @pytest.mark.usefixtures("stuck")
    def test_the_table_has_a_section_for_each(self, run: Any) -> None:
        """And none for what is not there."""
        out = run("topics", "stats-internal", "orders").out
        for heading in ("LEDGER ", "CURSOR ", "OPEN TRANSACTION", "ABORTED SEGMENT"):
            assert heading in out
        run("topics", "create", "empty")
        out = run("topics", "stats-internal", "empty").out
        assert "LEDGER " in out
        assert "CURSOR" not in out
