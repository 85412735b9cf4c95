"""Edges: `txnctl/spark/source/edges.py`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidValue
from storage.subscription.isolation import IsolationLevel
from storage.values.names import full_topic_name
from storage.values.position import MessageId, Position
from tests.txnctl.spark.source.topic_plan_steps import PLACE, at, extent, ledgers, positions_of, read
from txnctl.spark.source import topic_plan
from txnctl.spark.source.edges import PointWord, PublishTime, TopicPoint, parse_edge

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


def test_offsets_of_kafka_name_partition_0() -> None:
    """-2 is earliest and -1 latest, as in Kafka's source; times and positions stand as they are."""
    text = '{"orders": {"0": -2}, "payments": {"0": "12:4471"}, "other": {"0": -1}}'
    edge = parse_edge({"startingPosition": text}, "startingPosition", "startingTimestamp", "latest")
    assert [edge.point_in(full_topic_name(name)) for name in ("orders", "payments", "other")] == [
        PointWord("earliest"),
        Position(12, 4471),
        PointWord("latest"),
    ]
    edge = parse_edge(
        {"startingTimestamp": '{"orders": {"0": 1714557600000}}'},
        "startingPosition",
        "startingTimestamp",
        "latest",
    )
    assert edge.point_in(full_topic_name("orders")) == PublishTime(1714557600000)


@pytest.mark.parametrize(
    ("point", "says"),
    [('{"0": 23}', "positions here are not numbers"), ('{"0": -2, "1": -2}', "topics have no partitions")],
)
def test_offsets_of_kafka_that_have_no_equivalent_are_refused(point: str, says: str) -> None:
    """With the form of a position."""
    with pytest.raises(InvalidValue, match=says) as error:
        parse_edge(
            {"endingPosition": f'{{"orders": {point}}}'}, "endingPosition", "endingTimestamp", "latest"
        )
    assert "12:4471" in (error.value.hint or "")


def test_a_position_may_be_a_time_as_on_the_command_line() -> None:
    """`@TIME`, for the whole read and for a topic; a text after the `@` that is no time is refused."""
    options = {"startingPosition": '{"orders": "@500"}', "endingPosition": "@1970-01-02"}
    start = parse_edge(options, "startingPosition", "startingTimestamp", "earliest")
    end = parse_edge(options, "endingPosition", "endingTimestamp", "latest")
    assert start.point_in(full_topic_name("orders")) == PublishTime(500)
    assert end.point_in(full_topic_name("orders")) == PublishTime(86_400_000)
    with pytest.raises(InvalidValue, match="is not a time"):
        parse_edge({"startingPosition": "@noon"}, "startingPosition", "startingTimestamp", "earliest")
    for name, text in (("startingTimestamp", "1714557600"), ("startingPosition", "@20240501")):
        with pytest.raises(InvalidValue, match=f"{name} [0-9]+ is a time in 1970, in milliseconds"):
            parse_edge({name: text}, "startingPosition", "startingTimestamp", "earliest")
