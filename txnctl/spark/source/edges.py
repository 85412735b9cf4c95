"""Bounds of a read: positions or publish times, for all topics or for each topic. Pure.

The start is the first message read, the end the first message not read: the end of one job is the start of the next,
whatever was written in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from storage.errors import InvalidPosition, InvalidValue
from storage.values.names import full_topic_name
from storage.values.position import EARLIEST, LATEST, MessageId, Position, parse_start
from txnctl.input.names_once import named_once
from txnctl.spark.option_values import told_of

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True)
class PublishTime:
    """The first message published at or after a time, in milliseconds since 1970."""

    time_ms: int


@dataclass(frozen=True)
class PointWord:
    """The word `earliest` or `latest`."""

    name: str


TopicPoint = Position | MessageId | PublishTime | PointWord


@dataclass(frozen=True)
class Edge:
    """A point for every topic, and different points for single topics, by full name."""

    everywhere: TopicPoint
    by_topic: Mapping[str, TopicPoint] = field(default_factory=dict)

    def point_in(self, topic: str) -> TopicPoint:
        return self.by_topic.get(topic, self.everywhere)


def parse_edge(options: Mapping[str, str], position: str, timestamp: str, default: str) -> Edge:
    """Parse the edge from the option of a position or the option of a timestamp.

    Raises:
        InvalidValue, InvalidPosition, InvalidName
    """
    if position in options and timestamp in options:
        raise InvalidValue(
            f"{position} and {timestamp} give the same bound twice",
            hint=f"Leave out {position} or {timestamp}.",
        )
    name, parse = (timestamp, _publish_time) if timestamp in options else (position, _position)
    text = options.get(name)
    if text is None:
        return Edge(PointWord(default))
    if not text.lstrip().startswith("{"):
        return Edge(parse(name, text))
    return Edge(
        PointWord(default), {topic: parse(name, value) for topic, value in _by_topic(name, text).items()}
    )


def _by_topic(name: str, text: str) -> dict[str, str]:
    import json

    try:
        given: object = json.loads(text, object_pairs_hook=partial(named_once, place=f"{name}: "))
    except ValueError:
        given = None
    if isinstance(given, dict):
        given = {topic: _of_partition(name, topic, point) for topic, point in given.items()}
    if not isinstance(given, dict) or not all(isinstance(point, str | int) for point in given.values()):
        raise InvalidValue(
            f"{name} is no JSON object of topics",
            hint='Write it as {"orders": "12:4471", "payments": "earliest"}.',
        )
    return named_once([(full_topic_name(topic), str(value)) for topic, value in given.items()], f"{name}: ")


def _of_partition(name: str, topic: str, point: object) -> object:
    """Return the point of a topic that is given as in Kafka's source, by partition: `{"orders": {"0": -2}}`.

    Raises:
        InvalidValue: the partition is not 0, or the offset is a number of Kafka.
    """
    if not isinstance(point, dict):
        return point
    if list(point) != ["0"] or isinstance(point["0"], dict):
        raise InvalidValue(
            f"{name} names partitions of {topic}, and topics have no partitions",
            hint=f'Write {{"{topic}": "12:4471"}}, or partition 0 alone.',
        )
    offset = point["0"]
    if isinstance(offset, str) or "Timestamp" in name:
        return offset
    if offset in (-1, -2):
        return "earliest" if offset == -2 else "latest"
    raise InvalidValue(
        f"{name} gives {topic} the offset {str(offset)[:20]}, and positions here are not numbers",
        hint="Write a position such as 12:4471, earliest (-2) or latest (-1); or startingTimestamp, endingTimestamp.",
    )


def _position(name: str, text: str) -> TopicPoint:
    if text.lower() in _WORDS:
        return PointWord(text.lower())
    if text.startswith("@"):
        return _publish_time(name, text[1:])
    try:
        point = parse_start(text)
    except InvalidPosition as error:
        error.message = f"{name}: {error.message}"
        error.args = (error.message,)
        raise
    assert isinstance(point, Position | MessageId), "the words were dealt with"
    return point


def _publish_time(name: str, text: str) -> TopicPoint:
    from txnctl.output.timestamp import milliseconds

    with told_of(name):
        time_ms = milliseconds(text)
    if time_ms is None:
        raise InvalidValue(
            f"{name} {text[:80]!r} is not a time",
            hint="Write RFC 3339 with a zone, a date, or milliseconds since 1970.",
        )
    return PublishTime(time_ms)
