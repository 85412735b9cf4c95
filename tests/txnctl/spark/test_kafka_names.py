"""Options of Spark's Kafka source: accepted under their names, or refused with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import InvalidValue
from txnctl.spark import kafka_names, options


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("kafka.bootstrap.servers", "path names the store"),
        ("kafka.group.id", "subscription"),
        ("kafka.isolation.level", "isolationLevel"),
        ("kafka.security.protocol", "no client to configure"),
        ("assign", "topics (subscribe)"),
        ("groupIdPrefix", "subscription"),
        ("minOffsetsPerTrigger", "interval of the query's trigger"),
        ("maxTriggerDelay", "interval of the query's trigger"),
        ("startingOffsetsByTimestampStrategy", "latest"),
        ("maxRecordsPerPartition", "minPartitions"),
        ("fetchOffset.numRetries", "leave it out"),
    ],
)
def test_a_name_without_an_equivalent_is_refused_with_what_to_write(name: str, instead: str) -> None:
    """For batches, streams and tables alike; an error never says just that the name is unknown."""
    for read in (options.topic_read, options.topic_stream, options.write):
        with pytest.raises(InvalidValue, match="of Kafka's source") as error:
            read({"path": "/s", "topic": "orders", name.lower(): "x"})
        assert instead in (error.value.hint or "")


def test_every_other_name_of_kafka_is_accepted() -> None:
    """The options of docs/structured-streaming-kafka-integration, as Spark hands them over."""
    given = {
        "subscribe": "orders", "startingoffsets": '{"orders": {"0": -2}}', "maxoffsetspertrigger": "5",
        "failondataloss": "false", "minpartitions": "3", "includeheaders": "true",
    }  # fmt: skip
    stream = options.topic_stream({"path": "/s", **given})
    assert (stream.max_messages, stream.fail_on_data_loss, stream.min_partitions) == (5, False, 3)
    batch = {"subscribepattern": "ord.*", "startingtimestamp": "0", "endingoffsets": "latest"}
    assert options.topic_read({"path": "/s", **batch}).topics.pattern == "ord.*"


def test_the_refused_names_are_documented() -> None:
    """In docs/SPARK.md."""
    page = (Path(__file__).parents[3] / "docs" / "SPARK.md").read_text()
    assert [name for name in kafka_names.NAMES if f"`{name}`" not in page] == []
