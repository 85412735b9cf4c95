"""Reading offloaded ledgers that were trimmed from the store, and the rest from the store, as one topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from storage import EARLIEST, IsolationLevel, Position, Store
from storage.errors import InvalidValue, MessageNotFound
from tests.row_json import row_json
from tests.txnctl.spark.offload_steps import fill, rows
from tests.txnctl.spark.source.topic_range_steps import ranges
from tests.txnctl.spark.source.topic_stream_steps import reader
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.ledger_files.trimming import verified_ledgers

LEVELS = [level.value for level in IsolationLevel]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "off loaded")


def trim(store: Store, place: str) -> Position:
    """Trim what was offloaded; the first position left."""
    ledgers = verified_ledgers(store, "t", place)
    return store.admin.topics.trim_topic("t", offloaded=ledgers).effects.first_position


def places(found: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return [(row["ledgerId"], row["entryId"], row["batchIndex"]) for row in found]


@pytest.mark.parametrize("level", LEVELS)
def test_files_and_store_join_without_a_gap_or_a_duplicate(
    store: Store, path: str, place: str, level: str
) -> None:
    """Before and after the trimming, and after more messages, trimmed again or not."""
    fill(store)
    offload(store, "t", Root.of_path(place))
    before = rows(ranges(path, isolationLevel=level))
    assert trim(store, place) >= (4, 0)
    assert store.admin.topics.trim_topic("t").effects.first_position >= (4, 0)
    assert rows(ranges(path, offloadPath=place, isolationLevel=level)) == before
    fill(store, 9)
    later = rows(ranges(path, offloadPath=place, isolationLevel=level))
    assert later[: len(before)] == before
    assert len(set(places(later))) == len(later) > len(before)
    offload(store, "t", Root.of_path(place))
    trim(store, place)
    assert rows(ranges(path, offloadPath=place, isolationLevel=level)) == later


@pytest.mark.parametrize("parts", ["1", "7"])
def test_bounds_lie_in_files_and_store_alike(store: Store, path: str, place: str, parts: str) -> None:
    """Positions, batch indexes and times, on either side of the first ledger left."""
    fill(store)
    every = rows(ranges(path))
    middle = every[len(every) // 3]["publishTime"]
    bounds: list[dict[str, str]] = [
        {"startingPosition": "1:2"}, {"startingPosition": "1:2:3"}, {"endingPosition": "2:1"},
        {"startingPosition": "2:0", "endingPosition": "5:1"}, {"startingPosition": "5:0"},
        {"startingTimestamp": middle.isoformat()}, {"startingTimestamp": "2020-01-01"},
        {"endingTimestamp": middle.isoformat()}, {"startingPosition": "latest"},
    ]  # fmt: skip
    expected = [rows(ranges(path, **each)) for each in bounds]
    offload(store, "t", Root.of_path(place))
    trim(store, place)
    for each, wanted in zip(bounds, expected, strict=True):
        assert rows(ranges(path, offloadPath=place, minPartitions=parts, **each)) == wanted


def test_what_was_trimmed_without_being_offloaded_is_missing(store: Store, path: str, place: str) -> None:
    """A read begins with the offloaded ledgers that join the store; a start before them is told."""
    fill(store, 12)
    store.admin.topics.set_retention("t", time_ms=0)
    store.admin.subscriptions.create_subscription("t", "s", initial_position=Position(2, 0))
    assert store.admin.topics.trim_topic("t").effects.first_position == (2, 0)
    store.admin.topics.set_retention("t", time_ms="unset")
    every = rows(ranges(path))
    offload(store, "t", Root.of_path(place))
    store.admin.subscriptions.delete_subscription("t", "s")
    trim(store, place)
    assert rows(ranges(path, offloadPath=place)) == every
    for start in ({"startingPosition": "1:1"}, {"startingTimestamp": "2020-01-01"}):
        with pytest.raises(MessageNotFound, match="first one left is at 2:0"):
            ranges(path, offloadPath=place, **start)
    with pytest.raises(MessageNotFound, match="after 2:-1 were trimmed"):
        ranges(path, startingPosition="2:0")
    # A gap behind the files leaves them out.
    store.admin.topics.truncate_topic("t")
    fill(store, 3)
    assert places(rows(ranges(path, offloadPath=place)))[0] > places(every)[-1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("limit", ["1", "7", "40", "1000"])
def test_a_stream_reads_files_and_then_the_store(
    store: Store, path: str, place: str, limit: str, level: str
) -> None:
    """In micro-batches of about that many messages, from the checkpoint of a stream that stood in the files.

    `behind` counts the messages of both that are left.
    """
    fill(store)
    every = rows(ranges(path, isolationLevel=level))
    offload(store, "t", Root.of_path(place))
    trim(store, place)
    given = {"startingPosition": "earliest", "maxMessagesPerTrigger": limit, "offloadPath": place}
    given["isolationLevel"] = level
    stream = reader(path, **given)
    at, found, batches = stream.initialOffset(), [], 0
    assert at == {"t": "1:-1"}
    while (end := stream.latestOffset(at, ReadMaxRows(int(limit)))) != at:
        found += rows([part.value for part in stream.partitions(at, end)])  # type: ignore[arg-type]
        assert stream.reportLatestOffset()["t"]["behind"] == len(every) - len(found)
        at, batches = end, batches + 1
        stream = reader(path, **given)
    assert found == every
    assert batches > 1 or limit == "1000"
    with pytest.raises(MessageNotFound, match="were trimmed"):
        reader(path, startingPosition="earliest").latestOffset({"t": "1:2"}, ReadAllAvailable())


def test_a_subscription_cannot_begin_in_files(store: Store, path: str, place: str) -> None:
    """Its stream would lose them after a kill: the start is refused, and leaves no subscription."""
    fill(store)
    offload(store, "t", Root.of_path(place))
    stood = reader(path, startingPosition="1:3", subscription="old")
    at = stood.initialOffset()
    store.admin.acknowledgements.acknowledge_through(
        "t", "old", store.reports.topic_extents(["t"])[0].max_read
    )
    trim(store, place)
    for _ in range(2):
        with pytest.raises(InvalidValue, match="which only offloaded files have"):
            reader(path, startingPosition="earliest", subscription="new", offloadPath=place).initialOffset()
    assert [row_json(row)["subscription"] for row in store.reports.list_subscriptions("t")] == ["old"]
    # A checkpoint that is older than its subscription goes on in the files.
    again = reader(path, startingPosition="earliest", subscription="old", offloadPath=place)
    end = again.latestOffset(at, ReadAllAvailable())
    assert rows([part.value for part in again.partitions(at, end)]) == rows(  # type: ignore[arg-type]
        ranges(path, startingPosition="1:3", offloadPath=place)
    )


def test_consumers_and_readers_begin_with_what_is_left(store: Store, place: str) -> None:
    """Only Spark reads the files."""
    fill(store)
    offload(store, "t", Root.of_path(place))
    first = trim(store, place)
    assert next(iter(store.reader("t", start=EARLIEST))).message_id.position >= first
    with pytest.raises(MessageNotFound, match=f"first one left is at {first}"):
        next(iter(store.reader("t", start=Position(1, 0))))
