"""Timeline: `txnctl/output/timeline.py`."""

from __future__ import annotations

import pytest

from storage.reports.stats import SubscriptionStats
from storage.reports.timeline import Blocking
from storage.values.position import Position
from tests.txnctl.typed_rows import QUIET, STATS, blocking, ledgers_of
from txnctl.output.timeline import Drawing


def transaction(name: str, holds: tuple[str, str], positions: list[str]) -> Blocking:
    """A link of the chain."""
    return blocking(name, holds[0], holds[1], holds[1], positions)


def subscription(mark: str, read: str, in_flight: int, level: str = "READ_COMMITTED") -> SubscriptionStats:
    """A cursor, as far as it is drawn."""
    return STATS._replace(
        mark_delete_position=Position.parse(mark), read_position=Position.parse(read),
        unacked_messages=in_flight, subscription_isolation_level=level,
    )  # fmt: skip


SMALL = QUIET._replace(
    ledgers=ledgers_of([4, 6]),
    max_read_position=Position(1, 1),
    last_confirmed_entry=Position(2, 5),
    open_transactions=[
        transaction("0:1", ("1:2", "2:1"), ["1:2", "2:0"]),
        transaction("0:2", ("2:2", "2:5"), ["2:2"]),
    ],
    subscriptions={
        "slow": subscription("1:0", "1:1", 1),
        "dirty": subscription("1:3", "1:3", 0, "READ_UNCOMMITTED"),
    },
)
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
        txns = [transaction(f"0:{number}", ("1:2", "2:5"), ["1:2..2:5"]) for number in range(1, 31)]
        drawing = Drawing(SMALL._replace(subscriptions=many, open_transactions=txns), width, plain=plain)
        lines = [line for _, line in drawing.lines()]
        assert max(map(len, lines)) <= width
        assert "18 more open transactions" in "\n".join(lines)
        assert "10 more subscriptions" in "\n".join(lines)
        assert "".join(lines).isascii() is plain

    def test_an_empty_topic(self) -> None:
        """Has a line without anything on it."""
        start = Position(1, -1)
        empty = QUIET._replace(ledgers=ledgers_of([0]), max_read_position=start, last_confirmed_entry=start)
        lines = [line for _, line in Drawing(empty, 40, plain=True).lines()]
        assert lines[0].startswith("  ledgers   ---")

    def test_who_needs_attention_stands_out(self) -> None:
        """An orphan's line is of another kind."""
        first = SMALL.open_transactions[0]
        gone = first._replace(holder=first.holder._replace(orphaned=True))
        drawing = Drawing(SMALL._replace(open_transactions=[gone]), 40, plain=True)
        kinds = [kind for kind, _ in drawing.lines()]
        assert kinds[2] == "alarm"
