"""Read times as steps: the same for every key as a list of all ranges that were read."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from storage.disk.lmdb.read_times import FORGOTTEN, ReadTimes
from tests.model_runs import examples

KEYS = [b"", *[bytes([letter]) for letter in b"abcdefgh"]]
RANGES = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.sampled_from(KEYS)), st.integers(1, 50)),
    max_size=25,
)

Range = tuple[bytes, bytes | None, int]


def made(ranges: list[Range]) -> ReadTimes:
    times = ReadTimes()
    for start, end, timestamp in ranges:
        times.cover(start, end, (timestamp, timestamp + 100))
    return times


def latest(ranges: list[Range], key: bytes) -> int:
    return max(
        (time for start, end, time in ranges if start <= key and (end is None or key < end)), default=0
    )


@settings(max_examples=examples(200))
@given(RANGES)
def test_each_key_has_its_latest_range(ranges: list[Range]) -> None:
    """With the transaction that read it, from the first key to the last, and beyond all."""
    times = made(ranges)
    for key in (*KEYS, b"dd", b"z"):
        timestamp = latest(ranges, key)
        assert times.at(key) == (timestamp, timestamp + 100 if timestamp else 0)
    assert len(times) <= 2 * len(ranges) + 1


@settings(max_examples=examples(100))
@given(RANGES)
def test_the_ranges_of_steps_make_the_same_steps(ranges: list[Range]) -> None:
    """Written out and read again."""
    times, copy = made(ranges), ReadTimes()
    for start, end, read in times.ranges():
        copy.cover(start, end, read)
    assert [copy.at(key) for key in KEYS] == [times.at(key) for key in KEYS]


@settings(max_examples=examples(100))
@given(RANGES, st.integers(0, 60))
def test_forgetting_lets_no_read_time_fall(ranges: list[Range], until: int) -> None:
    """Later reads stay as they are; every other key counts as read at that time."""
    times, before = made(ranges), made(ranges)
    times.forget(until)
    for key in KEYS:
        was = before.at(key)
        assert times.at(key) == (was if was[0] > until or not until else (until, FORGOTTEN))


@settings(max_examples=examples(100))
@given(RANGES)
def test_forgetting_up_to_the_median_leaves_fewer_steps(ranges: list[Range]) -> None:
    """Else making room would not end."""
    times = made(ranges)
    steps = len(times)
    times.forget(times.median())
    assert len(times) < steps or steps == 1


def test_the_same_range_takes_one_step() -> None:
    """Read again and again; and a range that is read on takes the place of its part."""
    times = ReadTimes()
    for number in range(1, 50):
        times.cover(b"k", b"k%02d" % number, (number, 7))
    assert len(times) == 3
    times.cover(b"", None, (60, 8))
    assert (len(times), times.at(b"k"), times.latest()) == (1, (60, 8), 60)
