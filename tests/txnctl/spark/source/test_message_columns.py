"""Message columns: `txnctl/spark/source/message_columns.py`."""

from __future__ import annotations

import pytest

from storage import Store
from tests.txnctl.spark.source.topic_range_steps import EPOCH, ranges, rows, values
from tests.waiting import wait_for


def test_times_are_those_of_publication(store: Store, path: str) -> None:
    """From the first message published at or after the one, up to the first at or after the other."""
    store.create_topic("t")
    producer = store.create_producer("t")
    for value in (b"1", b"2", b"3"):
        producer.send(value)
        before = store.connection.clock.wall_ms()
        wait_for(lambda before=before: store.connection.clock.wall_ms() > before, "a further millisecond")
    times = [message.publish_time for message in store.reader("t")]
    assert values(ranges(path, startingTimestamp=str(times[1]))) == [b"2", b"3"]
    assert values(ranges(path, startingTimestamp=str(times[1]), endingTimestamp=str(times[2]))) == [b"2"]
    assert values(ranges(path, endingTimestamp="0")) == []


@pytest.mark.parametrize(("column", "option"), [("eventTime", "event_times"), ("deliveryTime", "deliver_at")])
def test_a_time_beyond_what_spark_can_hold_is_null(store: Store, path: str, column: str, option: str) -> None:
    """Spark counts microseconds in 64 bits; the engine milliseconds."""
    store.create_topic("t")
    times = [(1 << 63) - 1, 0, None]
    store.create_producer("t").send_batch([b"1", b"2", b"3"], **{option: times})  # type: ignore[arg-type]
    assert [row[column] for row in rows(ranges(path), column)] == [None, EPOCH, None]
