"""The counters: one number each."""

from __future__ import annotations

from storage.values import counters
from storage.values.txn_state import AbortReason


def test_every_counter_has_a_number_of_its_own() -> None:
    """Events first, then an abort for each reason."""
    events = [
        counters.MESSAGES_WRITTEN, counters.DELIVERIES, counters.REDELIVERIES, counters.COMMITS, counters.CONFLICTS_LOST,
        counters.TAKEOVERS,
    ]  # fmt: skip
    assert [*events, *counters.ABORTS.values()] == list(range(counters.COUNTERS))
    assert list(counters.ABORTS) == [reason.value for reason in AbortReason]


def test_bounds_of_durations_grow() -> None:
    """As a histogram wants them."""
    bounds_ms = counters.DURATION_BOUNDS_MS
    assert sorted(set(bounds_ms)) == list(bounds_ms)
