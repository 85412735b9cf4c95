"""Where reading begins and ends: positions, times, one for all topics or one for each. Pure.

The beginning is the first message read, the end the first one not read: so what one job read to is where the next one
begins, whatever was written in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from storage.errors import InvalidPosition, InvalidValue
from storage.values.names import full_topic_name
from storage.values.position import EARLIEST, LATEST, MessageId, Position, parse_start

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True)
class Moment:
    """The first message published at or after a time, in milliseconds since 1970."""

    time_ms: int


@dataclass(frozen=True)
class Word:
    """`earliest` or `latest`."""

    name: str


Place = Position | MessageId | Moment | Word


@dataclass(frozen=True)
class Edge:
    """A place for every topic, and others for some of them, by full name."""

    everywhere: Place
    each: Mapping[str, Place] = field(default_factory=dict)

    def of(self, topic: str) -> Place:
        return self.each.get(topic, self.everywhere)


def edge_of(found: Mapping[str, str], position: str, timestamp: str, default: str) -> Edge:
    """The edge that two options of these names give.

    Raises:
        InvalidValue, InvalidPosition, InvalidName
    """
    if position in found and timestamp in found:
        raise InvalidValue(
            f"{position} and {timestamp} say the same thing twice", hint="Leave one of them out."
        )
    name, read = (timestamp, _moment) if timestamp in found else (position, _position)
    text = found.get(name)
    if text is None:
        return Edge(Word(default))
    if not text.lstrip().startswith("{"):
        return Edge(read(name, text))
    return Edge(Word(default), {topic: read(name, value) for topic, value in _by_topic(name, text).items()})


def _by_topic(name: str, text: str) -> dict[str, str]:
    import json

    try:
        given: Any = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(each, str | int) for each in given.values()):
        raise InvalidValue(
            f"{name} is no JSON object of topics",
            hint='Write it as {"orders": "12:4471", "payments": "earliest"}.',
        )
    return {full_topic_name(topic): str(value) for topic, value in given.items()}


def _position(name: str, text: str) -> Place:
    if text.lower() in _WORDS:
        return Word(text.lower())
    try:
        found = parse_start(text)
    except InvalidPosition as error:
        error.message = f"{name}: {error.message}"
        error.args = (error.message,)
        raise
    assert isinstance(found, Position | MessageId), "the words were dealt with"
    return found


def _moment(name: str, text: str) -> Place:
    from txnctl.output.timestamp import milliseconds

    time_ms = milliseconds(text)
    if time_ms is None:
        raise InvalidValue(
            f"{name} {text[:80]!r} is not a time",
            hint="Write RFC 3339 with a zone, a date, or milliseconds since 1970.",
        )
    return Moment(time_ms)
