"""Offsets: `txnctl/spark/source/offsets.py`."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from storage import Store
from storage.errors import InvalidPosition
from tests.txnctl.spark.source.topic_stream_steps import reader, send


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        ({"t": "9:0"}, InvalidPosition),
        ({"t": "1:77"}, InvalidPosition),
        ({"t": "nonsense"}, InvalidPosition),
        ({"t": 5}, InvalidPosition),
        (["t"], InvalidPosition),
    ],
)
def test_what_stands_in_a_checkpoint_is_checked(
    store: Store, path: str, offset: dict[str, str], kind: type[Exception]
) -> None:
    """Spark does not do it: an offset beyond the end would pass over messages in silence."""
    store.create_topic("t")
    send(store, "t", b"1")
    with pytest.raises(kind):
        reader(path, startingPosition="earliest").latestOffset(offset, ReadAllAvailable())
