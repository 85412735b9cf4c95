"""`txnctl topics log`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.topics import (
    log,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestLog:
    """`topics log`."""

    def test_markers_and_states_are_shown(self, run: Any, stuck: dict[str, str]) -> None:
        """Every entry, in order, as it is stored."""
        rows = run("topics", "log", "orders", "-o", "json").json
        assert not undeclared(rows[0], log.ENTRIES)
        assert [
            (each["position"], each["kind"], each["messages"], each["txnId"], each["txnState"])
            for each in rows
        ] == [
            *[(f"1:{number}", "messages", 1, None, None) for number in range(4)],
            ("1:4", "messages", 1, stuck["aborted"], "ABORTED"),
            ("1:5", "abort", 0, stuck["aborted"], "ABORTED"),
            ("1:6", "messages", 2, stuck["first"], "OPEN"),
            ("1:7", "messages", 3, None, None),
            ("1:8", "messages", 1, stuck["second"], "OPEN"),
        ]
        assert rows[5]["producerName"] is None
        assert rows[0]["producerName"] == "loader"
        assert len(run("topics", "log", "orders").out.splitlines()) == 10

    @pytest.mark.usefixtures("stuck")
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("-n", "2"), ["1:7", "1:8"]),
            (("--range", "1:3..", "-n", "2"), ["1:3", "1:4"]),
            (("--range", "-3", "-n", "2"), ["1:6", "1:7"]),
            (("--since", "1h", "-n", "1"), ["1:0"]),
            (("--range", "1h", "-n", "1"), ["1:0"]),
            (("--since", "2999-01-01"), []),
        ],
    )
    def test_a_count(self, run: Any, words: tuple[str, ...], expected: list[str]) -> None:
        """The last entries; of a range its first ones."""
        assert run("topics", "log", "orders", *words, "-o", "name").out.split() == expected

    @pytest.mark.usefixtures("stuck")
    def test_two_counts_exclude_each_other(self, run: Any) -> None:
        """Both say how many."""
        assert run("topics", "log", "orders", "--tail", "2", "-n", "2").status == 2

    @pytest.mark.usefixtures("stuck")
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("1:3", ["1:3"]),
            ("1:3..1:5", ["1:3", "1:4", "1:5"]),
            ("1:7..", ["1:7", "1:8"]),
            ("..1:1", ["1:0", "1:1"]),
            ("1:7:2..", ["1:7", "1:8"]),
            ("earliest..1:0", ["1:0"]),
            ("..earliest", []),
            ("latest..", []),
            ("-2", ["1:7", "1:8"]),
            ("-9999", [f"1:{number}" for number in range(9)]),
            ("@1970-01-01..1:0", ["1:0"]),
            ("..@1970-01-01", []),
            ("@9999-01-01", []),
            ("5:0..", []),
        ],
    )
    def test_a_range_says_which(self, run: Any, words: str, expected: list[str]) -> None:
        """The grammar of ranges, both ends included."""
        assert run("topics", "log", "orders", "--range", words, "-o", "name").out.split() == expected

    def test_the_newest_are_counted_over_ledgers(self, run: Any, path: Path) -> None:
        """A ledger that has fewer than asked for is taken whole."""
        run("topics", "create", "orders", "--ledger-entries", "3")
        with Store.open(path) as store:
            for number in range(8):
                store.create_producer("orders").send(b"%d" % number)
        assert run("topics", "log", "orders", "--range", "-3", "-o", "name").out.split() == [
            "2:2",
            "3:0",
            "3:1",
        ]
        assert run("topics", "log", "orders", "--range", "-5", "-o", "name").out.split()[0] == "2:0"
        assert run("topics", "log", "orders", "--range", "2:1..3:0", "-o", "name").out.split() == [
            "2:1",
            "2:2",
            "3:0",
        ]

    def test_a_time_begins_at_the_first_entry_since_then(self, run: Any, path: Path) -> None:
        """In whatever ledger that is."""
        run("topics", "create", "orders", "--ledger-entries", "2")
        with Store.open(path) as store:
            for number in range(5):
                store.create_producer("orders").send(b"%d" % number)
        rows = run("topics", "log", "orders", "-o", "json").json
        for row in rows:
            time = row["publishTimeMs"]
            expected = [each["position"] for each in rows if each["publishTimeMs"] >= time]
            assert run("topics", "log", "orders", "--range", f"@{time}", "-o", "name").out.split() == expected
            upto = [each["position"] for each in rows if each["publishTimeMs"] <= time]
            assert run("topics", "log", "orders", "--range", f"..@{time}", "-o", "name").out.split() == upto
