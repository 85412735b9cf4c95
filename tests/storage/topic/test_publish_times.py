"""Publish times: `storage/topic/publish_times.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage import Position, Store
from storage.disk.codec import key3
from storage.disk.schema import ENTRIES
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics, log, publish_times, state as topic_states
from storage.topic.catalogue import LedgerLimits
from storage.topic.entry import IN_ORDER, MESSAGES, Columns, encode
from storage.topic.open_topic import OpenTopic
from tests.storage.conftest import Scratch
from tests.storage.damage import damage

HOUR_MS = 3_600_000
BODY = Columns([b"x"]).body("p", 0)
Written = list[tuple[Position, int]]

steps = st.lists(
    st.tuples(st.sampled_from(["append", "append", "foreign", "older"]), st.integers(-3, 3)), max_size=30
)
"""Each step moves the clock by so many seconds, then appends to the topic, with a flag or as entries had none at first,
or issues a timestamp for an object elsewhere in the store."""


def write(batch: WriteBatch, clock: ManualClock, wanted: list[tuple[str, int]], limit: int) -> Written:
    """Write a topic `timed` in ledgers of `limit` entries; positions and publish times."""
    topic = OpenTopic.load(batch, topics.create(batch, "timed", LedgerLimits(entries_max=limit)).topic_id)
    written: Written = []
    for what, seconds in wanted:
        clock.wall_now_ns += seconds * 1_000_000_000
        if what == "foreign":
            batch.timestamp()
            continue
        at = log.append(topic, MESSAGES, 1, 0, BODY)
        entry = log.stored(batch, topic.topic_id, at)
        if what == "older":
            payload = encode(
                MESSAGES, 1, 0, entry.epoch, entry.publish_time, entry.timestamp, entry.messages_before,
                entry.bytes_before, BODY,
            )  # fmt: skip
            batch.put(ENTRIES, key3(topic.topic_id, *at), payload)
        written.append((at, entry.publish_time))
    return written


@given(wanted=steps, limit=st.integers(1, 9))
def test_a_time_is_the_first_position_at_or_after(
    scratch: Scratch, wanted: list[tuple[str, int]], limit: int
) -> None:
    """In the order of the log, however often the clock was set back, also among entries without a flag."""
    clock = scratch.store.engine.connection.clock
    assert isinstance(clock, ManualClock)

    def check(batch: WriteBatch) -> None:
        written = write(batch, clock, wanted, limit)
        topic = topics.get(batch, "timed")
        state = topic_states.load(batch, topic.topic_id)
        end = Position(state.ledger_id, state.next_entry)
        for time_ms in {ms + step for _, ms in written for step in (-1, 0, 1)}:
            expected = next((at for at, published in written if published >= time_ms), end)
            assert publish_times.first_at(batch, topic.topic_id, state, time_ms) == expected

    scratch.run(check)


def test_entries_are_not_read_one_by_one(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was years ahead when the store used it elsewhere leaves the search of this topic a binary one."""
    clock.wall_now_ns += 4 * 365 * 24 * HOUR_MS * 1_000_000
    store.create_topic("elsewhere")
    store.create_producer("elsewhere").send(b"x")
    clock.wall_now_ns -= 4 * 365 * 24 * HOUR_MS * 1_000_000
    store.create_topic("timed", ledger_entries_max=20)
    producer, times = store.create_producer("timed"), []
    for _ in range(50):
        clock.advance(1)
        producer.send(b"x")
        times.append(clock.wall_ms())
    monkeypatch.delattr(log, "scan")
    for number in (0, 7, 19, 20, 49):
        assert store.reports.position_at("timed", times[number]) == Position(1 + number // 20, number % 20)


def test_verify_finds_an_entry_that_is_not_in_order(store: Store, clock: ManualClock) -> None:
    """The flag of an entry is proved again by the full verify."""
    producer = store.create_producer("t")
    producer.send(b"x")
    clock.wall_now_ns -= HOUR_MS * 1_000_000
    producer.send(b"x")

    def claim(batch: WriteBatch) -> None:
        topic_id = topics.get(batch, "t").topic_id
        payload = bytearray(batch.get(ENTRIES, key3(topic_id, 1, 1)) or b"")
        assert payload[5] == 0
        payload[5] = IN_ORDER
        batch.put(ENTRIES, key3(topic_id, 1, 1), bytes(payload))

    def disclaim(batch: WriteBatch) -> None:
        topic_id = topics.get(batch, "t").topic_id
        payload = bytearray(batch.get(ENTRIES, key3(topic_id, 1, 1)) or b"")
        payload[5] = 0
        batch.put(ENTRIES, key3(topic_id, 1, 1), bytes(payload))

    assert any("later publish time" in message for _, message in damage(store, claim))
    store.connection.write(disclaim)
