"""Filters that Spark pushes: the rows are those that Spark's own evaluation of the filters leaves."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from storage import Store
from storage.process.clock import SYSTEM_CLOCK, ManualClock
from tests.model_runs import examples
from tests.txnctl.spark.asked import struct
from tests.txnctl.spark.source.topic_range_steps import EPOCH
from txnctl.spark import options
from txnctl.spark.schemas import MESSAGE_TYPES, ROW_TYPES
from txnctl.spark.source import table_reader, topic_reader
from txnctl.spark.source.topic_range import TopicRange

COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq, EqualNullSafe: operator.eq, GreaterThan: operator.gt, GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt, LessThanOrEqual: operator.le,
    In: lambda value, values: value in values,
    StringStartsWith: lambda value, prefix: value.startswith(prefix),
    StringContains: lambda value, part: part in value,
}  # fmt: skip
NUMBERS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
KEYS = [b"", b"a", b"ab", b"b", b"\xff", b"zz"]
BYTES = (*NUMBERS, StringStartsWith, StringContains)
TAKEN = ("key", "ledgerId", "entryId", "publishTime")
VALUES: dict[str, Sequence[Any]] = {
    "key": KEYS, "value": KEYS, "ledgerId": range(9), "entryId": range(-1, 5), "publishTime": range(-3, 40),
    "batchIndex": range(-1, 3),
}  # fmt: skip


def some_filters(chance: random.Random, columns: Sequence[str]) -> list[Filter]:
    """One to three random filters, mostly comparisons."""
    return [some_filter(chance, (chance.choice(columns),)) for _ in range(chance.choice([1, 1, 2, 3]))]


def some_filter(chance: random.Random, path: tuple[str]) -> Filter:
    values = VALUES[path[0]]
    kind = chance.choice(
        [IsNull, IsNotNull, Not, In, *(2 * (BYTES if path[0] in ("key", "value") else NUMBERS))]
    )
    if kind is Not:
        return Not(EqualTo(path, chance.choice(values)))
    if kind in (IsNull, IsNotNull):
        return kind(path)
    if kind is In:
        return In(path, tuple(chance.choice([*values, None]) for _ in range(3)))
    return kind(path, chance.choice(values))


def passes(row: dict[str, Any], pushed: Filter) -> bool:
    """Evaluate a filter as SQL does: unknown is not passed."""
    if isinstance(pushed, Not):
        child = pushed.child
        assert isinstance(child, EqualTo)
        value = row[child.attribute[0]]
        return value is not None and value != child.value
    value = row[pushed.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(pushed, IsNull | IsNotNull):
        return (value is None) == isinstance(pushed, IsNull)
    return value is not None and COMPARISONS[type(pushed)](value, pushed.value)  # type: ignore[attr-defined]


def fill(store: Store, seed: int, clock: ManualClock) -> None:
    """Ledgers of four entries, plain, committed, aborted and open messages, times that go back now and then."""
    chance = random.Random(seed)
    store.create_topic("t", ledger_entries_max=4)
    txns = [store.begin_transaction() for _ in range(3)]
    with store.create_producer("t") as producer:
        for _ in range(25):
            clock.wall_now_ns += chance.choice([0, 1, 1, 2, -5]) * 1_000_000
            count = chance.choice([1, 1, 3])
            producer.send_batch(
                [chance.choice([b"", b"a", b"ab", None]) for _ in range(count)],
                keys=[chance.choice([b"", b"a", b"ab", b"b", b"\xff", None]) for _ in range(count)],
                txn=chance.choice([None, None, None, *txns]),
            )
    store.commit_transaction(txns[0])
    store.admin.transactions.abort_transaction(txns[1])


def at(base_ms: int, pushed: Filter) -> Filter:
    """A filter on the publish time, of milliseconds after a base, with times as Spark hands them over."""

    def time(number: Any) -> Any:
        return (
            None
            if number is None
            else EPOCH + timedelta(milliseconds=base_ms + number, microseconds=number % 3)
        )

    if isinstance(pushed, Not):
        return Not(at(base_ms, pushed.child))
    if getattr(pushed, "attribute", ("",))[0] != "publishTime" or isinstance(pushed, IsNull | IsNotNull):
        return pushed
    value = pushed.value  # type: ignore[attr-defined]
    return type(pushed)(
        pushed.attribute, tuple(map(time, value)) if isinstance(value, tuple) else time(value)
    )  # type: ignore[attr-defined,call-arg]


def read(
    given_options: dict[str, str], filters: list[Filter]
) -> tuple[list[dict[str, Any]], list[Filter], Any]:
    """The rows of a read with these filters, the filters that are left to Spark, and the partitions."""
    reader = topic_reader.topic_reader(
        options.topic_read(given_options | {"pushFilters": "true"}), struct(*MESSAGE_TYPES)
    )
    rest = list(reader.pushFilters(filters))
    carried = reader.partitions()
    rows = [row for part in carried for batch in reader.read(part) for row in batch.to_pylist()]
    return rows, rest, [part.value for part in carried]


def filled(path: str, seed: int) -> tuple[Store, int]:
    """A store of the times of a clock that is set back now and then; with the time of its beginning."""
    base_ms = SYSTEM_CLOCK.wall_ms() - 3_600_000
    clock = ManualClock(base_ms + 20)
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as store:
        fill(store, seed, clock)
    return Store.open(path), base_ms


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=examples(3))
@pytest.mark.parametrize(
    "given_options",
    [
        {},
        {"isolationLevel": "READ_UNCOMMITTED", "startingPosition": "1:1:1", "endingPosition": "5:2:1"},
        {"readCompacted": "true"},
        {"offloadPath": "files"},
        {
            "offloadPath": "files",
            "isolationLevel": "READ_UNCOMMITTED",
            "keyFrom": "a",
            "endingPosition": "4:1",
        },
    ],
    ids=["committed", "uncommitted within batches", "compacted", "offloaded", "offloaded uncommitted"],
)
def test_a_read_with_filters_gives_the_rows_that_pass_them(
    tmp_path_factory: pytest.TempPathFactory,
    given_options: dict[str, str],
    seed: int,
) -> None:
    """Whatever is taken is exact, and the filters that come back to Spark do the rest."""
    directory = tmp_path_factory.mktemp("pushed")
    store, base_ms = filled(str(directory / "store"), seed)
    with store:
        wanted = {"path": store.path, "topic": "t", "minPartitions": str(1 + seed % 3), **given_options}
        if "offloadPath" in wanted:
            wanted["offloadPath"] = str(directory / "files")
        if "readCompacted" in wanted:
            store.admin.topics.compact_topic("t")
        every_row, _, _ = read(wanted, [])
        chance = random.Random(seed)
        for filters in (some_filters(chance, list(VALUES)) for _ in range(80)):
            timed = [at(base_ms, pushed) for pushed in filters]
            rows, rest, _ = read(wanted, timed)
            passed = [row for row in rows if all(passes(row, pushed) for pushed in rest)]
            assert passed == [row for row in every_row if all(passes(row, pushed) for pushed in timed)], timed
            assert not [pushed for pushed in rest if type(pushed) in NUMBERS and pushed.attribute[0] in TAKEN]


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=examples(4))
def test_rows_of_a_table_are_those_that_pass(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """By key, whole ranges and single keys, deleted ones among them."""
    chance, path = random.Random(seed), str(tmp_path_factory.mktemp("pushed") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_table("t")
        table = store.table("t")
        for _ in range(12):
            key = chance.choice([b"a", b"ab", b"b", b"\xff", b"zz", b"\xff\xff"])
            table.put(key, chance.choice([b"", b"a", b"ab"])) if chance.random() < 0.8 else table.delete(key)
        wanted = {"path": path, "table": "t", "minPartitions": "2", "pushFilters": "true"}
        every_row, _ = read_rows(wanted, [])
        for filters in (some_filters(chance, ["key", "key", "value"]) for _ in range(80)):
            rows, rest = read_rows(wanted, filters)
            assert [row for row in rows if all(passes(row, pushed) for pushed in rest)] == [
                row for row in every_row if all(passes(row, pushed) for pushed in filters)
            ], filters


def read_rows(
    given_options: dict[str, str], filters: list[Filter]
) -> tuple[list[dict[str, Any]], list[Filter]]:
    """The rows of a table with these filters, and the filters that are left to Spark."""
    reader = table_reader.table_reader(options.table_read(given_options), struct(*ROW_TYPES))
    rest = list(reader.pushFilters(filters))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return rows, rest


def test_text_and_times_without_a_zone(store: Store, path: str) -> None:
    """A key as text is compared by its bytes; a time without a zone is left to Spark."""
    store.create_topic("t")
    with store.create_producer("t") as producer:
        producer.send_batch([b"1", b"2", b"3"], keys=["ä".encode(), b"b", None])
    rows, rest, _ = read({"path": path, "topic": "t"}, [GreaterThan(("key",), "b")])
    assert ([row["value"] for row in rows], rest) == ([b"1"], [])
    naive = [
        LessThan(("publishTime",), datetime.fromisoformat("2000-01-01")),
        EqualTo(("properties", "key"), "b"),
        EqualTo(("key",), None),
    ]
    rows, rest, _ = read({"path": path, "topic": "t"}, naive)
    assert (len(rows), rest) == (3, naive)


def test_a_plan_has_the_ledgers_that_may_hold_selected_messages(store: Store, path: str) -> None:
    """By position on both sides, and by publish time from the front; no other ledger is read."""
    store.create_topic("t", ledger_entries_max=2)
    with store.create_producer("t") as producer:
        for number in range(20):
            producer.send(b"%d" % number)
    (message,) = [each for each in store.reader("t") if each.value == b"12"]
    time = EPOCH + timedelta(milliseconds=message.publish_time)
    earliest = store.reports.position_at("t", message.publish_time).ledger_id
    for filters, first, last in (
        ([GreaterThan(("ledgerId",), 3), LessThan(("ledgerId",), 7)], 4, 6),
        ([EqualTo(("ledgerId",), 5), EqualTo(("entryId",), 1)], 5, 5),
        ([GreaterThanOrEqual(("publishTime",), time)], earliest, 10),
        ([EqualTo(("ledgerId",), 99)], 0, -1),
        ([In(("key",), (None,))], 0, -1),
    ):
        _, rest, parts = read({"path": path, "topic": "t", "minPartitions": "10"}, filters)
        ledgers = {
            ledger for part in parts for ledger in range(part.after.ledger_id, part.through.ledger_id + 1)
        }
        assert rest == []
        assert ledgers == set(range(first, last + 1))
        assert all(isinstance(part, TopicRange) for part in parts)


@pytest.mark.parametrize("name", ["ledgerId", "publishTime"])
def test_offloaded_files_and_their_row_groups_are_passed_over(
    store: Store, path: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Files of further ledgers are not in the plan; row groups outside the times are not read."""
    import pyarrow.parquet as pq

    clock = ManualClock(SYSTEM_CLOCK.wall_ms() - 3_600_000)
    store.close()
    with Store.open(path, clock=clock) as timed:
        timed.create_topic("t", ledger_entries_max=2)
        with timed.create_producer("t") as producer:
            for number in range(20):
                producer.send(b"%d" % number)
                clock.wall_now_ns += 1_000_000_000
        times = [message.publish_time for message in timed.reader("t")]
    files = {"path": path, "topic": "t", "offloadPath": str(tmp_path / "files")}
    whole = read(files, [])[2]
    groups = list[int]()
    iter_batches = pq.ParquetFile.iter_batches

    def counting(self: Any, *of: Any, **named: Any) -> Any:
        groups.extend(named["row_groups"])
        return iter_batches(self, *of, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counting)
    if name == "ledgerId":
        rows, _, parts = read(files, [EqualTo(("ledgerId",), 3)])
        assert (len(rows), len(parts)) == (2, 1)
        assert len(whole) > 1
    else:
        until = EPOCH + timedelta(milliseconds=times[3])
        rows, _, parts = read(files, [LessThanOrEqual(("publishTime",), until)])
        assert len(rows) == 4
        assert len(parts) == len(groups) < len(whole)
