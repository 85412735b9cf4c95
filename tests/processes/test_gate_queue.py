"""The queue before the writer gate: processes pass in the order of their arrival, and dead or stopped ones cost little.

Where a test sets the patience to an hour, every pass is one that a process was woken for: a timeout would be an hour.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from storage import EARLIEST, Store
from storage.process.wake_page import SLOT_TICKET, SLOTS, WakePage
from tests.processes.child import Child, Children
from tests.waiting import wait_for

HOUR = 3600.0
USUAL = 0.02

WAITER = """
    from storage.disk.lmdb import commit_wait
    from storage.process import gate_queue
    gate_queue.PATIENCE_S = float(sys.argv[2])
    with Store.open(path, lock_timeout=600) as store:
        producer = store.create_producer("t")
        say("open")
        while word := hear():
            producer.send(word.encode())
            say("sent")
"""

DYING = """
    from storage.process.gate_queue import GateQueue
    method, moment = sys.argv[2:]
    with Store.open(path, lock_timeout=600) as store:
        producer = store.create_producer("t")
        say("open")
        hear()
        really = getattr(GateQueue, method)

        def die(*arguments, **options):
            if moment == "after":
                really(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(GateQueue, method, die)
        producer.send(b"of the dead")
"""

HOLDER = """
    with Store.open(path) as store:
        def hold(batch):
            say("holding")
            hear()

        store.connection.write(hold)
        say("left")
        hear()
"""

THREADS = """
    import threading
    from storage.process import gate_queue
    gate_queue.PATIENCE_S = 3600.0
    name, count, turns = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    store = Store.open(path, lock_timeout=600)
    producers = [store.create_producer("t") for _ in range(count)]

    def send(number):
        for _ in range(turns):
            producers[number].send(f"{name}{number}".encode())

    say("open")
    while hear():
        threads = [threading.Thread(target=send, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say("sent")
    store.close()
"""


@pytest.fixture
def waiting(path: str) -> Iterator[Callable[[], int]]:
    """Counts the places in the queue."""
    page = WakePage(os.path.join(path, "store.lock"))
    assert page.map(makes=True)
    numbers = page.tickets
    assert numbers is not None
    yield lambda: sum(map(bool, numbers[SLOT_TICKET : SLOT_TICKET + SLOTS].tolist()))
    page.close()


def expect(condition: Callable[[], bool]) -> None:
    wait_for(condition, "as many wait as the test expects")


def opened(children: Children, count: int, patience_s: float) -> list[Child]:
    waiters = [children.run(WAITER, patience_s) for _ in range(count)]
    for waiter in waiters:
        waiter.expect("open")
    return waiters


def held(children: Children) -> Child:
    holder = children.run(HOLDER)
    holder.expect("holding")
    return holder


def queue_up(waiters: list[Child], waiting: Callable[[], int]) -> None:
    """Let processes join the queue one after the other; each sends its number."""
    before = waiting()
    for number, waiter in enumerate(waiters):
        waiter.say(str(number))
        expect(lambda number=number: waiting() == before + number + 1)


def values(path: str) -> list[bytes]:
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader("t", start=EARLIEST)]


def test_processes_pass_in_the_order_of_their_arrival(
    path: str, children: Children, waiting: Callable[[], int]
):
    """Each is woken by the one before."""
    waiters, holder = opened(children, 5, HOUR), held(children)
    queue_up(waiters, waiting)
    holder.say("leave")
    for waiter in waiters:
        waiter.expect("sent")
    assert values(path) == [b"0", b"1", b"2", b"3", b"4"]
    assert waiting() == 0


def test_killed_processes_in_the_queue_cost_no_timeout(
    path: str, children: Children, waiting: Callable[[], int]
):
    """Their slots are free, and so the next one is woken at once."""
    waiters, holder = opened(children, 5, HOUR), held(children)
    queue_up(waiters, waiting)
    for number in (0, 1, 3):
        waiters[number].kill()
    holder.say("leave")
    for number in (2, 4):
        waiters[number].expect("sent")
    assert values(path) == [b"2", b"4"]
    assert waiting() == 0


def test_a_killed_holder_costs_one_timeout(path: str, children: Children, waiting: Callable[[], int]):
    """It wakes nobody: one that has waited in vain looks, and wakes the others when it leaves."""
    waiters, holder = opened(children, 3, USUAL), held(children)
    queue_up(waiters, waiting)
    holder.kill()
    for waiter in waiters:
        waiter.expect("sent")
    assert sorted(values(path)) == [b"0", b"1", b"2"]


def test_a_stopped_process_in_the_queue_is_passed_over_once(
    path: str, children: Children, waiting: Callable[[], int]
):
    """The others pass, and again; the one that was stopped passes when it is continued."""
    waiters, holder = opened(children, 4, USUAL), held(children)
    queue_up(waiters, waiting)
    for number in (0, 2):
        waiters[number].stop()
    holder.say("leave")
    for number in (1, 3):
        waiters[number].expect("sent")
    assert waiting() <= 1, "one that was passed over is in nobody's way"
    for number in (1, 3):
        waiters[number].say("again")
        waiters[number].expect("sent")
    for number in (0, 2):
        waiters[number].resume()
        waiters[number].expect("sent")
    assert sorted(values(path)) == [b"0", b"1", b"2", b"3", b"again", b"again"]
    assert waiting() == 0


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("method", ["join", "is_first", "sleep", "leave"])
def test_a_process_may_be_killed_at_every_step(
    path: str, children: Children, waiting: Callable[[], int], method: str, moment: str
):
    """The one behind it passes."""
    dying = children.run(DYING, method, moment)
    dying.expect("open")
    [waiter], holder = opened(children, 1, USUAL), held(children)
    dying.say("go")
    if method == "leave":
        expect(lambda: waiting() == 1)
    else:
        assert dying.line() is None
    waiter.say("of the living")
    holder.say("leave")
    waiter.expect("sent")
    assert values(path) == [b"of the living"]
    waiter.say("again")
    waiter.expect("sent")
    assert waiting() == 0


@pytest.mark.parametrize("method", ["join", "is_first", "leave"])
def test_a_process_killed_inside_the_gate_or_before_leaves_the_gate_usable(
    path: str, children: Children, waiting: Callable[[], int], method: str
):
    """A flag or a ticket of the dead is in nobody's way, without a timeout for those who come later."""
    dying = children.run(DYING, method, "after")
    dying.expect("open")
    holder = held(children)
    dying.say("go")
    if method == "leave":
        expect(lambda: waiting() == 1)
        holder.say("leave")
    assert dying.line() is None
    if method != "leave":
        holder.say("leave")
    [late] = opened(children, 1, HOUR)
    late.say("later")
    late.expect("sent")
    assert values(path) == [b"later"]
    assert waiting() == 0


@pytest.mark.parametrize("content", [b"\1", b"\x7f", b"\xff"])
def test_stale_tickets_of_a_copy_or_of_an_earlier_boot_cost_nothing(
    path: str, children: Children, waiting: Callable[[], int], content: bytes
):
    """No process owns their slots."""
    with open(os.path.join(path, "store.lock"), "r+b") as file:
        file.seek(128)
        file.write(content * (4096 - 128))
    waiters = opened(children, 2, HOUR)
    for waiter in waiters:
        waiter.say("x")
        waiter.expect("sent")
    assert len(values(path)) == 2
    assert waiting() == 0


def test_threads_and_processes_share_the_gate(path: str, children: Children, waiting: Callable[[], int]):
    """A thread that has passed and comes again is behind all that wait: four threads of a process, and one of two each."""
    turns, crews = 3, {"a": 4, "b": 1, "c": 1}
    running = [children.run(THREADS, name, count, turns) for name, count in crews.items()]
    for crew in running:
        crew.expect("open")
    everyone = sorted(f"{name}{number}" for name, count in crews.items() for number in range(count))
    for turn in range(4):
        holder = held(children)
        for crew in running:
            crew.say("go")
        expect(lambda: waiting() == len(everyone))
        holder.say("leave")
        for crew in running:
            crew.expect("sent")
        sent = [value.decode() for value in values(path)[turn * turns * len(everyone) :]]
        assert sorted(sent[: len(everyone)]) == everyone, sent
        assert sorted(sent) == sorted(everyone * turns)
    assert waiting() == 0
