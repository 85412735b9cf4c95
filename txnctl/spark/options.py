"""Parsing of the options of `format("txnctl")` into values. Pure.

Spark hands over option names in lower case, mixed with some of its own, which are skipped. Every other unknown name is
an error: a misspelt option must not silently read something else. The names that Spark's Kafka and Pulsar sources use
for the same options are accepted as aliases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from storage.errors import InvalidValue
from storage.subscription.isolation import IsolationLevel, check_compacted
from storage.txn.options import CheckMode
from storage.values.names import check_name, full_topic_name, named
from txnctl.cli.settings import store as store_setting
from txnctl.spark.change_options import OPTIONS as _CHANGES, ChangeOptions, parse_changes
from txnctl.spark.kafka_names import refuse_kafka
from txnctl.spark.option_values import count, flag, size, version
from txnctl.spark.source.edges import Edge, parse_edge
from txnctl.spark.source.key_selection import ALL_KEYS, OPTIONS as _KEYS, KeySelection, parse_keys
from txnctl.spark.source.message_selection import EVERYTHING, MessageSelection, of_keys
from txnctl.spark.store_name import refuse_offload_path, without_url_password
from txnctl.spark.upsert_options import OPTIONS as _UPSERT, UpsertOptions, parse_upsert

TOPICS: Final = ("topic", "topics", "topicsPattern")
_READ: Final = ("path", "minPartitions", "offloadPath", "columns", *_KEYS)
_MESSAGES: Final = (
    *_READ,
    *TOPICS,
    "isolationLevel",
    "includeProperties",
    "startingPosition",
    "startingTimestamp",
    "failOnDataLoss",
    "readCompacted",
)

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "reading topics": (*_MESSAGES, "endingPosition", "endingTimestamp", "pushFilters"),
    "reading a table": (*_READ, "table", "check", "asOf", "timestampAsOf", "versionAsOf", "pushFilters"),
    "reading the changes of a table": (*_CHANGES, "until"),
    "a stream of the changes of a table": (*_CHANGES, "maxChangesPerTrigger"),
    "a stream of topics": (
        *_MESSAGES,
        "subscription",
        "maxMessagesPerTrigger",
        "maxBytesPerTrigger",
        "wholeTransactions",
    ),
    "writing": (
        "path",
        "topic",
        "table",
        "stagingPath",
        "writeId",
        "writeFingerprint",
        "producerName",
        "createTopic",
        *_UPSERT,
    ),
}
"""The options that each use accepts."""

ALIASES: Final = {
    "store": "path",
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
    "readChangeFeed": "readChanges",
    "readChangeData": "readChanges",
}

_OF_SPARK: Final = {"checkpointlocation", "queryname", "outputmode", "paths", "recoverfromcheckpointlocation"}
_CANONICAL: Final = {name.lower(): name for names in OPTIONS.values() for name in names}
_KNOWN: Final = _CANONICAL | {alias.lower(): name for alias, name in ALIASES.items()}


@dataclass(frozen=True)
class Topics:
    """A selection of topics: by name, or by a pattern.

    Attributes:
        names: full names.
        pattern: a regular expression that matches the whole of a topic's full or short name.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True)
class TopicReadOptions:
    """The options of a batch read of topics.

    Attributes:
        min_partitions: the least number of partitions; None to go by size.
        offload_path: the root of offloaded files; None to read the store itself.
        fail_on_data_loss: whether a start within what was trimmed is an error, or the read begins behind.
        compacted: read the compacted view of each topic up to its horizon, and then the log.
        selection: the messages that are read.
        pushes_filters: Spark pushes the filters of the one query that the DataFrame serves.
    """

    path: str
    topics: Topics
    level: IsolationLevel
    start: Edge
    end: Edge
    min_partitions: int | None
    offload_path: str | None
    fail_on_data_loss: bool
    compacted: bool = False
    selection: MessageSelection = EVERYTHING
    pushes_filters: bool = False


@dataclass(frozen=True)
class TopicStreamOptions:
    """The options of a streaming read of topics.

    Attributes:
        max_messages, max_bytes: the limits of one micro-batch.
        whole_transactions: a micro-batch cuts no transaction of a topic, where the transaction is not too long.
    """

    path: str
    topics: Topics
    level: IsolationLevel
    start: Edge
    subscription: str | None
    max_messages: int | None
    max_bytes: int | None
    min_partitions: int | None
    offload_path: str | None
    whole_transactions: bool
    fail_on_data_loss: bool
    compacted: bool = False
    selection: MessageSelection = EVERYTHING


@dataclass(frozen=True)
class TableReadOptions:
    """The options of a read of a table: with a check mode, or at a version (nanoseconds since 1970).

    Attributes:
        keys: the keys that are read.
        pushes_filters: Spark pushes the filters of the one query that the DataFrame serves.
    """

    path: str
    table: str
    check: CheckMode
    as_of: int | None
    min_partitions: int | None
    offload_path: str | None
    keys: KeySelection = ALL_KEYS
    pushes_filters: bool = False


@dataclass(frozen=True)
class WriteOptions:
    """The options of a batch or streaming write.

    Attributes:
        topic: full name of the target of rows that have no column `topic`.
        staging: the directory where tasks stage files for the driver; None for a directory within the store, or for a
            store on a server a temporary one of this host.
        write_id: batch writes of the same id are stored once.
        write_fingerprint: of the input of the job; a write of the same id with a different one is refused.
        create_topic: the commit creates `topic` if it is missing.
        upsert: the columns of an upsert into the table; None of an append.
    """

    path: str
    topic: str | None
    table: str | None
    staging: str | None
    write_id: str | None
    write_fingerprint: str | None
    producer: str | None
    create_topic: bool
    upsert: UpsertOptions | None = None


def check_store_name(given: Mapping[str, str]) -> None:
    """Check the name of the store before Spark shows anything of the read.

    Raises:
        InvalidValue: the URL has a password, or cannot be read.
    """
    for name, value in given.items():
        if _KNOWN.get(name.lower()) == "path":
            without_url_password(value)


def names_table(given: Mapping[str, str]) -> bool:
    """Report whether the options name a table, and not topics."""
    return any(name.lower() == "table" for name in given)


def reads_changes(given: Mapping[str, str]) -> bool:
    """Report whether the changes of a table are read, and not its rows."""
    return flag(_by_name(given, _CANONICAL.values(), "reading"), "readChanges", False)


def has_properties(given: Mapping[str, str]) -> bool:
    """Report whether the column `properties` is included: unless `includeProperties` is false."""
    return flag(_by_name(given, _CANONICAL.values(), "reading"), "includeProperties", True)


def columns(given: Mapping[str, str]) -> str | None:
    """Return the option `columns`: the columns to read, with commas between them; None for all."""
    return _by_name(given, _CANONICAL.values(), "reading").get("columns")


def topic_read(given: Mapping[str, str]) -> TopicReadOptions:
    """Parse the options of a batch read of topics.

    Raises:
        InvalidValue, InvalidName, InvalidPosition
    """
    parsed = _of_use(given, "reading topics")
    flag(parsed, "includeProperties", True)
    return TopicReadOptions(
        _path(parsed), _topics(parsed), _level(parsed), _start(parsed, "earliest"),
        parse_edge(parsed, "endingPosition", "endingTimestamp", "latest"),
        count(parsed, "minPartitions"), parsed.get("offloadPath"), flag(parsed, "failOnDataLoss", True),
        _compacted(parsed), of_keys(parse_keys(parsed)), flag(parsed, "pushFilters", False),
    )  # fmt: skip


def topic_stream(given: Mapping[str, str]) -> TopicStreamOptions:
    """Parse the options of a streaming read.

    Raises:
        InvalidValue, InvalidName, InvalidPosition
    """
    parsed = _of_use(given, "a stream of topics")
    flag(parsed, "includeProperties", True)
    subscription = parsed.get("subscription")
    return TopicStreamOptions(
        _path(parsed), _topics(parsed), _level(parsed), _start(parsed, "latest"),
        None if subscription is None else check_name("subscription name", subscription),
        count(parsed, "maxMessagesPerTrigger"), size(parsed, "maxBytesPerTrigger"),
        count(parsed, "minPartitions"), parsed.get("offloadPath"),
        flag(parsed, "wholeTransactions", False), flag(parsed, "failOnDataLoss", True), _compacted(parsed),
        of_keys(parse_keys(parsed)),
    )  # fmt: skip


def table_read(given: Mapping[str, str]) -> TableReadOptions:
    """Parse the options of a read of a table.

    Raises:
        InvalidValue, InvalidName
    """
    parsed = _of_use(given, "reading a table")
    as_of = version(parsed)
    if as_of is not None and "check" in parsed:
        raise InvalidValue(
            "asOf reads rows committed at that time, and meets no write intents; check does not go with asOf",
            hint="Leave one of them out.",
        )
    return TableReadOptions(
        _path(parsed), check_name("table name", parsed["table"]),
        named(CheckMode, parsed.get("check"), "check mode") or CheckMode.MINIMAL,
        as_of, count(parsed, "minPartitions"), parsed.get("offloadPath"), parse_keys(parsed),
        flag(parsed, "pushFilters", False),
    )  # fmt: skip


def change_read(given: Mapping[str, str]) -> ChangeOptions:
    """Parse the options of a batch read of the changes of a table.

    Raises:
        InvalidValue, InvalidName
    """
    parsed = _of_use(given, "reading the changes of a table")
    return parse_changes(parsed, _path(parsed))


def change_stream(given: Mapping[str, str]) -> ChangeOptions:
    """Parse the options of a stream of the changes of a table.

    Raises:
        InvalidValue, InvalidName
    """
    parsed = _of_use(given, "a stream of the changes of a table")
    return parse_changes(parsed, _path(parsed), is_stream=True)


def write(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write.

    Raises:
        InvalidValue, InvalidName
    """
    parsed = _of_use(given, "writing")
    topic, table = parsed.get("topic"), parsed.get("table")
    if topic is not None and table is not None:
        raise InvalidValue("rows go to a topic or to a table, not to both", hint="Leave one of them out.")
    creates = flag(parsed, "createTopic", default=False)
    if creates and topic is None:
        raise InvalidValue("createTopic is for the option topic, which names no topic")
    names = {name: parsed[name] for name in ("writeId", "writeFingerprint", "producerName") if name in parsed}
    if "writeFingerprint" in names and "writeId" not in names:
        raise InvalidValue("writeFingerprint goes with writeId, which is not given")
    for name, value in names.items():
        check_name(name, value)
    return WriteOptions(
        _path(parsed), None if topic is None else full_topic_name(topic),
        None if table is None else check_name("table name", table),
        parsed.get("stagingPath"), names.get("writeId"), names.get("writeFingerprint"), names.get("producerName"),
        creates, parse_upsert(parsed),
    )  # fmt: skip


def _of_use(given: Mapping[str, str], use: str) -> dict[str, str]:
    return _by_name(given, OPTIONS[use], use)


def _by_name(given: Mapping[str, str], allowed: Collection[str], use: str) -> dict[str, str]:
    """Return the options under their canonical names, without Spark's own.

    Raises:
        InvalidValue: an option is unknown, does not go with this use, or is given under two names.
    """
    parsed: dict[str, str] = {}
    for key, value in given.items():
        lower = key.lower()
        if lower in _OF_SPARK or lower.startswith(("__", "spark.")):
            continue
        name = _KNOWN.get(lower)
        if name is None:
            refuse_kafka(lower)
            raise _unknown(lower, use, list(allowed))
        if name not in allowed:
            raise InvalidValue(
                f"{name} is not an option of {use} with format txnctl", hint=f"It takes {', '.join(allowed)}."
            )
        if parsed.get(name, value) != value:
            raise InvalidValue(f"{name} is given twice, under two names", hint="Leave one of them out.")
        parsed[name] = value
    return parsed


def _unknown(low: str, use: str, allowed: list[str]) -> InvalidValue:
    from difflib import get_close_matches

    names = {option.lower(): option for option in allowed}
    names |= {alias.lower(): alias for alias, name in ALIASES.items() if name in allowed}
    near = get_close_matches(low, list(names), 1)
    hint = f"Did you mean {names[near[0]]}?" if near else f"It takes {', '.join(allowed)}."
    return InvalidValue(f"{low} is not an option of {use} with format txnctl", hint=hint, option=low)


def _path(parsed: dict[str, str]) -> str:
    path = parsed.get("path")
    if path is not None and path.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        path = unquote(urlsplit(path).path)
    value = store_setting(path).value
    assert value is not None, "the path of the store has a default"
    value = without_url_password(value)
    refuse_offload_path(value, parsed.get("offloadPath"))
    return value


def _topics(given: dict[str, str]) -> Topics:
    named_by = [name for name in TOPICS if name in given]
    if len(named_by) != 1:
        raise InvalidValue(
            f"{' and '.join(named_by)} are given: which topics are meant?"
            if named_by
            else "no topic to read is given",
            hint="Give one of topic, topics (a list with commas), topicsPattern; or table.",
        )
    if named_by == ["topicsPattern"]:
        return Topics(pattern=_pattern(given["topicsPattern"]))
    text = given[named_by[0]]
    names = [name.strip() for name in text.split(",")] if named_by == ["topics"] else [text]
    return Topics(tuple(dict.fromkeys(full_topic_name(name) for name in names)))


def _pattern(text: str) -> str:
    import re

    try:
        re.compile(text)
    except re.error as error:
        raise InvalidValue(f"topicsPattern {text!r} is not a regular expression: {error}") from None
    return text


def _level(parsed: dict[str, str]) -> IsolationLevel:
    level = named(IsolationLevel, parsed.get("isolationLevel"), "isolation level")
    return level or IsolationLevel.READ_COMMITTED


def _compacted(parsed: dict[str, str]) -> bool:
    """Return whether the compacted view is read.

    Raises:
        InvalidValue: at READ_UNCOMMITTED, or from offloaded files, which have the log alone.
    """
    if not flag(parsed, "readCompacted", default=False):
        return False
    check_compacted(_level(parsed))
    if "offloadPath" in parsed:
        raise InvalidValue(
            "readCompacted reads the store, and offloadPath files of the log", hint="Leave one of them out."
        )
    return True


def _start(parsed: dict[str, str], default: str) -> Edge:
    return parse_edge(parsed, "startingPosition", "startingTimestamp", default)
