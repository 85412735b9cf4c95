"""Axis: `txnctl/output/axis.py`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from txnctl.output.axis import Axis


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
