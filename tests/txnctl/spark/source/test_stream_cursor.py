"""Stream cursor: `txnctl/spark/source/stream_cursor.py`."""

from __future__ import annotations

import pytest

from storage import Position, Store
from storage.errors import InvalidValue, SubscriptionNotFound
from tests.row_json import row_json
from tests.txnctl.spark.micro_batches import Killed, Query
from tests.txnctl.spark.source.topic_stream_steps import reader, send


def test_a_stream_from_the_latest_message_keeps_its_start_in_a_subscription(store: Store, path: str) -> None:
    """A driver that dies before its first batch starts again where it began, not at what is the latest by then."""
    store.create_topic("t")
    send(store, "t", b"before")
    query = Query(path, topic="t", subscription="s")
    with pytest.raises(Killed):
        query.run(iter([True, True, False]).__next__)
    send(store, "t", b"1", b"2")
    query.run()
    assert query.values() == [b"1", b"2"]


def test_a_stream_from_the_latest_message_without_a_subscription_is_refused(store: Store, path: str) -> None:
    """It could lose messages, and nobody would notice."""
    store.create_topic("t")
    with pytest.raises(InvalidValue, match="needs a subscription"):
        reader(path).initialOffset()
    with pytest.raises(InvalidValue, match="needs a subscription"):
        reader(path, topics="t", startingPosition='{"t": "latest"}').initialOffset()


def test_a_stream_from_the_beginning_needs_no_subscription(store: Store, path: str) -> None:
    """The beginning is the same whenever it is asked for."""
    store.create_topic("t")
    send(store, "t", b"1", b"2")
    query = Query(path, topic="t", startingPosition="earliest")
    query.run()
    assert query.values() == [b"1", b"2"]
    assert row_json(store.reports.list_subscriptions("t")) == []


def test_a_subscription_that_is_there_says_where_to_start(store: Store, path: str) -> None:
    """What it has acknowledged is not read again, whatever startingPosition says."""
    store.create_topic("t")
    store.admin.subscriptions.create_subscription("t", "s")
    send(store, "t", b"1", b"2", b"3")
    store.admin.acknowledgements.acknowledge_through("t", "s", Position(1, 0))
    query = Query(path, topic="t", subscription="s", startingPosition="earliest")
    query.run()
    assert query.values() == [b"2", b"3"]


def test_a_subscription_of_another_kind_is_refused(store: Store, path: str) -> None:
    """Of another level, or shared by consumers."""
    store.create_topic("t")
    store.admin.subscriptions.create_subscription("t", "s", subscription_isolation_level="READ_UNCOMMITTED")  # type: ignore[arg-type]
    store.admin.subscriptions.create_subscription("t", "shared", subscription_type="Shared")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="is READ_UNCOMMITTED, and the stream reads READ_COMMITTED"):
        reader(path, subscription="s").initialOffset()
    with pytest.raises(InvalidValue, match="is Shared"):
        reader(path, subscription="shared").initialOffset()


def test_a_subscription_that_is_deleted_is_missed_when_it_should_move(store: Store, path: str) -> None:
    """And is created anew, at the place of the checkpoint, by the query that is started after it."""
    store.create_topic("t")
    query = Query(path, topic="t", subscription="s")
    query.run()
    send(store, "t", b"1")
    query.run()
    store.admin.subscriptions.delete_subscription("t", "s")
    stream = reader(path, subscription="s")
    with pytest.raises(SubscriptionNotFound):
        stream.commit({"t": "1:0"})
    send(store, "t", b"2")
    query.run()
    assert query.values() == [b"1", b"2"]
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
