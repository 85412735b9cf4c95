"""The writer gate within one process; tests/processes/test_writer_gate.py has it between processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import StoreClosed, WriterBusy
from storage.process import futex, gate_queue, writer_gate
from storage.process.byte_locks import ByteLocks
from storage.process.clock import SYSTEM_CLOCK, Clock, ManualClock
from storage.process.wake_page import HIGH, QUEUED, SLOT_TICKET, SLOTS, WakePage
from storage.process.writer_gate import GATE_BYTE, WriterGate
from tests.storage.interrupt_lines import interrupted_runs
from tests.waiting import wait_for

Gates = tuple[WriterGate, WriterGate]


@pytest.fixture
def clock() -> ManualClock:
    """A clock that sleeping moves."""
    return ManualClock()


@pytest.fixture
def gates(tmp_path: Path, clock: ManualClock) -> Iterator[Gates]:
    """The gate as two handles see it that do not know of each other."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks = [ByteLocks(str(path), writable=True) for _ in range(2)]
    pages = [WakePage(str(path)) for _ in range(2)]
    yield WriterGate(locks[0], clock, pages[0]), WriterGate(locks[1], clock, pages[1])
    for each in locks:
        each.close()


def test_one_is_inside_at_a_time(gates: Gates) -> None:
    """The next one comes in when the first has left."""
    first, second = gates
    first.enter(0, None)
    assert second.is_held()
    with pytest.raises(WriterBusy):
        second.enter(0, None)
    second.leave()
    first.leave()
    assert not second.is_held()
    second.enter(0, None)
    second.leave()


def test_waiting_ends_in_time_and_names_the_holder(gates: Gates, clock: ManualClock) -> None:
    """After the timeout by the clock, not before."""
    first, second = gates
    first.enter(0, None)
    began_ns = clock.boot_ns()
    with pytest.raises(WriterBusy, match=f"process {os.getpid()} ") as busy:
        second.enter(2.5, None)
    second.leave()
    assert 2.5e9 <= clock.boot_ns() - began_ns < 2.6e9
    assert str(os.getpid()) in busy.value.details["holder"]


def test_a_waiter_is_announced_once_after_a_second(gates: Gates) -> None:
    """With the holder, and how long it has waited."""
    first, second = gates
    first.enter(0, None)
    announced: list[tuple[str, float]] = []
    with pytest.raises(WriterBusy):
        second.enter(5, lambda holder, waited_s: announced.append((holder, waited_s)))
    second.leave()
    assert len(announced) == 1
    assert announced[0][0] == first.holder()
    assert 1 <= announced[0][1] < 1.1


def test_the_gate_is_left_as_often_as_it_was_entered(gates: Gates) -> None:
    """By one call, as after an interrupt nobody knows how far `enter` had come."""
    first, second = gates
    first.enter(0, None)
    first.enter(0, None)
    first.leave()
    second.enter(0, None)
    second.leave()
    second.leave()
    assert not first.is_held()


def test_another_thread_waits_without_the_kernel(gates: Gates) -> None:
    """Threads share a descriptor, between which the kernel makes no difference."""
    gate, _ = gates
    gate.enter(0, None)
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            gate.enter(0.01, None)
        except WriterBusy as error:
            errors.append(error)
        finally:
            gate.leave()

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    gate.leave()
    assert [str(error) for error in errors] == [
        "another thread of this process held the writer gate for 0.01 s"
    ]


def test_backing_off_takes_a_tenth_of_a_second_at_most(gates: Gates, clock: ManualClock) -> None:
    """And no time at all while the gate is free."""
    first, second = gates
    began_ns = clock.boot_ns()
    second.back_off(5)
    assert clock.boot_ns() == began_ns
    first.enter(0, None)
    second.back_off(5)
    assert 0.09e9 < clock.boot_ns() - began_ns <= 0.11e9
    began_ns = clock.boot_ns()
    second.back_off(0.004)
    assert clock.boot_ns() - began_ns <= 0.006e9
    first.leave()


def test_newcomer_backs_off_only_from_a_gate_in_use(gates: Gates, clock: ManualClock) -> None:
    """A free gate is entered at once."""
    first, second = gates
    began_ns = clock.boot_ns()
    second.enter(0, None, backs_off=True)
    second.leave()
    assert clock.boot_ns() == began_ns
    first.enter(0, None)
    with pytest.raises(WriterBusy):
        second.enter(0.004, None, backs_off=True)
    assert clock.boot_ns() - began_ns >= 0.002e9
    first.leave()


def test_no_signature_before_the_first_writer(gates: Gates) -> None:
    """Then pid and start time of the last."""
    gate, _ = gates
    assert (gate.signature(), gate.holder()) == (None, "an unknown process")
    gate.enter(0, None)
    gate.leave()
    signature = gate.signature()
    assert signature is not None
    assert signature[0] == os.getpid()


def test_threads_can_be_kept_out(gates: Gates) -> None:
    """As long as the process forks."""
    gate, _ = gates
    assert gate.stop_threads(0)
    others: list[bool] = []
    thread = threading.Thread(target=lambda: others.append(gate.stop_threads(0.01)))
    thread.start()
    thread.join()
    gate.let_threads_go()
    assert others == [False]


def test_nobody_is_woken_where_nobody_waits(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that is free costs no system call of futex."""

    def refuse(*_: object) -> int:
        raise AssertionError("nobody waits")

    first, second = gates
    first.enter(0, None)
    first.leave()
    monkeypatch.setattr(futex, "wait", refuse)
    monkeypatch.setattr(futex, "wake", refuse)
    for gate in (first, second, first):
        gate.enter(5, None)
        gate.announce_commit()
        gate.leave()


def test_without_a_page_the_gate_is_looked_at_after_short_sleeps(
    gates: Gates, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a directory without write permission; times and the holder are the same."""
    monkeypatch.setattr(WakePage, "map", lambda page, *, makes: False)
    first, second = gates
    first.enter(5, None)
    began_ns = clock.boot_ns()
    with pytest.raises(WriterBusy, match=f"process {os.getpid()} "):
        second.enter(0.5, None)
    assert 0.5e9 <= clock.boot_ns() - began_ns < 0.51e9
    pauses = 0

    def sleep(_: ManualClock, seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 3:
            first.leave()

    monkeypatch.setattr(ManualClock, "sleep", sleep)
    second.enter(5, None)
    assert pauses == 3
    second.leave()


def test_threads_of_one_process_pass_in_the_order_of_their_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As processes do; each is woken by the one before."""
    # No patience: a slow machine lets no place pass over the first, and a wake that is missing ends the test.
    monkeypatch.setattr(gate_queue, "PATIENCE_S", 3600.0)
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks, page = ByteLocks(str(path), writable=True), WakePage(str(path))
    gate, passed = WriterGate(locks, SYSTEM_CLOCK, page), list[int]()

    def enter(number: int) -> None:
        gate.enter(60, None)
        passed.append(number)
        gate.leave()

    gate.enter(5, None)
    threads = [threading.Thread(target=enter, args=(number,)) for number in range(6)]
    numbers = page.tickets
    assert numbers is not None
    for number, thread in enumerate(threads):
        thread.start()
        while sum(map(bool, numbers[SLOT_TICKET : SLOT_TICKET + SLOTS].tolist())) <= number:
            assert thread.is_alive()
    gate.leave()
    for thread in threads:
        thread.join(30)
    assert passed == [0, 1, 2, 3, 4, 5]
    page.close()
    locks.close()


class _StandingClock(Clock):
    """Real sleeps, and a boot clock that stands: a slow machine ends no turn."""

    __slots__ = ()

    boot_ns = staticmethod(lambda: 1)


def _pass_in_turn(path: Path, passes: int, *, commits: bool) -> list[str]:
    """The order of passes: "mine" passes so often, "first" and "second" wait from before its first pass on.

    "first" stays inside until "mine" has passed for the last time, or waits again.
    """
    path.write_bytes(b"")
    clock, passed = _StandingClock(), list[str]()
    locks = [ByteLocks(str(path), writable=True) for _ in range(4)]
    pages = [WakePage(str(path)) for _ in locks]
    holder, *gates = [WriterGate(lock, clock, page) for lock, page in zip(locks, pages, strict=True)]

    def enter(gate: WriterGate, name: str, count: int) -> None:
        for _ in range(count):
            gate.enter(60, None)
            passed.append(name)
            while name == "first" and passed.count("mine") < passes and waiting() < 2:
                assert threads[0].is_alive()
            if commits:
                gate.announce_commit()
            gate.leave()

    holder.enter(5, None)
    assert pages[0].map(makes=True)
    numbers = pages[0].tickets
    assert numbers is not None
    threads: list[threading.Thread] = []

    def waiting() -> int:
        return sum(map(bool, numbers[SLOT_TICKET : SLOT_TICKET + SLOTS].tolist()))

    for gate, name, count in zip(gates, ("mine", "first", "second"), (passes, 1, 1), strict=True):
        threads.append(threading.Thread(target=enter, args=(gate, name, count)))
        threads[-1].start()
        while waiting() < len(threads):
            assert threads[-1].is_alive()
    holder.leave()
    for thread in threads:
        thread.join(60)
    for lock, page in zip(locks, pages, strict=True):
        page.close()
        lock.close()
    return passed


def test_the_passes_of_a_transaction_are_one_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the commit they go before those that came later, of whom one at most was called already."""
    monkeypatch.setattr(gate_queue, "PATIENCE_S", 3600.0)
    for number in range(5):
        passed = _pass_in_turn(tmp_path / f"reads-{number}", 2, commits=False)
        assert passed[0] == "mine" and sorted(passed[1:3]) == ["first", "mine"] and passed[3] == "second"
        assert _pass_in_turn(tmp_path / f"commits-{number}", 2, commits=True) == [
            "mine", "first", "second", "mine",
        ]  # fmt: skip


def test_a_turn_without_a_commit_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that only reads starves nobody."""
    monkeypatch.setattr(gate_queue, "PATIENCE_S", 3600.0)
    passed = _pass_in_turn(tmp_path / "locks", 60, commits=False)
    assert passed.index("second") <= 1 + 16 + 1
    assert passed.count("mine") == 60


def test_a_turn_that_is_over_is_followed_by_a_new_one(tmp_path: Path) -> None:
    """Though the thread has met no queue since, where it would have seen that its turn is over."""
    path, clock, ends = tmp_path / "locks", Clock(), list[int]()
    path.write_bytes(b"")
    locks = [ByteLocks(str(path), writable=True) for _ in range(2)]
    pages = [WakePage(str(path)) for _ in locks]
    holder, gate = [WriterGate(lock, clock, page) for lock, page in zip(locks, pages, strict=True)]
    assert pages[0].map(makes=True)
    numbers = pages[0].tickets
    assert numbers is not None

    def release_once_waited_for() -> None:
        wait_for(lambda: any(numbers[SLOT_TICKET : SLOT_TICKET + SLOTS].tolist()), "the gate is waited for")
        holder._locks.release(GATE_BYTE)

    for _ in range(2):
        holder.enter(5, None)
        leaving = threading.Thread(target=release_once_waited_for)
        leaving.start()
        gate.enter(60, None)
        turn = gate._turn
        assert turn is not None
        ends.append(turn.until_ns)
        turn.until_ns = 0
        gate.leave()
        leaving.join(30)
        holder.leave()
    assert 0 < ends[0] <= ends[1]
    for lock, page in zip(locks, pages, strict=True):
        page.close()
        lock.close()


def test_a_thread_lock_that_an_interrupt_left_is_no_gate(gates: Gates) -> None:
    """An interrupt of `leave` may come between the unlocking and the release of the thread lock."""
    first, second = gates
    first._threads.acquire()
    second.enter(0, None)
    with pytest.raises(WriterBusy):
        first.enter(0.01, None)
    second.leave()


def test_interrupt_within_leave_lets_other_writers_pass(gates: Gates) -> None:
    """A program that handles the interrupt and is idle then would keep them out."""
    first, second = gates

    def pass_gate() -> None:
        try:
            first.enter(0, None)
        finally:
            first.leave()

    for line in interrupted_runs(pass_gate, writer_gate):
        assert not second.is_held(), f"the gate is held behind an interrupt at line {line}"
        assert not first._threads._is_owned()  # type: ignore[attr-defined]


def test_a_thread_inside_enters_again_beside_a_queue(gates: Gates) -> None:
    """Its own gate is never one to wait for."""
    first, second = gates
    first.enter(0, None)
    with pytest.raises(WriterBusy):
        second.enter(0.1, None)
    waiting = threading.Thread(target=lambda: (second.enter(3600, None), second.leave()))
    waiting.start()
    page = second._page
    while not page.words[QUEUED] or page.words[HIGH] == 0:
        assert waiting.is_alive()
    first.enter(0.1, None)
    first.leave()
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("has_page", [True, False])
@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_handle_closed_by_another_thread_ends_the_wait(tmp_path: Path, has_page: bool, looks: int) -> None:
    """With the error of a closed handle, and the next one in the queue passes."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks = [ByteLocks(str(path), writable=True) for _ in range(2)]
    pages = [WakePage(str(path)) for _ in range(2)]
    if not has_page:
        pages[1].close()

    class ClosingClock(Clock):
        """Closes the second handle in one of its sleeps, as a second thread does."""

        sleeps = 0

        def _close_in_time(self) -> None:
            self.sleeps += 1
            if self.sleeps == looks:
                pages[1].close()
                locks[1].close()

        def sleep(self, seconds: float) -> None:
            self._close_in_time()
            super().sleep(seconds)

        def sleep_on_word(self, address: int, seen: int, seconds: float) -> bool:
            self._close_in_time()
            return super().sleep_on_word(address, seen, seconds)

    holder = WriterGate(locks[0], SYSTEM_CLOCK, pages[0])
    waiting = WriterGate(locks[1], ClosingClock(), pages[1])
    holder.enter(0, None)
    with pytest.raises(StoreClosed, match="was closed while this thread waited"):
        waiting.enter(5, None)
    waiting.leave()
    holder.leave()
    holder.enter(0.5, None)
    holder.leave()
    pages[0].close()
    locks[0].close()
