"""What `format("txnctl")` is asked for: its options as values. Pure.

Spark hands the names of options over in lower case, and mixes some of its own in, which are passed over. Every other
name that is not known is an error: a misspelt option must not silently read something else. Names that Spark's Kafka
and Pulsar sources use for the same thing are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from storage.errors import InvalidValue
from storage.subscription.isolation import IsolationLevel
from storage.txn.options import CheckMode
from storage.values.names import check_name, full_topic_name, named
from txnctl.cli.settings import store as store_setting
from txnctl.spark.source.edges import Edge, edge_of

TOPICS: Final = ("topic", "topics", "topicsPattern")
_READ: Final = ("path", "minPartitions", "offloadPath")
_MESSAGES: Final = (
    *_READ,
    *TOPICS,
    "isolationLevel",
    "includeProperties",
    "startingPosition",
    "startingTimestamp",
)

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "reading topics": (*_MESSAGES, "endingPosition", "endingTimestamp"),
    "reading a table": (*_READ, "table", "check", "asOf"),
    "a stream of topics": (*_MESSAGES, "subscription", "maxMessagesPerTrigger", "maxBytesPerTrigger"),
    "writing": ("path", "topic", "table", "stagingPath", "writeId", "producerName"),
}
"""What each use takes."""

ALIASES: Final = {
    "subscribe": "topics",
    "subscribePattern": "topicsPattern",
    "startingOffsets": "startingPosition",
    "endingOffsets": "endingPosition",
    "startingOffsetsByTimestamp": "startingTimestamp",
    "endingOffsetsByTimestamp": "endingTimestamp",
    "includeHeaders": "includeProperties",
    "maxOffsetsPerTrigger": "maxMessagesPerTrigger",
    "subscriptionName": "subscription",
    "subscriptionIsolationLevel": "isolationLevel",
}

_OF_SPARK: Final = {"checkpointlocation", "queryname", "outputmode", "paths", "recoverfromcheckpointlocation"}
_CANONICAL: Final = {each.lower(): each for names in OPTIONS.values() for each in names}
_KNOWN: Final = _CANONICAL | {alias.lower(): name for alias, name in ALIASES.items()}
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
T = TypeVar("T")


@dataclass(frozen=True)
class Topics:
    """Which topics: by name, or every one that a pattern matches.

    Attributes:
        names: full names.
        pattern: a regular expression; it has to match the whole of a topic's full or short name.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True)
class TopicRead:
    """A batch read of topics. `minimum` is the least number of partitions, None to go by size."""

    path: str
    topics: Topics
    level: IsolationLevel
    start: Edge
    end: Edge
    minimum: int | None
    offload: str | None


@dataclass(frozen=True)
class TopicStream:
    """A streaming read of topics; `messages` and `bytes` at the most in one micro-batch."""

    path: str
    topics: Topics
    level: IsolationLevel
    start: Edge
    subscription: str | None
    messages: int | None
    bytes: int | None
    minimum: int | None
    offload: str | None


@dataclass(frozen=True)
class TableRead:
    """A read of a table: with a check mode, or at a version (nanoseconds since 1970)."""

    path: str
    table: str
    check: CheckMode
    as_of: int | None
    minimum: int | None
    offload: str | None


@dataclass(frozen=True)
class Write:
    """A batch or streaming write.

    Attributes:
        topic: where rows go that name no topic in a column of their own; a full name.
        staging: where tasks leave what the driver adopts; None for a directory within the store.
        write_id: a batch write of the same id is done once.
    """

    path: str
    topic: str | None
    table: str | None
    staging: str | None
    write_id: str | None
    producer: str | None


def names_table(given: Mapping[str, str]) -> bool:
    """Whether a table is meant, and not topics."""
    return any(name.lower() == "table" for name in given)


def has_properties(given: Mapping[str, str]) -> bool:
    """Whether the column `properties` is wanted: unless `includeProperties` is false."""
    return _flag(_by_name(given, _CANONICAL.values(), "reading"), "includeProperties", True)


def topic_read(given: Mapping[str, str]) -> TopicRead:
    """The options of a batch read of topics.

    Raises:
        InvalidValue, InvalidName, InvalidPosition
    """
    found = _of_use(given, "reading topics")
    _flag(found, "includeProperties", True)
    return TopicRead(
        _path(found), _topics(found), _level(found), _start(found, "earliest"),
        edge_of(found, "endingPosition", "endingTimestamp", "latest"),
        _count(found, "minPartitions"), found.get("offloadPath"),
    )  # fmt: skip


def topic_stream(given: Mapping[str, str]) -> TopicStream:
    """The options of a streaming read.

    Raises:
        InvalidValue, InvalidName, InvalidPosition
    """
    found = _of_use(given, "a stream of topics")
    _flag(found, "includeProperties", True)
    subscription = found.get("subscription")
    return TopicStream(
        _path(found), _topics(found), _level(found), _start(found, "latest"),
        None if subscription is None else check_name("subscription name", subscription),
        _count(found, "maxMessagesPerTrigger"), _size(found, "maxBytesPerTrigger"),
        _count(found, "minPartitions"), found.get("offloadPath"),
    )  # fmt: skip


def table_read(given: Mapping[str, str]) -> TableRead:
    """The options of a read of a table.

    Raises:
        InvalidValue, InvalidName
    """
    found = _of_use(given, "reading a table")
    as_of = found.get("asOf")
    if as_of is not None and "check" in found:
        raise InvalidValue(
            "asOf reads what was committed then, and meets no write intents; check does not go with it",
            hint="Leave one of them out.",
        )
    return TableRead(
        _path(found), check_name("table name", found["table"]),
        named(CheckMode, found.get("check"), "check mode") or CheckMode.MINIMAL,
        None if as_of is None else _version(as_of),
        _count(found, "minPartitions"), found.get("offloadPath"),
    )  # fmt: skip


def write(given: Mapping[str, str]) -> Write:
    """The options of a write.

    Raises:
        InvalidValue, InvalidName
    """
    found = _of_use(given, "writing")
    topic, table = found.get("topic"), found.get("table")
    if topic is not None and table is not None:
        raise InvalidValue("rows go to a topic or to a table, not to both", hint="Leave one of them out.")
    names = {name: found[name] for name in ("writeId", "producerName") if name in found}
    for name, value in names.items():
        check_name(name, value)
    return Write(
        _path(found), None if topic is None else full_topic_name(topic),
        None if table is None else check_name("table name", table),
        found.get("stagingPath"), names.get("writeId"), names.get("producerName"),
    )  # fmt: skip


def _of_use(given: Mapping[str, str], use: str) -> dict[str, str]:
    return _by_name(given, OPTIONS[use], use)


def _by_name(given: Mapping[str, str], allowed: Any, use: str) -> dict[str, str]:
    """The options under their own names, without those of Spark.

    Raises:
        InvalidValue: one is not known, does not go with this use, or is given under two names.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        low = key.lower()
        if low in _OF_SPARK or low.startswith(("__", "spark.")):
            continue
        name = _KNOWN.get(low)
        if name is None:
            raise _unknown(low, use, list(allowed))
        if name not in allowed:
            raise InvalidValue(
                f"{name} is not an option of {use} with format txnctl", hint=f"It takes {', '.join(allowed)}."
            )
        if found.get(name, value) != value:
            raise InvalidValue(f"{name} is given twice, under two names", hint="Leave one of them out.")
        found[name] = value
    return found


def _unknown(low: str, use: str, allowed: list[str]) -> InvalidValue:
    from difflib import get_close_matches

    names = {each.lower(): each for each in allowed}
    names |= {alias.lower(): alias for alias, name in ALIASES.items() if name in allowed}
    near = get_close_matches(low, list(names), 1)
    hint = f"Did you mean {names[near[0]]}?" if near else f"It takes {', '.join(allowed)}."
    return InvalidValue(f"{low} is not an option of {use} with format txnctl", hint=hint, option=low)


def _path(found: dict[str, str]) -> str:
    path = found.get("path")
    if path is not None and path.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        path = unquote(urlsplit(path).path)
    value = store_setting(path).value
    assert value is not None, "the place of the store has a default"
    return value


def _topics(found: dict[str, str]) -> Topics:
    given = [name for name in TOPICS if name in found]
    if len(given) != 1:
        raise InvalidValue(
            f"{' and '.join(given)} are given: which topics are meant?"
            if given
            else "no topic to read is given",
            hint="Give one of topic, topics (a list with commas), topicsPattern; or table.",
        )
    if given == ["topicsPattern"]:
        return Topics(pattern=_pattern(found["topicsPattern"]))
    text = found[given[0]]
    names = [each.strip() for each in text.split(",")] if given == ["topics"] else [text]
    return Topics(tuple(dict.fromkeys(full_topic_name(name) for name in names)))


def _pattern(text: str) -> str:
    import re

    try:
        re.compile(text)
    except re.error as error:
        raise InvalidValue(f"topicsPattern {text!r} is not a regular expression: {error}") from None
    return text


def _level(found: dict[str, str]) -> IsolationLevel:
    level = named(IsolationLevel, found.get("isolationLevel"), "isolation level")
    return level or IsolationLevel.READ_COMMITTED


def _start(found: dict[str, str], default: str) -> Edge:
    return edge_of(found, "startingPosition", "startingTimestamp", default)


def _flag(found: dict[str, str], name: str, default: bool) -> bool:
    text = found.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidValue(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def _count(found: dict[str, str], name: str) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) >= 1):
        raise InvalidValue(f"{name} is a whole number of 1 or more, not {text[:80]!r}")
    return int(text)


def _size(found: dict[str, str], name: str) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    digits = text.lower().removesuffix("b").rstrip("kmg")
    factor = _SIZES.get(text.lower().removesuffix("b")[len(digits) :])
    if factor is None or not (digits.isascii() and digits.isdecimal() and len(digits) <= 12 and int(digits)):
        raise InvalidValue(f"{name} is a number of bytes such as 65536, 64k or 16m, not {text[:80]!r}")
    return int(digits) * factor


def _version(text: str) -> int:
    """A time to the end of its millisecond, or a version as it stands, in nanoseconds since 1970."""
    from txnctl.output.timestamp import milliseconds

    if text.isascii() and text.isdecimal() and 15 < len(text) < 20:
        return int(text)
    at_ms = milliseconds(text)
    if at_ms is None:
        raise InvalidValue(
            f"asOf {text[:80]!r} is not a time",
            hint="Write RFC 3339 with a zone, a date, milliseconds since 1970, or a row's timestamp.",
        )
    return at_ms * 1_000_000 + 999_999
