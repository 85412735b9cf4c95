"""Axis: `txnctl/output/axis.py`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.values.position import Position
from tests.txnctl.typed_rows import ledgers_of
from txnctl.output.axis import Axis, run_of


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

        def position(place: float) -> Position:
            left = int(place * (sum(sizes) - 1))
            for number, size in enumerate(sizes):
                if left < size:
                    return Position(number, left)
                left -= size
            raise AssertionError("every place is in some ledger")

        axis = Axis(ledgers_of(sizes, first=0), columns, position(focus))
        first, second = sorted(places)
        assert axis.through(position(first)) == int(first * (sum(sizes) - 1)) + 1
        assert 0 <= axis.cell(position(first)) <= axis.cell(position(second)) < columns
        assert 0 <= axis.end(position(first)) <= axis.end(position(second)) <= columns
        assert axis.end(Position(len(sizes) - 1, sizes[-1] - 1)) == columns

    def test_what_is_stuck_at_the_end_of_a_long_topic_is_drawn_large(self) -> None:
        """The part before it takes a quarter of the line."""
        axis = Axis(ledgers_of([1_000_000]), 80, Position(1, 999_899))
        ends = axis.end(Position(1, 999_899)), axis.cell(Position(1, 999_949))
        assert (axis.join, *ends) == (20, 20, 49)


def test_a_run_has_two_ends() -> None:
    """A single entry is both."""
    assert run_of("12:4..13:9") == (Position(12, 4), Position(13, 9))
    assert run_of("12:4") == (Position(12, 4), Position(12, 4))
