"""The messages that a read selects."""

from __future__ import annotations

import pickle

from hypothesis import given, strategies as st

from storage.values.position import Position
from tests.txnctl.spark.source.topic_plan_steps import at, extent, ledgers, positions_of
from txnctl.spark.source.key_selection import ALL_KEYS
from txnctl.spark.source.message_selection import EVERYTHING, Interval, MessageSelection, of_keys

bounds = st.none() | st.integers(-1, 8)
intervals = st.builds(Interval, bounds, bounds)


@given(low=bounds, high=bounds, further_low=bounds, further_high=bounds, number=st.integers(-2, 9))
def test_intervals_hold_together(
    low: int | None, high: int | None, further_low: int | None, further_high: int | None, number: int
) -> None:
    """A number is in both or not in the part; an interval meets every range with one of its numbers."""
    whole, part = Interval(low, high), Interval(low, high).within(further_low, further_high)
    assert part.has(number) == (whole.has(number) and Interval(further_low, further_high).has(number))
    assert whole.meets(number, number) == whole.has(number)
    assert whole.meets(number - 1, number + 1) == any(
        whole.has(each) for each in range(number - 1, number + 2)
    )


@given(
    entries=ledgers, first=st.integers(0, 200), last=st.integers(0, 200), ids=intervals, numbers=intervals,
    low_ms=st.none() | st.integers(0, 9000),
)  # fmt: skip
def test_a_narrowed_span_has_every_selected_entry(
    entries: list[int], first: int, last: int, ids: Interval, numbers: Interval, low_ms: int | None
) -> None:
    """And no ledger that is out of bounds; the clock of these topics is never set back."""
    topic = extent("a", entries)
    places = [topic.before, *positions_of(topic)]
    after, through = sorted((places[first % len(places)], places[last % len(places)]))
    times = Interval(None if low_ms is None else low_ms * 1000, None)
    selection = MessageSelection(ALL_KEYS, ids, numbers, times)
    low, high = selection.narrow(topic, (after, through), at)
    assert after <= low <= high <= through
    selected = [
        place
        for place in positions_of(topic)
        if after < place <= through
        and ids.has(place.ledger_id)
        and numbers.has(place.entry_id)
        and times.has((place.ledger_id * 1000 + place.entry_id) * 1000)
    ]
    kept = [place for place in positions_of(topic) if low < place <= high]
    assert set(selected) <= set(kept)
    assert all(ids.has(place.ledger_id) for place in kept)
    assert all(times.has((place.ledger_id * 1000 + place.entry_id) * 1000) for place in kept)


def test_a_selection_without_keys_has_no_span() -> None:
    """So nothing is planned."""
    topic = extent("a", [3])
    nothing = of_keys(ALL_KEYS.one_of(frozenset()))
    assert nothing.narrow(topic, (topic.before, Position(1, 2)), at) == (topic.before, topic.before)
    assert of_keys(ALL_KEYS) is EVERYTHING


def test_selections_travel_to_tasks() -> None:
    """Pickled, as a part of a partition."""
    selection = MessageSelection(ALL_KEYS.within(b"a", b"b"), Interval(1, 2))
    assert pickle.loads(pickle.dumps(selection)) == selection
