"""Steps that the tests of topic stream share."""

from __future__ import annotations

from storage import Store
from tests.txnctl.spark.asked import struct
from txnctl.spark import options
from txnctl.spark.source.topic_stream import TopicStreamReader


def send(store: Store, topic: str, *values: bytes) -> None:
    with store.create_producer(topic) as producer:
        for value in values:
            producer.send(value)


def reader(path: str, **given_options: str) -> TopicStreamReader:
    named = (
        given_options
        if "topics" in given_options or "topicsPattern" in given_options
        else {"topic": "t", **given_options}
    )
    return TopicStreamReader(options.topic_stream({"path": path, **named}), struct("value"))
