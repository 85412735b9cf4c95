"""Native read: `txnctl/spark/source/native_read.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import Store
from storage.errors import InvalidValue
from txnctl.spark import read_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.needs_program("java")


def test_reading_natively_needs_a_place(spark: SparkSession, aborted_and_open: Store):
    """Without offloadPath there is no file to read; an option that is misspelt is named as everywhere."""
    with pytest.raises(InvalidValue, match="needs offloadPath"):
        read_topic(spark, path=aborted_and_open.path, topic="one")
    with pytest.raises(InvalidValue, match="offloadpth is not an option"):
        read_topic(spark, path=aborted_and_open.path, topic="one", offloadPth="x")


def test_keys_are_selected_natively_too(spark: SparkSession, store: Store, path: str, tmp_path: Path) -> None:
    """Single keys, a range, and no key at all, as with `format("txnctl")`."""
    store.create_topic("keyed", ledger_entries_max=1)
    with store.create_producer("keyed") as producer:
        producer.send_batch([b"1", b"2", b"3", b"4"], keys=[b"a", b"b", None, b"\xff"])
        producer.send(b"5", key=b"b")
    place = str(tmp_path / "files")
    for given_options, expected in (
        ({"keys": "b"}, [b"2", b"5"]),
        ({"keyFrom": "b"}, [b"2", b"4", b"5"]),
        ({"keyUntil": "b"}, [b"1"]),
        ({"keyFrom": "c", "keyUntil": "b"}, []),
    ):
        frame = read_topic(spark, path=path, topic="keyed", offloadPath=place, **given_options)
        assert sorted(bytes(row.value) for row in frame.collect()) == expected
