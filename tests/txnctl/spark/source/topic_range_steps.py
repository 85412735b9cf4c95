"""Steps that the tests of topic range share."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

from tests.txnctl.spark.asked import of_messages
from txnctl.spark import options
from txnctl.spark.source.topic_range import TopicRange
from txnctl.spark.source.topic_reader import plan_partitions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ranges(path: str, **given_options: str) -> list[TopicRange]:
    named = (
        given_options if {"topics", "topicsPattern"} & set(given_options) else {"topic": "t", **given_options}
    )
    return plan_partitions(options.topic_read({"path": path, **named}))


def rows(parts: list[TopicRange], *columns: str) -> list[dict[str, Any]]:
    schema = of_messages(*columns)
    carried = pickle.loads(pickle.dumps(parts))
    return [row for part in carried for batch in part.batches(schema) for row in batch.to_pylist()]


def values(parts: list[TopicRange]) -> list[bytes | None]:
    return [row["value"] for row in rows(parts, "value")]
