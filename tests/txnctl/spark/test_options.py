"""The options of format("txnctl"): what each says, and what is refused."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidName, InvalidPosition, InvalidValue
from storage.subscription.isolation import IsolationLevel
from storage.txn.options import CheckMode
from storage.values.position import MessageId, Position
from txnctl.output.timestamp import NOW
from txnctl.spark import options, schemas
from txnctl.spark.sink.columns import TABLE_COLUMNS, TOPIC_COLUMNS
from txnctl.spark.source.edges import PointWord, PublishTime

ORDERS = "persistent://public/default/orders"
PAYMENTS = "persistent://public/default/payments"


def test_a_topic_is_read_whole_and_committed_unless_said_otherwise() -> None:
    """From earliest to latest at READ_COMMITTED."""
    read = options.topic_read({"path": "/s", "topic": "orders"})
    assert (read.path, read.topics.names, read.level) == ("/s", (ORDERS,), IsolationLevel.READ_COMMITTED)
    assert (read.start.point_in(ORDERS), read.end.point_in(ORDERS)) == (
        PointWord("earliest"),
        PointWord("latest"),
    )


def test_a_stream_starts_at_the_latest_unless_said_otherwise() -> None:
    """What was there before the query is not read."""
    stream = options.topic_stream({"path": "/s", "topic": "orders", "subscription": "settlement"})
    assert stream.start.point_in(ORDERS) == PointWord("latest")
    assert stream.subscription == "settlement"


def test_names_are_lower_case_when_they_arrive() -> None:
    """Spark hands all names of options over in lower case."""
    read = options.topic_read({"path": "/s", "topicspattern": "or.*", "isolationlevel": "read-uncommitted"})
    assert read.topics.pattern == "or.*"
    assert read.level is IsolationLevel.READ_UNCOMMITTED


def test_the_names_of_kafka_and_pulsar_say_the_same() -> None:
    """Each alias is read as the option it stands for."""
    ours = options.topic_stream(
        {"path": "/s", "topics": "orders, payments", "startingPosition": "1:2", "maxMessagesPerTrigger": "5"}
    )
    theirs = options.topic_stream(
        {"path": "/s", "subscribe": "orders,payments", "startingOffsets": "1:2", "maxOffsetsPerTrigger": "5"}
    )
    assert ours == theirs
    assert ours.topics.names == (ORDERS, PAYMENTS)


def test_places_of_each_topic_are_a_json_object() -> None:
    """Topics it does not name begin where they would without it."""
    text = '{"orders": "12:4471", "persistent://public/default/payments": "1:0:3"}'
    start = options.topic_read(
        {"path": "/s", "topics": "orders,payments,other", "startingposition": text}
    ).start
    assert start.point_in(ORDERS) == Position(12, 4471)
    assert start.point_in(PAYMENTS) == MessageId(1, 0, 3)
    assert start.point_in("persistent://public/default/other") == PointWord("earliest")


def test_times_are_milliseconds_or_rfc_3339() -> None:
    """Both are the same moment."""
    for text in ("1714557600000", "2024-05-01T10:00:00Z", "2024-05-01T12:00:00+02:00"):
        read = options.topic_read({"path": "/s", "topic": "orders", "endingtimestamp": text})
        assert read.end.point_in(ORDERS) == PublishTime(1714557600000)


def test_a_table_is_read_with_a_check_mode_or_as_of_a_time() -> None:
    """A time means the end of its millisecond; a longer number is the version of a row as it stands."""
    assert options.table_read({"path": "/s", "table": "t", "check": "full"}).check is CheckMode.FULL
    assert (
        options.table_read({"path": "/s", "table": "t", "asOf": "1700000000123"}).as_of == 1700000000123999999
    )
    version = "1700000000123456789"
    assert options.table_read({"path": "/s", "table": "t", "asOf": version}).as_of == int(version)
    assert options.table_read({"path": "/s", "table": "t", "asOf": "now"}).as_of == NOW
    with pytest.raises(InvalidValue, match="asOf"):
        options.table_read({"path": "/s", "table": "t", "asOf": version, "check": "full"})


def test_a_table_is_read_at_a_version_under_the_names_of_spark() -> None:
    """`timestampAsOf` is a time, also with a blank between date and time, `versionAsOf` a version, and one is given."""
    version = "1700000000123456789"
    read = options.table_read({"path": "/s", "table": "t", "timestampasof": "2024-05-01 10:00:00+00:00"})
    assert read.as_of == 1714557600000999999
    assert options.table_read({"path": "/s", "table": "t", "versionAsOf": version}).as_of == int(version)
    for given_options, says in (
        ({"timestampAsOf": version}, "not a time"),
        ({"timestampAsOf": "2024-05-01 10:00:00"}, "not a time"),
        ({"versionAsOf": "1714557600000"}, "not a version"),
        ({"timestampAsOf": "20240501"}, "timestampAsOf 20240501 is a time in 1970, in milliseconds"),
        ({"asOf": "1714557600"}, "asOf 1714557600 is a time in 1970, in milliseconds"),
        ({"versionAsOf": "now"}, "not a version"),
        ({"asOf": "now", "versionAsOf": version}, "give the version twice"),
        ({"timestampAsOf": "2024-05-01", "check": "full"}, "check does not go with"),
    ):
        with pytest.raises(InvalidValue, match=says):
            options.table_read({"path": "/s", "table": "t", **given_options})


def test_columns_are_named_by_an_option() -> None:
    """In the order and with the types that are asked for; a wrong name is told with all that there are."""
    assert schemas.chosen("value string, key", schemas.TABLE_COLUMNS) == "value string, key binary"
    for text, says in (
        ("keys", "unknown column 'keys'"),
        ("key,", "unknown column ''"),
        ("key, key", "names 'key'"),
        ("timestamp string", "timestamp is bigint; columns asks for string"),
        ("key string binary", "names 'key string binary'"),
    ):
        with pytest.raises(InvalidValue, match=says) as error:
            schemas.chosen(text, schemas.TABLE_COLUMNS)
        assert "unknown" not in says or (error.value.hint or "").endswith(
            "The columns are key, value, timestamp."
        )


def test_a_size_has_a_unit_of_1024() -> None:
    """16m and 16777216 are the same."""
    for text in ("16m", "16MB", "16777216", "16384k"):
        assert options.topic_stream({"topic": "orders", "maxBytesPerTrigger": text}).max_bytes == 1 << 24


def test_rows_are_written_to_a_topic_or_a_table() -> None:
    """Or to the topics that the rows name, if neither is given."""
    assert options.write({"path": "/s", "topic": "orders"}).topic == ORDERS
    assert options.write({"path": "/s", "table": "accounts"}).table == "accounts"
    assert options.write({"path": "/s"}).topic is None
    assert not options.write({"path": "/s", "topic": "orders"}).create_topic
    assert options.write({"path": "/s", "topic": "orders", "createtopic": "TRUE"}).create_topic
    with pytest.raises(InvalidValue, match="createTopic"):
        options.write({"path": "/s", "createTopic": "true"})
    with pytest.raises(InvalidValue, match="not to both"):
        options.write({"path": "/s", "topic": "orders", "table": "accounts"})


def test_the_path_may_be_a_file_uri() -> None:
    """Spark users write paths as URIs."""
    assert options.topic_read({"path": "file:///data/my%20store", "topic": "orders"}).path == "/data/my store"


def test_without_a_path_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """TXNCTL_STORE is what the command line goes by too."""
    monkeypatch.setenv("TXNCTL_STORE", "/env/store")
    assert options.topic_read({"topic": "orders"}).path == "/env/store"


@pytest.mark.parametrize("key", ["checkpointLocation", "queryName", "__partition_columns", "spark.anything"])
def test_what_spark_adds_is_passed_over(key: str) -> None:
    """Its own options come along with ours."""
    assert options.write({"path": "/s", "topic": "orders", key: "x"}).topic == ORDERS


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"topic": "orders", "isolationLevl": "x"}, "Did you mean isolationLevel?"),
        ({"topic": "orders", "startingOffset": "x"}, "Did you mean startingOffsets?"),
        ({"topic": "orders", "zzzz": "x"}, "It takes path,"),
    ],
)
def test_an_unknown_option_is_an_error_that_names_the_nearest(given: dict[str, str], hint: str) -> None:
    """A misspelt option never reads something else in silence."""
    with pytest.raises(InvalidValue, match="is not an option of reading topics") as error:
        options.topic_read({"path": "/s", **given})
    assert (error.value.hint or "").startswith(hint)


def test_an_option_of_another_use_is_an_error() -> None:
    """A batch read has no subscription, a write no start."""
    with pytest.raises(InvalidValue, match="subscription is not an option of reading topics"):
        options.topic_read({"path": "/s", "topic": "orders", "subscription": "a"})
    with pytest.raises(InvalidValue, match="startingPosition is not an option of writing"):
        options.write({"path": "/s", "topic": "orders", "startingOffsets": "earliest"})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, InvalidValue),
        ({"topic": "a", "topics": "b"}, InvalidValue),
        ({"topic": "a", "subscribe": "a", "topics": "b"}, InvalidValue),
        ({"topic": "../a"}, InvalidName),
        ({"topics": "a,,b"}, InvalidName),
        ({"topicsPattern": "("}, InvalidValue),
        ({"topic": "a", "isolationLevel": "SERIALIZABLE"}, InvalidValue),
        ({"topic": "a", "startingPosition": "12"}, InvalidPosition),
        ({"topic": "a", "startingPosition": '{"a": ["1:2"]}'}, InvalidValue),
        ({"topic": "a", "startingPosition": '{"a": "1:2"'}, InvalidValue),
        ({"topic": "a", "startingPosition": "1:2", "startingTimestamp": "0"}, InvalidValue),
        ({"topic": "a", "startingTimestamp": "yesterday"}, InvalidValue),
        ({"topic": "a", "includeProperties": "perhaps"}, InvalidValue),
        ({"topic": "a", "minPartitions": "0"}, InvalidValue),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], kind: type[Exception]) -> None:
    """With an error of the engine, never with a traceback of Python's."""
    with pytest.raises(kind):
        options.topic_read({"path": "/s", **given})


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=4))
def test_no_options_lead_to_another_error_than_ours(given_options: dict[str, str]) -> None:
    """Whatever is typed is read, or refused as bad input."""
    for read in (options.topic_read, options.topic_stream, options.write):
        try:
            read({"topic": "orders", **given_options})
        except (InvalidValue, InvalidName, InvalidPosition):
            continue


def test_every_option_and_column_is_documented() -> None:
    """docs/SPARK.md names all options of sources and sinks, their aliases, and the columns of a write."""
    page = (Path(__file__).parents[3] / "docs" / "SPARK.md").read_text()
    names = {*chain(*options.OPTIONS.values()), *options.ALIASES, *TOPIC_COLUMNS, *TABLE_COLUMNS}
    assert sorted(name for name in names if f"`{name}`" not in page) == []
