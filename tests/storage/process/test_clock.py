"""Clocks: the machine's, the one that tests move, and spans that callers give."""

from __future__ import annotations

import math
import threading

import pytest

from storage.errors import InvalidValue
from storage.process.clock import Clock, ManualClock, nanoseconds


class TestMachine:
    """The clock of the machine."""

    def test_clocks_go_on(self) -> None:
        """While the process sleeps, too."""
        clock = Clock()
        before = clock.boot_ns(), clock.wall_ns()
        clock.sleep(0.01)
        assert clock.boot_ns() - before[0] >= 10_000_000
        assert abs(clock.wall_ms() - clock.wall_ns() // 1_000_000) <= 1

    def test_a_boot_has_a_name_of_16_bytes(self) -> None:
        """The same to every clock."""
        assert Clock().boot_id() == Clock().boot_id()
        assert len(Clock().boot_id()) == 16

    def test_every_calls_until_told_to_stop(self) -> None:
        """In a thread that keeps no process alive."""
        done, threads = threading.Event(), list[threading.Thread]()

        def look() -> bool:
            threads.append(threading.current_thread())
            if len(threads) == 3:
                done.set()
            return len(threads) < 3

        Clock().every(0.001, look)
        assert done.wait(10)
        assert len(threads) == 3
        assert all(thread.daemon for thread in threads)


class TestManual:
    """The clock of tests."""

    def test_it_moves_by_sleeping_alone(self) -> None:
        """Both of its clocks by the same."""
        clock = ManualClock(wall_ms=1000)
        before = clock.boot_ns()
        clock.sleep(1.5)
        assert clock.boot_ns() - before == 1_500_000_000
        assert clock.wall_ms() == 2500

    def test_calls_come_at_their_times(self) -> None:
        """In their order, however far the clock is moved at once."""
        clock, calls = ManualClock(), list[tuple[str, int]]()
        begun = clock.boot_ns()

        def note(name: str, times: int) -> bool:
            calls.append((name, (clock.boot_ns() - begun) // 1_000_000))
            return sum(each[0] == name for each in calls) < times

        clock.every(1.0, lambda: note("slow", 2))
        clock.every(0.4, lambda: note("fast", 3))
        clock.advance(10)
        assert calls == [("fast", 400), ("fast", 800), ("slow", 1000), ("fast", 1200), ("slow", 2000)]
        assert clock.boot_ns() - begun == 10_000_000_000


@pytest.mark.parametrize(("seconds", "ns"), [(0, 0), (1.5, 1_500_000_000), (1e-9, 1)])
def test_a_span_is_nanoseconds(seconds: float, ns: int) -> None:
    """Exactly, where the number is."""
    assert nanoseconds(seconds, "a delay") == ns


@pytest.mark.parametrize("seconds", [None, math.inf, 1e30])
def test_a_span_without_end_can_still_be_added_to_a_clock(seconds: float | None) -> None:
    """As eight bytes hold the sum."""
    span = nanoseconds(seconds, "a timeout")
    assert 29 * 365 * 86_400 * 10**9 < span < 2**63 - 2**62


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan, "1", [1]])
def test_what_is_no_span_is_refused(seconds: object) -> None:
    """By the name that the caller gives it."""
    with pytest.raises(InvalidValue, match="a delay is 0 seconds or more"):
        nanoseconds(seconds, "a delay")
