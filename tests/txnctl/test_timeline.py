"""The drawing of a topic, and `transactions timeline`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage import EARLIEST, Store
from tests.row_json import row_json
from txnctl.commands.transactions.timeline import MODEL
from txnctl.output.axis import Axis
from txnctl.output.field import undeclared
from txnctl.output.timeline import Drawing


def transaction(name: str, holds: tuple[str, str], positions: list[str]) -> dict[str, Any]:
    """A link of the chain, as far as it is drawn."""
    return {
        "txnId": name, "holdsFrom": holds[0], "holdsThrough": holds[1], "positions": positions,
        "orphaned": False, "overdue": False,
    }  # fmt: skip


def subscription(mark: str, read: str, in_flight: int, level: str = "READ_COMMITTED") -> dict[str, Any]:
    """A cursor, as far as it is drawn."""
    return {
        "markDeletePosition": mark, "readPosition": read, "unackedMessages": in_flight,
        "subscriptionIsolationLevel": level, "onOpen": "block",
    }  # fmt: skip


SMALL = {
    "ledgers": [
        {"ledgerId": 1, "entries": 4, "entriesBefore": 0},
        {"ledgerId": 2, "entries": 6, "entriesBefore": 4},
    ],
    "maxReadPosition": "1:1",
    "lastConfirmedEntry": "2:5",
    "openTransactions": [
        transaction("0:1", ("1:2", "2:1"), ["1:2", "2:0"]),
        transaction("0:2", ("2:2", "2:5"), ["2:2"]),
    ],
    "subscriptions": {
        "slow": subscription("1:0", "1:1", 1),
        "dirty": subscription("1:3", "1:3", 0, "READ_UNCOMMITTED"),
    },
}
"""Ten entries in two ledgers, two open transactions, two subscriptions."""


class TestDrawing:
    """Every line is to the same scale."""

    def test_a_small_topic_to_scale(self) -> None:
        """Two columns an entry."""
        assert [line for _, line in Drawing(SMALL, 32, plain=True).lines()] == [
            "  ledgers   |1------|2----------",
            "  readable  ####::::::::::::::::",
            "  0:1           o===o===........",
            "  0:2                   o=======",
            "  slow      ==++::::::::::::::::",
            "  dirty     ========------------",
            "                ^",
        ]

    def test_with_unicode_it_has_the_same_shape(self) -> None:
        """Sign for sign."""
        plain = [line for _, line in Drawing(SMALL, 32, plain=True).lines()]
        drawn = [line for _, line in Drawing(SMALL, 32, plain=False).lines()]
        assert [len(line) for line in drawn] == [len(line) for line in plain]
        assert drawn[2] == "  0:1           ●━━━●━━━········"

    @pytest.mark.parametrize("plain", [True, False])
    @pytest.mark.parametrize("width", [40, 60, 80, 200])
    def test_it_fits_the_width(self, width: int, plain: bool) -> None:
        """And is ASCII where that is asked for."""
        many = {
            f"subscription-{number}-{'x' * number}": subscription("1:0", "1:1", 1) for number in range(30)
        }
        txns = [transaction(f"0:{number}", ("1:2", "2:5"), ["1:2..2:5"]) for number in range(30)]
        drawing = Drawing({**SMALL, "subscriptions": many, "openTransactions": txns}, width, plain=plain)
        lines = [line for _, line in drawing.lines()]
        assert max(map(len, lines)) <= width
        assert "18 more open transactions" in "\n".join(lines)
        assert "10 more subscriptions" in "\n".join(lines)
        assert "".join(lines).isascii() is plain

    def test_an_empty_topic(self) -> None:
        """Has a line without anything on it."""
        empty = {
            "ledgers": [{"ledgerId": 1, "entries": 0, "entriesBefore": 0}], "maxReadPosition": "1:-1",
            "lastConfirmedEntry": "1:-1", "openTransactions": [], "subscriptions": {},
        }  # fmt: skip
        lines = [line for _, line in Drawing(empty, 40, plain=True).lines()]
        assert lines[0].startswith("  ledgers   ---")

    def test_who_needs_attention_stands_out(self) -> None:
        """An orphan's line is of another kind."""
        gone = {**SMALL["openTransactions"][0], "orphaned": True}
        kinds = [kind for kind, _ in Drawing({**SMALL, "openTransactions": [gone]}, 40, plain=True).lines()]
        assert kinds[2] == "alarm"


class TestAxis:
    """Positions keep their order on the line."""

    @given(
        st.lists(st.integers(1, 10_000), min_size=1, max_size=8),
        st.integers(20, 200),
        st.floats(0, 1),
        st.lists(st.floats(0, 1), min_size=2, max_size=2),
    )
    def test_order_is_kept_and_nothing_lies_outside(
        self, sizes: list[int], columns: int, focus: float, places: list[float]
    ) -> None:
        """On one scale or on two."""
        ledgers = [
            {"ledgerId": number, "entries": size, "entriesBefore": sum(sizes[:number])}
            for number, size in enumerate(sizes)
        ]

        def position(place: float) -> str:
            left = int(place * (sum(sizes) - 1))
            for number, size in enumerate(sizes):
                if left < size:
                    return f"{number}:{left}"
                left -= size
            raise AssertionError("every place is in some ledger")

        axis = Axis(ledgers, columns, position(focus))
        first, second = sorted(places)
        assert axis.through(position(first)) == int(first * (sum(sizes) - 1)) + 1
        assert 0 <= axis.cell(position(first)) <= axis.cell(position(second)) < columns
        assert 0 <= axis.end(position(first)) <= axis.end(position(second)) <= columns
        assert axis.end(f"{len(sizes) - 1}:{sizes[-1] - 1}") == columns

    def test_what_is_stuck_at_the_end_of_a_long_topic_is_drawn_large(self) -> None:
        """The part before it takes a quarter of the line."""
        ledgers = [{"ledgerId": 1, "entries": 1_000_000, "entriesBefore": 0}]
        axis = Axis(ledgers, 80, "1:999899")
        assert (axis.join, axis.end("1:999899"), axis.cell("1:999949")) == (20, 20, 49)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An open store with a transaction stuck on `orders`, that every command is told of."""
    Store.create(tmp_path / "s")
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "s"))
    with Store.open(tmp_path / "s") as opened:
        opened.create_topic("orders")
        opened.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        producer = opened.create_producer("orders")
        producer.send(b"half", txn=opened.begin_transaction(labels={"job": "x\x1b[2J"}))
        producer.send(b"whole")
        yield opened
        assert row_json(opened.maintenance.verify_store()) == []


class TestCommand:
    """`transactions timeline`."""

    def test_json_is_the_model(self, run: Any, store: Store) -> None:
        """Every field of it is declared."""
        shown, model = (
            run("transactions", "timeline", "orders", "-o", "json").json,
            row_json(store.reports.topic_timeline("orders")),
        )
        assert not undeclared(shown, MODEL)
        for row in (shown, model):
            for each in row["openTransactions"]:
                for name in ("ageMs", "idleMs", "deadlineInMs"):
                    del each[name]
            del row["asOfAt"], row["asOfMs"]
        assert shown == model

    @pytest.mark.parametrize(
        ("variables", "is_ascii"),
        [
            ({"LANG": "C"}, True),
            ({"LANG": "de_DE.UTF-8"}, False),
            ({"LANG": "en_US.utf8", "LC_ALL": "C"}, True),
            ({"LC_ALL": "C.UTF-8"}, False),
            ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
        ],
    )
    def test_the_locale_decides_about_ascii(
        self,
        run: Any,
        store: Store,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        is_ascii: bool,
    ) -> None:
        """Unless --ascii asks for it. No label drives the terminal."""
        for name in ("LANG", "LC_ALL", "LC_CTYPE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        out = run("transactions", "timeline", "orders").out
        assert out.isascii() is is_ascii
        assert "\x1b" not in out
        assert run("transactions", "timeline", "orders", "--ascii").out.isascii()
        assert out.endswith("Next: txnctl transactions explain 0:1\n")

    @pytest.mark.parametrize("columns", [50, 72, 120])
    def test_it_fits_the_terminal(
        self, run: Any, store: Store, monkeypatch: pytest.MonkeyPatch, columns: int
    ) -> None:
        """The drawing, and what stands below it."""
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        lines = run("transactions", "timeline", "orders", terminal=True).out.splitlines()
        assert max(map(len, lines[1:])) <= columns

    def test_an_unknown_topic_is_not_found(self, run: Any, store: Store) -> None:
        """Exit 3."""
        assert run("transactions", "timeline", "nowhere").status == 3


def test_a_line_of_the_legend_ends_between_two_signs(run: Any, path: Path) -> None:
    """Whatever the width, a sign stands with what it means."""
    with Store.open(path) as store:
        store.create_topic("legend")
        store.admin.subscriptions.create_subscription("legend", "s")
        producer, txn = store.create_producer("legend"), store.begin_transaction()
        producer.send(b"half", txn=txn)
        producer.send(b"whole")
    entries = (": blocked", "its messages", "waits for it", "and after it", "in flight")
    out = run("transactions", "timeline", "legend", "--ascii").out
    assert [each for each in entries if each not in out] == []
    assert "\u00a0" not in out
