"""`@TIME`: a time as typed, and the position that it comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import EARLIEST, Position, Store
from storage.errors import InvalidPosition
from storage.process.clock import ManualClock
from txnctl.cli.at_time import AtTime, position_of
from txnctl.cli.of_now import known


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [("@1700000000123", 1_700_000_000_123), ("@1970-01-02", 86_400_000), ("@1970-01-01T01:00:00+01:00", 0)],
)
def test_times_are_milliseconds(text: str, time_ms: int) -> None:
    """In every form of a time."""
    assert AtTime.parse(text) == AtTime(time_ms)
    assert hash(AtTime.parse(text)) == hash(AtTime(time_ms))
    assert AtTime(time_ms) != time_ms


@pytest.mark.parametrize("text", ["@", "@yesterday", "@2024-05-01T10:00:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """A time without a zone is another time elsewhere."""
    with pytest.raises(InvalidPosition, match="is not a time"):
        AtTime.parse(text)


def test_a_time_is_the_first_entry_published_then_or_later(tmp_path: Path) -> None:
    """Every other start is a position already."""
    clock = ManualClock(wall_ms=1000)
    Store.create(tmp_path / "s", clock=clock)
    with Store.open(tmp_path / "s", clock=clock) as store:
        store.create_topic("t")
        producer = store.create_producer("t")
        for value in (b"a", b"b"):
            producer.send(value)
            clock.advance(10)
        assert position_of(store, "t", AtTime(0)) == Position(1, 0)
        assert position_of(store, "t", AtTime(1001)) == Position(1, 1)
        assert position_of(store, "t", EARLIEST) is EARLIEST
        assert position_of(store, "t", Position(7, 7)) == Position(7, 7)


def test_a_seek_after_the_clock_was_set_back_leaves_no_message_behind(tmp_path: Path) -> None:
    """The next message is the first in the order of the log published then or later, though publish times step back."""
    clock = ManualClock()
    Store.create(tmp_path / "s", clock=clock)
    with Store.open(tmp_path / "s", clock=clock) as store:
        store.create_topic("t")
        store.admin.subscriptions.create_subscription("t", "a")
        producer, times = store.create_producer("t"), []
        for number in range(11):
            clock.wall_now_ns += (-3_600_000 if number == 5 else 1000) * 1_000_000
            producer.send(b"%d" % number)
            times.append(clock.wall_ms())
        start = position_of(store, "t", AtTime(times[2]))
        store.admin.subscriptions.seek_subscription("t", "a", start)
        assert [message.value for message in store.reports.peek_messages("t", "a", 20)] == [
            b"%d" % number for number in range(2, 11)
        ]
        assert position_of(store, "t", AtTime(times[8])) == Position(1, 0)
        assert position_of(store, "t", AtTime(times[4] + 1)) == Position(1, 11)


def test_a_time_may_be_an_age() -> None:
    """Back from now."""
    assert known(AtTime.parse("@2h"), 10_000_000) == AtTime(2_800_000)
