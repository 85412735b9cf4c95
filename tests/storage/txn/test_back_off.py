"""The wait after a lost conflict, and the priority of the next try."""

from __future__ import annotations

import pytest

from storage.txn.back_off import BackOff
from storage.txn.options import Priority


def lost(times: int, lasted_s: float) -> BackOff:
    back_off = BackOff()
    for _ in range(times):
        back_off.note_loss(lasted_s)
    return back_off


@pytest.mark.parametrize(
    ("times", "lasted_s", "span_s"),
    [
        (1, 0.05, 0.4),
        (2, 0.05, 0.8),
        (5, 0.05, 6.4),
        (6, 0.05, 10),
        (1000, 0.05, 10),
        (1, 0.0, 0.04),
        (1, 60, 240),
        (9, 60, 240),
    ],
)
def test_the_span_doubles_up_to_its_bound(times: int, lasted_s: float, span_s: float) -> None:
    """8 tries long at first; at most 10 s, or 4 tries if a try takes longer."""
    assert lost(times, lasted_s).wait_s(1) == pytest.approx(span_s)


def test_a_share_of_the_span_is_waited() -> None:
    """So two losers of one conflict part."""
    back_off = lost(1, 0.05)
    assert [back_off.wait_s(share) for share in (0, 0.25, 0.5)] == pytest.approx([0, 0.1, 0.2])


def test_a_try_that_lost_early_does_not_shorten_the_wait() -> None:
    """The winner takes as long as the longest try."""
    back_off = lost(1, 1.0)
    back_off.note_loss(0.001)
    assert back_off.wait_s(1) == pytest.approx(10)


@pytest.mark.parametrize(
    ("first", "times", "expected"),
    [
        (Priority.MEDIUM, 0, Priority.MEDIUM),
        (Priority.MEDIUM, 1, Priority.HIGH),
        (Priority.MEDIUM, 2, Priority.HIGHEST),
        (Priority.MEDIUM, 9, Priority.HIGHEST),
        (Priority.LOWEST, 3, Priority.HIGH),
        (Priority.HIGHEST, 1, Priority.HIGHEST),
    ],
)
def test_the_priority_rises_with_each_loss(first: Priority, times: int, expected: Priority) -> None:
    """A rank at a time, from the priority that was asked for."""
    assert lost(times, 0.01).raised(first) is expected
