"""Timeline: `txnctl/output/timeline.py`."""

from __future__ import annotations

from typing import Any

import pytest

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
