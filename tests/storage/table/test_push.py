"""Push: which of two transactions survives."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.table import push
from storage.txn.options import Priority

PRIORITIES = st.sampled_from([each.value for each in Priority])


@given(PRIORITIES, st.integers(1, 50), PRIORITIES, st.integers(51, 99))
def test_exactly_one_of_two_survives_whoever_asks(first: str, older: int, second: str, newer: int) -> None:
    """The outcome does not depend on which of them met the other."""
    assert push.wins(first, older, second, newer) != push.wins(second, newer, first, older)


@given(st.integers(1, 99), st.integers(100, 199))
def test_every_priority_beats_the_ones_below_it_at_any_age(older: int, newer: int) -> None:
    """Highest, high, medium, low, lowest: whoever began earlier."""
    order = ["highest", "high", "medium", "low", "lowest"]
    for at, higher in enumerate(order):
        for lower in order[at + 1 :]:
            assert push.wins(higher, older, lower, newer)
            assert push.wins(higher, newer, lower, older)


@given(PRIORITIES, st.integers(1, 99), st.integers(100, 199))
def test_with_equal_priority_the_older_timestamp_loses(priority: str, older: int, newer: int) -> None:
    """As in K2-3SI."""
    assert push.wins(priority, newer, priority, older)
    assert not push.wins(priority, older, priority, newer)
