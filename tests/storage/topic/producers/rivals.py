"""Rivals for a topic: handles that are as good as processes, and waiters that a test moves step by step.

Each handle on a store holds a kernel lock of its own, so that closing it is the death of whatever was connected
through it. A waiter runs in a thread, but only while the test gives it a turn: it goes on until it sleeps. So the
order of everything is the test's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from storage import IsolationLevel, Producer, Store
from storage.disk.schema import ALL, HEADS, LEASES
from storage.disk.view import SUPERBLOCK_KEY
from storage.errors import ProducerFenced
from storage.process.clock import ManualClock
from storage.reports.producers import SessionRow
from storage.topic.state import TopicState
from tests.row_json import row_json

LOOKS = 8
"""So often a waiter sleeps until it has surely looked at everything once."""


class TurnClock(ManualClock):
    """A clock that only the test moves: a thread of a waiter that sleeps hands the turn back instead."""

    def __init__(self) -> None:
        super().__init__()
        self.waiters: dict[int, Waiter] = {}

    def sleep(self, seconds: float) -> None:
        waiter = self.waiters.get(threading.get_ident())
        if waiter is None:
            super().sleep(seconds)
        else:
            waiter.hand_back()

    def reboot(self) -> None:
        """The machine starts anew: another boot id, and a boot clock from the beginning."""
        self.boot = b"manual-boot-" + b"%04d" % (int(self.boot[-4:]) + 1)
        self.boot_now_ns = 500_000_000


class Waiter:
    """A call that waits, moved by `look`.

    Attributes:
        told: what the call told when it began to wait; None if it never did.
        result, error: how it ended.
    """

    def __init__(self, clock: TurnClock, call: Callable[[Callable[[Any], None]], Any]) -> None:
        self._clock = clock
        self._call = call
        self._mine, self._tests = threading.Semaphore(0), threading.Semaphore(0)
        self._interrupted = False
        self.told: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._tests.acquire()

    def _run(self) -> None:
        self._clock.waiters[threading.get_ident()] = self
        try:
            result = self._call(self._tell)
            self.result = row_json(result) if isinstance(result, SessionRow) else result
        except BaseException as error:  # noqa: BLE001 - it is the test's to judge
            self.error = error
        finally:
            del self._clock.waiters[threading.get_ident()]
            self._tests.release()

    def _tell(self, what: Any) -> None:
        self.told = what

    def hand_back(self) -> None:
        """In the thread of the waiter: let the test go on until it gives a turn."""
        self._tests.release()
        self._mine.acquire()
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    @property
    def waits(self) -> bool:
        return self._thread.is_alive() and self.result is None and self.error is None

    def look(self) -> bool:
        """Let it look at the store until it sees nothing new; whether it still waits."""
        return all(self._turn() for _ in range(LOOKS))

    def _turn(self) -> bool:
        if not self.waits:
            return False
        self._mine.release()
        self._tests.acquire()
        return self.waits

    def interrupt(self) -> None:
        """Ctrl-C, and its end."""
        self._interrupted = True
        while self._turn():
            pass

    def join(self) -> None:
        """See that it has ended."""
        if self.waits:
            self.interrupt()
        self._thread.join()


class Rivals:
    """The handles and waiters of one test, on the store at `path`."""

    def __init__(self, path: str, clock: TurnClock) -> None:
        self.path = path
        self.clock = clock
        self._stores: list[Store] = []
        self.producers: list[Producer] = []
        self.waiters: list[Waiter] = []

    def open(self) -> Store:
        """Another handle, as good as another process: `close()` is its death."""
        store = Store.open(self.path, clock=self.clock)
        self._stores.append(store)
        return store

    def produce(self, access_mode: str, topic: str = "t", **how: Any) -> Producer:
        """A producer of a process of its own."""
        producer = self.open().create_producer(topic, access_mode=access_mode, **how)
        self.producers.append(producer)
        return producer

    def wait(
        self, topic: str = "t", store: Store | None = None, call: str = "create_producer", **how: Any
    ) -> Waiter:
        """A producer of a process of its own (or of `store`) that waits to own the topic."""
        mine = self.open() if store is None else store
        how = {"access_mode": "WaitForExclusive", **how}
        waiter = Waiter(self.clock, lambda tell: getattr(mine, call)(topic, on_wait=tell, **how))
        self.waiters.append(waiter)
        return waiter

    def look(self) -> None:
        """Let every waiter look, until none of them finds anything new."""
        waiting = -1
        while (now := sum(waiter.look() for waiter in self.waiters)) != waiting:
            waiting = now

    def pass_time(self, seconds: float) -> None:
        """Let time pass; after it every waiter has looked, for deaths too."""
        self.clock.advance(seconds)
        self.look()

    def crash(self) -> None:
        """All processes die, waiting ones too: nobody withdraws anything."""
        for store in self._stores:
            store.close()
        self.close()

    def close(self) -> None:
        for waiter in self.waiters:
            waiter.join()
        for store in self._stores:
            store.close()


def records(store: Store) -> dict[str, dict[bytes, bytes]]:
    """Every record of the store, but for counters of what came and went, and for who has a lease."""
    with store.connection.view() as view:
        found = {
            database.name: {key: bytes(payload) for key, payload in view.scan(database)}
            for database in ALL
            if database is not LEASES
        }
    found[HEADS.name].pop(SUPERBLOCK_KEY, None)  # a server keeps the superblock in a table of its own
    for key, payload in found[HEADS.name].items():
        head = TopicState.decode(memoryview(payload))
        head.session_changes = 0
        found[HEADS.name][key] = head.encode()
    return found


def commits(store: Store) -> int:
    """How many store transactions there have been."""
    number: int = row_json(store.reports.store_info())["commits"]
    return number


def epochs(store: Store, topic: str = "t") -> list[int]:
    """The epochs of all stored messages, in order."""
    messages = store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return [message.epoch for message in messages]


def topic_epoch(store: Store, topic: str = "t") -> int | None:
    found: int | None = row_json(store.reports.topic_stats(topic))["topicEpoch"]
    return found


def assert_fenced(*producers: Producer) -> None:
    """That none of them can ever publish again."""
    for producer in producers:
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                producer.send(b"never stored")


def values(store: Store, topic: str = "t") -> list[bytes | None]:
    messages = store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return [message.value for message in messages]


def publish(rivals: Rivals, token: str, value: bytes = b"x", topic: str = "t", **how: Any) -> None:
    """One shell command: a process comes, publishes through the session, and goes."""
    with rivals.open() as process:
        process.session_producer(topic, token).send(value, **how)


def lease(rivals: Rivals, seconds: float = 60, **how: Any) -> str:
    """`producers open`: the token, printed by a process that has gone."""
    with rivals.open() as process:
        token: str = row_json(process.open_session("t", lease=seconds, **how))["session"]
    return token
