"""How a read of topics is cut into partitions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from storage.errors import TopicNotFound
from storage.values.position import Position
from tests.txnctl.spark.source.topic_plan_steps import PLACE, at, extent, ledgers, positions_of, read
from txnctl.spark import options
from txnctl.spark.source import topic_plan

MEBI = 1 << 20


@given(entries=ledgers, low=st.integers(0, 200), high=st.integers(0, 200), share=st.integers(1, 12))
def test_the_parts_of_a_span_join_to_the_span_without_a_gap_or_an_overlap(
    entries: list[int], low: int, high: int, share: int
) -> None:
    """Every entry of it lies in exactly one part, in order; there are never more parts than asked for."""
    topic = extent("a", entries)
    places = [topic.before, *positions_of(topic)]
    after, through = sorted((places[low % len(places)], places[high % len(places)]))
    parts = topic_plan.split_span(topic, (after, through), share)
    assert len(parts) <= share
    read_through = [p for a, b in parts for p in positions_of(topic) if a < p <= b]
    assert read_through == [p for p in positions_of(topic) if after < p <= through]
    assert all(a < b for a, b in parts)
    assert all(first[1] == second[0] for first, second in pairwise(parts))
    # Each part begins in the ledger of its first entry, so that a removed ledger is noticed.
    assert all(next(p for p in positions_of(topic) if p > a).ledger_id == a.ledger_id for a, _ in parts)


@given(entries=st.lists(st.integers(20, 40), min_size=1, max_size=6), share=st.integers(1, 8))
def test_parts_are_about_equal(entries: list[int], share: int) -> None:
    """None is larger than its share by more than an entry."""
    topic = extent("a", entries)
    sizes = [
        sum(a < p <= b for p in positions_of(topic))
        for a, b in topic_plan.split_span(topic, (topic.before, topic.last_confirmed), share)
    ]
    assert max(sizes) <= sum(entries) / share + 1


def test_a_large_topic_is_cut_by_size_and_a_small_one_is_not() -> None:
    """32 MB a partition, or one for each processor where that leaves enough to do; more if asked for."""
    small, large = extent("s", [100]), extent("l", [1000], size=MEBI // 10)
    whole = [(each, (each.before, each.last_confirmed)) for each in (small, large)]
    assert topic_plan.partition_counts(whole, None, 8) == [1, 8]
    assert topic_plan.partition_counts(whole, None, 2) == [1, 4]
    assert topic_plan.partition_counts(whole[:1], 5, 2) == [5]
    empty = extent("e", [1])
    assert topic_plan.partition_counts([(empty, (empty.before, empty.before))], 5, 2) == [1]


def test_levels_end_where_they_may_and_know_who_was_open() -> None:
    """READ_UNCOMMITTED carries the transactions that were open; READ_COMMITTED ends before them and needs none."""
    topic = extent("a", [10], blocked=4)
    (clean,) = topic_plan.ranges(PLACE, [topic], read(), at, 1)
    (dirty,) = topic_plan.ranges(PLACE, [topic], read(isolationLevel="read_uncommitted"), at, 1)
    assert (clean.through, clean.open_txns) == (Position(1, 5), frozenset())
    assert (dirty.through, dirty.open_txns) == (Position(1, 9), frozenset({3, 9}))


def test_only_the_ends_of_a_read_lie_inside_a_batch() -> None:
    """The first partition begins at the message asked for, the last one ends before one."""
    wanted = read(startingPosition="1:2:3", endingPosition="1:8:1", minPartitions="3")
    parts = topic_plan.ranges(PLACE, [extent("a", [10])], wanted, at, 1)
    assert [(part.first_index, part.stop_index) for part in parts] == [(3, None), (0, None), (0, 1)]
    assert (parts[0].after, parts[-1].through) == (Position(1, 1), Position(1, 8))


@pytest.mark.parametrize("pattern", ["ord.*", "persistent://public/default/ord.*", "orders|ordinals"])
def test_a_pattern_matches_whole_names_short_or_full(pattern: str) -> None:
    """`orders` is found by either name; `reorder` is not, for it only contains what matches."""
    topics = [extent(name, [1]) for name in ("orders", "ordinals", "reorder")]
    found = topic_plan.select_extents(topics, options.Topics(pattern=pattern))
    assert [each.topic.rsplit("/", 1)[1] for each in found] == ["orders", "ordinals"]


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    """An empty result would look like an empty topic."""
    with pytest.raises(TopicNotFound, match="no topic matches"):
        topic_plan.select_extents([extent("a", [1])], options.Topics(pattern="b"))
