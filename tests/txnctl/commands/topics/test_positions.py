"""`txnctl topics positions`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.topics import (
    positions as topic_positions,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestPositions:
    """`topics positions`."""

    def test_landmarks_are_in_order_and_sum_up(self, run: Any, stuck: dict[str, str]) -> None:
        """Entries before, the entry itself, and entries after are all there are."""
        row = run("topics", "positions", "orders", "-o", "json").json
        assert not undeclared(row, topic_positions.POSITIONS)
        found = [(each["position"], each["kind"], each["name"]) for each in row["positions"]]
        assert found == [
            ("1:0", "ledger", "1"),
            ("1:1", "markDeletePosition", "billing"),
            ("1:5", "readPosition", "billing"),
            ("1:5", "maxReadPosition", None),
            ("1:6", "openTransaction", stuck["first"]),
            ("1:8", "openTransaction", stuck["second"]),
            ("1:8", "markDeletePosition", "monitor"),
            ("1:8", "readPosition", "monitor"),
            ("1:8", "lastConfirmedEntry", None),
        ]
        for each in row["positions"]:
            assert each["entriesBefore"] + 1 + each["entriesAfter"] == row["entries"] == 9

    @pytest.mark.usefixtures("stuck")
    def test_the_ruler_shows_what_is_readable(self, run: Any) -> None:
        """Two thirds of nine entries are; the bar moves to the right from line to line."""
        lines = run("topics", "positions", "orders").out.splitlines()[3:]
        rulers = [line.split()[2] for line in lines]
        assert [line.split()[0] for line in lines] == ["1:0", "1:1", "1:5", "1:6", "1:8"]
        places = [ruler.index("|") for ruler in rulers]
        assert places == sorted(places)
        assert {len(ruler) for ruler in rulers} == {topic_positions.RULER}
        assert all(set(ruler[places[-1] + 1 :]) <= {"-"} for ruler in rulers)
        assert lines[2].endswith("read by billing; maxReadPosition")

    @pytest.mark.parametrize("entries", [0, 1, 2, 5])
    def test_ledgers_are_landmarks_too(self, run: Any, path: Path, entries: int) -> None:
        """Of an empty topic `1:-1` is the only position."""
        run("topics", "create", "orders", "--ledger-entries", "2")
        with Store.open(path) as store:
            for _ in range(entries):
                store.create_producer("orders").send(b"x")
        row = run("topics", "positions", "orders", "-o", "json").json
        ledgers = [each["position"] for each in row["positions"] if each["kind"] == "ledger"]
        assert ledgers == [f"{number + 1}:0" for number in range((entries + 1) // 2)] or ["1:-1"]
        assert row["positions"][-1]["entriesAfter"] == 0
        assert run("topics", "positions", "orders").status == 0
