"""Edges: `txnctl/spark/source/edges.py`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidValue
from storage.subscription.isolation import IsolationLevel
from storage.values.position import MessageId, Position
from tests.txnctl.spark.source.topic_plan_steps import PLACE, at, extent, ledgers, positions_of, read
from txnctl.spark.source import topic_plan
from txnctl.spark.source.edges import PointWord, PublishTime, TopicPoint

RC, RU = IsolationLevel


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (PointWord("earliest"), (Position(3, -1), 0)),
        (PointWord("latest"), (Position(4, 4), 0)),
        (Position(3, 0), (Position(3, -1), 0)),
        (Position(4, 2), (Position(4, 1), 0)),
        (MessageId(4, 2, 3), (Position(4, 1), 3)),
        (Position(1, 5), (Position(3, -1), 0)),
        (MessageId(1, 5, 2), (Position(3, -1), 0)),
        (Position(9, 0), (Position(4, 4), 0)),
        (PublishTime(4001), (Position(4, 0), 0)),
        (PublishTime(9000), (Position(4, 4), 0)),
    ],
)
def test_a_start_is_the_first_message_that_is_read(place: TopicPoint, expected: tuple[Position, int]) -> None:
    """Within the topic: before its beginning is its beginning, beyond its end is its end."""
    assert topic_plan.start_of(extent("a", [10, 5], first=3), RC, place, at) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (PointWord("latest"), (Position(4, 4), None)),
        (PointWord("earliest"), (Position(3, -1), None)),
        (Position(4, 2), (Position(4, 1), None)),
        (Position(4, 0), (Position(4, -1), None)),
        (MessageId(4, 2, 3), (Position(4, 2), 3)),
        (Position(9, 0), (Position(4, 4), None)),
        (MessageId(9, 0, 1), (Position(4, 4), None)),
        (Position(1, 0), (Position(3, -1), None)),
        (PublishTime(4001), (Position(4, 0), None)),
    ],
)
def test_an_end_is_the_first_message_that_is_not_read(
    place: TopicPoint, expected: tuple[Position, int | None]
) -> None:
    """So the end of one read is the start of the next."""
    assert topic_plan.end_of(extent("a", [10, 5], first=3), RC, place, at) == expected


@given(entries=ledgers, cuts=st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_reads_that_meet_read_everything_once(entries: list[int], cuts: list[int]) -> None:
    """What one read ends at, the next one starts with."""
    topic = extent("a", entries)
    places = sorted({positions_of(topic)[each % len(positions_of(topic))] for each in cuts})
    texts = ["earliest", *map(str, places), "latest"]
    seen = []
    for first, last in pairwise(texts):
        wanted = read(startingPosition=first, endingPosition=last)
        for part in topic_plan.ranges(PLACE, [topic], wanted, at, 2):
            seen += [p for p in positions_of(topic) if part.after < p <= part.through]
    assert seen == positions_of(topic)


def test_a_place_for_a_topic_that_is_not_read_is_an_error() -> None:
    """A misspelt topic in startingPosition must not be passed over."""
    with pytest.raises(InvalidValue, match="startingPosition names topic b"):
        topic_plan.ranges(PLACE, [extent("a", [1])], read(startingPosition='{"b": "1:0"}'), at, 1)
