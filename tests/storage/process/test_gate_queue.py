"""The queue before the writer gate as a model: processes that arrive, look, pass, stop and die in any order.

The gate is a variable of the model; the queue and its page are real, each process has a descriptor and a map of its
own. tests/processes/test_gate_queue.py has the same with real processes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from storage.process.byte_locks import ByteLocks
from storage.process.clock import ManualClock
from storage.process.gate_queue import GateQueue, QueuePlace
from storage.process.wake_page import QUEUED, SLOT_TICKET, SLOT_WORD, SLOTS, WakePage

PROCESSES = 5

steps = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "look", "look", "leave", "leave", "stop", "resume", "kill"]),
        st.integers(0, PROCESSES - 1),
    ),
    max_size=60,
)


class Process:
    """One process of the model: outside, waiting at a place, or inside."""

    def __init__(self, path: Path, arrival: int) -> None:
        self.locks = ByteLocks(str(path), writable=True)
        self.page = WakePage(str(path))
        self.page.map(makes=True)
        self.queue = GateQueue(self.page, self.locks, ManualClock())
        self.place: QueuePlace | None = None
        self.arrival = arrival
        self.is_inside = self.is_stopped = False
        self.is_fresh = False
        """Whether the process has arrived and has not looked yet: it looks once before it sleeps."""

    @property
    def is_awake(self) -> bool:
        """Whether a waiting process looks without a timeout."""
        assert self.place is not None
        return self.is_fresh or self.page.words[SLOT_WORD + self.place.slot] != self.place.seen

    @property
    def shows_ticket(self) -> bool:
        assert self.place is not None and self.page.tickets is not None
        return bool(self.page.tickets[SLOT_TICKET + self.place.slot])

    def close(self) -> None:
        """As its death: the kernel drops the locks."""
        self.page.close()
        self.locks.close()


class Gate:
    """The gate with the processes before it.

    Attributes:
        charged: timeouts without which nobody would have entered.
        blows: processes that were stopped, killed inside, or killed when the gate was left to them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = 0
        self.processes = [Process(path, 0) for _ in range(PROCESSES)]
        self.charged = self.blows = 0

    @property
    def is_free(self) -> bool:
        return not any(process.is_inside for process in self.processes)

    def waiting(self) -> list[Process]:
        return [process for process in self.processes if process.place is not None and not process.is_stopped]

    def arrive(self, process: Process) -> None:
        if process.place is not None or process.is_inside or process.is_stopped:
            return
        if not process.page.words[QUEUED] and self.is_free:
            process.is_inside = True
            return
        self._clock += 1
        process.arrival, process.place, process.is_fresh = self._clock, process.queue.join(), True

    def look(self, process: Process) -> None:
        if process.place is None or process.is_stopped or not process.is_awake:
            return
        process.is_fresh = False
        if not process.queue.is_first(process.place) or not self.is_free:
            return
        before = [other for other in self.waiting() if other.arrival < process.arrival and other.shows_ticket]
        assert not before, "an earlier one that can come is overtaken"
        self._enter(process)

    def _enter(self, process: Process) -> None:
        assert process.place is not None
        process.queue.leave(process.place, is_inside=True)
        process.place, process.is_inside = None, True

    def leave(self, process: Process) -> None:
        if process.is_inside and not process.is_stopped:
            process.is_inside = False
            if process.page.words[QUEUED]:
                process.queue.wake_first()

    def stop(self, process: Process) -> None:
        self.blows += not process.is_stopped
        process.is_stopped = True

    def resume(self, process: Process) -> None:
        process.is_stopped, process.is_fresh = False, True

    def kill(self, process: Process) -> None:
        # One that dies behind a held gate costs nothing: the holder does not find the process alive when it leaves.
        self.blows += process.is_inside or (process.place is not None and self.is_free)
        process.close()
        self.processes[self.processes.index(process)] = Process(self._path, 0)

    def settle(self) -> None:
        """Let processes look until none is awake; where the gate is free then, the last of them has its timeout."""
        while True:
            awake = [process for process in self.waiting() if process.is_awake]
            for process in awake:
                self.look(process)
            if awake:
                continue
            if not self.is_free or not self.waiting():
                return
            late = self.waiting()[-1]
            assert late.place is not None
            self.charged += 1
            late.queue.drop(late.place)
            late.queue.pass_over_first()
            self._enter(late)
            return

    def close(self) -> None:
        for process in self.processes:
            process.close()


ALL_ARRIVE = [("arrive", number) for number in range(PROCESSES)]
ALL_LEAVE = [("leave", number) for number in (0, 4, 2, 3, 4, 2)]


@settings(max_examples=200, deadline=None)
@example([*ALL_ARRIVE, ("stop", 1), *ALL_LEAVE])
@example([*ALL_ARRIVE, ("stop", 1), ("stop", 3), *ALL_LEAVE, ("resume", 1), *ALL_ARRIVE, *ALL_LEAVE])
@example([*ALL_ARRIVE, ("kill", 1), *ALL_LEAVE])
@example([*ALL_ARRIVE, ("kill", 2), ("kill", 0), *ALL_LEAVE])
@given(steps)
def test_a_blow_costs_one_timeout_at_most(taken: list[tuple[str, int]]) -> None:
    """Nobody is overtaken by a later one, everybody gets in, and only kills and stops cost timeouts, one each."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.lock"
        path.write_bytes(b"")
        gate = Gate(path)
        for step, number in taken:
            getattr(gate, step)(gate.processes[number])
            if step == "leave":
                gate.settle()
            assert gate.charged <= gate.blows
        for process in gate.processes:
            gate.resume(process)
        while gate.waiting() or not gate.is_free:
            for process in gate.processes:
                gate.leave(process)
            gate.settle()
            assert gate.charged <= gate.blows
        gate.close()


def test_a_full_queue_has_no_further_place(tmp_path: Path) -> None:
    """A process that finds none looks again after short sleeps; places given back are taken again."""
    path = tmp_path / "store.lock"
    path.write_bytes(b"")
    first, second = Process(path, 0), Process(path, 0)
    places = [first.queue.join() for _ in range(SLOTS)]
    assert None not in places
    assert first.queue.join() is None and second.queue.join() is None
    last = places[-1]
    assert last is not None
    first.queue.leave(last, is_inside=False)
    again = first.queue.join()
    assert again is not None and again.slot == last.slot
    for process in (first, second):
        process.close()
