"""The background thread: buffers are written when they are due, and the thread ends when there are none."""

from __future__ import annotations

import pytest

from storage.process.background_flush import LOOK_S, WRITE_BEHIND_NS, Flusher
from storage.process.clock import ManualClock


class Buffer:
    """Notes when it was written; stays in the watch as often as it is told to."""

    def __init__(self, clock: ManualClock, flusher: Flusher, stays: int = 0) -> None:
        self.clock, self.flusher, self.stays = clock, flusher, stays
        self.written: list[int] = []
        self.forks = 0

    def write_overdue(self) -> None:
        self.written.append(self.clock.boot_ns())
        if len(self.written) > self.stays:
            self.flusher.leave(self)

    def forked(self) -> None:
        self.forks += 1


@pytest.fixture
def clock() -> ManualClock:
    """A clock that calls the thread's looks when it is moved."""
    return ManualClock()


def test_a_buffer_is_written_within_a_second_and_not_at_once(clock: ManualClock) -> None:
    """Once; then it has left."""
    flusher = Flusher(clock)
    buffer, since = Buffer(clock, flusher), clock.boot_ns()
    assert flusher.watch(buffer, since)
    clock.advance(WRITE_BEHIND_NS / 1e9 - 0.001)
    assert buffer.written == []
    clock.advance(10)
    (written,) = buffer.written
    assert WRITE_BEHIND_NS <= written - since <= WRITE_BEHIND_NS + LOOK_S * 1e9 < 1e9


def test_a_buffer_that_stays_is_asked_again(clock: ManualClock) -> None:
    """At every look."""
    flusher = Flusher(clock)
    buffer = Buffer(clock, flusher, stays=3)
    flusher.watch(buffer, clock.boot_ns())
    clock.advance(10)
    assert len(buffer.written) == 4


def test_a_buffer_that_left_is_not_written(clock: ManualClock) -> None:
    """Its transaction has written it, or has ended."""
    flusher = Flusher(clock)
    buffer = Buffer(clock, flusher)
    flusher.watch(buffer, clock.boot_ns())
    flusher.leave(buffer)
    clock.advance(10)
    assert buffer.written == []


def test_the_thread_ends_and_is_started_again(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while without anything to watch."""
    looks: list[int] = []
    every = clock.every
    flusher = Flusher(clock)

    def counted(seconds: float, action: object) -> None:
        def look() -> bool:
            looks.append(clock.boot_ns())
            return action()  # type: ignore[no-any-return, operator]

        every(seconds, look)

    monkeypatch.setattr(
        ManualClock,
        "every",
        lambda self, seconds, action: (
            counted(seconds, action) if action == flusher._look else every(seconds, action)
        ),
    )
    flusher.watch(Buffer(clock, flusher), clock.boot_ns())
    clock.advance(60)
    idle = len(looks)
    assert idle < 20
    clock.advance(60)
    assert len(looks) == idle
    second = Buffer(clock, flusher)
    flusher.watch(second, clock.boot_ns())
    clock.advance(60)
    assert len(second.written) == 1


def test_nothing_is_written_after_the_store_was_closed(clock: ManualClock) -> None:
    """What was buffered is dropped."""
    flusher = Flusher(clock)
    buffer = Buffer(clock, flusher)
    flusher.watch(buffer, clock.boot_ns())
    flusher.stop()
    clock.advance(10)
    assert buffer.written == []


def test_the_child_of_a_fork_forgets_the_parents_buffers(clock: ManualClock) -> None:
    """Each buffer is told, once."""
    flusher = Flusher(clock)
    buffer = Buffer(clock, flusher)
    flusher.watch(buffer, clock.boot_ns())
    flusher.forked()
    clock.advance(10)
    assert (buffer.forks, buffer.written) == (1, [])


def test_without_threads_a_buffer_is_refused(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller writes at once instead."""

    def every(self: ManualClock, seconds: float, action: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ManualClock, "every", every)
    flusher = Flusher(clock)
    assert not flusher.watch(Buffer(clock, flusher), clock.boot_ns())
