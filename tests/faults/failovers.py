"""Failovers: the primary is killed by -9 again and again, its synchronous standby is promoted, and clients go on.

    python -m tests.faults.failovers [ROUNDS [SEED]]

Producers send numbered messages, and a mover moves each in a transaction to a second topic. They know both servers, and
open the store again after an error. At the end every acknowledged message is there once and in order in both topics, and
the full verify finds nothing. `make failovers` runs 200 rounds.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage import EARLIEST, Store
from storage.errors import (
    Conflict,
    OutcomeUnknown,
    ServerLost,
    ServerUnreachable,
    StoreClosed,
    StoreUnsafe,
    WaitTimeout,
    WriterBusy,
)
from tests.processes.child import Child
from tests.processes.parent import has_let_go
from tests.processes.postgres.servers import Server
from tests.waiting import let_pass, moment_of_chance, wait_for

PRODUCERS: Final = 2
_PATIENCE_S: Final = 40.0
_AGAIN: Final = (
    Conflict,
    OutcomeUnknown,
    ServerLost,
    ServerUnreachable,
    StoreClosed,
    StoreUnsafe,
    WriterBusy,
)
"""Errors after which a client opens the store again. Lost commits are none of them: no failover here may lose one."""


class Client:
    """A client process: it works until the test lets go of it, and counts the errors that it meets."""

    def __init__(self, url: str, log: str) -> None:
        self.url = url
        self.errors: Counter[str] = Counter()
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, text: str) -> None:
        """Note what was acknowledged."""
        os.write(self._log, f"{text} {time.monotonic_ns()}\n".encode())

    def work(self, use: Callable[[Store], object]) -> None:
        """Use the store, and open it again after an error, until the test lets go."""
        while not has_let_go():
            try:
                with Store.open(self.url) as store:
                    use(store)
            except _AGAIN as error:
                self.errors[error.code] += 1
                let_pass(0.02, "between two tries of a client")
        print(*[f"{code}={number}" for code, number in self.errors.items()], flush=True)


def produce(url: str, log: str, name: str) -> None:
    """Send numbered messages; one without an answer is sent again under its number."""
    client, number = Client(url, log), 0

    def use(store: Store) -> None:
        nonlocal number
        producer = store.create_producer("t", producer_name=name)
        while not has_let_go():
            producer.send(f"{name} {number}".encode(), sequence_id=number)
            client.note(f"{name} {number}")
            number += 1

    client.work(use)


def move(url: str, log: str) -> None:
    """Move each message to the topic `out` in one transaction with its acknowledgement."""
    client = Client(url, log)

    def use(store: Store) -> None:
        consumer = store.subscribe("t", "mover", subscription_type="Exclusive")
        producer = store.create_producer("out")
        while not has_let_go():
            try:
                message = consumer.receive(timeout=0.2)
            except WaitTimeout:
                continue
            with store.transaction() as txn:
                producer.send(message.value, txn=txn)
                consumer.acknowledge(message, txn=txn)
            client.note((message.value or b"").decode())

    client.work(use)


def lines(log: str) -> list[str]:
    """The lines of a log that are whole."""
    return Path(log).read_text().split("\n")[:-1] if os.path.exists(log) else []


def wait_for_lines(log: str, count: int) -> None:
    """Wait until a log has so many lines."""
    wait_for(lambda: len(lines(log)) >= count, f"{log} has {count} lines", _PATIENCE_S)


def first_after(logs: list[str], moment_ns: int) -> int:
    """The time of the first acknowledgement after a moment."""

    def after() -> list[int]:
        times = [int(line.rpartition(" ")[2]) for log in logs for line in lines(log)[-50:]]
        return [at for at in times if at > moment_ns]

    return min(wait_for(after, "a client goes on", _PATIENCE_S))


def fail_over(primary: Server, standby: Server, logs: list[str], chance: random.Random) -> float:
    """Kill the primary while clients write; return the seconds until one of them has stored something again."""
    for log in logs:
        wait_for_lines(log, len(lines(log)) + 3)
    moment_of_chance(chance, 0, 0.3)
    primary.kill()
    killed_ns = time.monotonic_ns()
    standby.promote()
    primary.follow(standby)
    return (first_after(logs, killed_ns) - killed_ns) / 1e9


def judge(url: str, logs: dict[str, str]) -> list[str]:
    """Everything that is wrong at the end."""
    wrong: list[str] = []
    with Store.open(url) as store:
        stored = {topic: [(m.value or b"").decode() for m in store.reader(topic)] for topic in ("t", "out")}
        wrong += [str(problem) for problem in store.maintenance.verify_store(full=True)]
    for topic, values in stored.items():
        for value, count in Counter(values).items():
            if count > 1:
                wrong.append(f"{topic} has {value!r} {count} times")
        for name in (f"p{number}" for number in range(PRODUCERS)):
            numbers = [int(value.split()[1]) for value in values if value.startswith(name + " ")]
            if numbers != list(range(len(numbers))):
                wrong.append(f"{topic} has the messages of {name} out of order, or with gaps")
    for who, log in logs.items():
        topic = "out" if who == "mover" else "t"
        there = set(stored[topic])
        lost = [line for line in (line.rpartition(" ")[0] for line in lines(log)) if line not in there]
        if lost:
            wrong.append(f"{len(lost)} acknowledged by {who} are lost from {topic}: {lost[:3]}")
    if stored["t"] != stored["out"]:
        wrong.append(f"{len(stored['t'])} messages, and {len(stored['out'])} moved in this order")
    return wrong


def main(rounds: int = 200, seed: int = 1) -> int:
    """Fail over so many times; print the figures, and return the number of failures."""
    chance, primary = random.Random(seed), Server()
    children: dict[str, Child] = {}
    try:
        standby = primary.add_standby()
        with tempfile.TemporaryDirectory() as directory:
            url = primary.url("s", standby)
            Store.create(url)
            with Store.open(url) as store:
                store.create_topic("t")
                store.create_topic("out")
                store.admin.subscriptions.create_subscription("t", "mover", initial_position=EARLIEST)
            names = [f"p{number}" for number in range(PRODUCERS)]
            logs = {name: os.path.join(directory, name) for name in (*names, "mover")}
            for name in names:
                children[name] = _start("produce", url, logs[name], name)
            children["mover"] = _start("move", url, logs["mover"])
            seconds, servers = [], [primary, standby]
            for number in range(rounds):
                seconds.append(fail_over(servers[0], servers[1], list(logs.values()), chance))
                servers.reverse()
                if number % 10 == 9:
                    print(f"{number + 1} failovers, the last in {seconds[-1]:.2f} s", flush=True)
            said = {name: _end(children[name]) for name in names}
            sent = sum(len(lines(logs[name])) for name in names)
            _wait_until_moved(url, children["mover"])
            said["mover"] = _end(children["mover"])
            wrong = judge(url, logs)
            seconds.sort()
            print(
                f"{rounds} failovers (seed {seed}): {sent} messages acknowledged; a client stored again within"
                f" {seconds[len(seconds) // 2]:.2f} s (median), {seconds[-1]:.2f} s (longest); errors: {said};"
                f" {len(wrong)} failures",
                *wrong, sep="\n", flush=True,
            )  # fmt: skip
            return len(wrong)
    finally:
        for child in children.values():
            child.close()
        primary.remove()
        if "standby" in locals():
            standby.remove()


def _start(*words: str) -> Child:
    return Child(["-m", "tests.faults.failovers", *words])


def _end(child: Child) -> str:
    """Let a client end; return the errors that it has met."""
    child.say()
    said = child.line(_PATIENCE_S)
    assert said is not None, child.complaint()
    child.succeed()
    return said


def _wait_until_moved(url: str, mover: Child) -> None:
    until, moved = time.monotonic() + _PATIENCE_S, 0
    with Store.open(url) as store:
        while (count := len(list(store.reader("out")))) < len(list(store.reader("t"))):
            if count > moved:
                until, moved = time.monotonic() + _PATIENCE_S, count
            if not mover.is_running or time.monotonic() > until:
                os.kill(mover.pid, signal.SIGUSR1)
                wait_for(lambda: "most recent call first" in mover.complaint(), "the mover tells its stack")
                raise AssertionError(f"not everything is moved:\n{mover.complaint()}\n{_state(store)}")
            let_pass(0.2, "between two looks, whose deadline moves on with the messages")


def _state(store: Store) -> str:
    (subscription,) = store.reports.list_subscriptions("t")
    return f"{subscription}\n{store.reports.list_transactions()}"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1)
    match sys.argv[1:]:
        case ["produce", url, log, name]:
            produce(url, log, name)
        case ["move", url, log]:
            move(url, log)
        case words:
            sys.exit(bool(main(*map(int, words))))
