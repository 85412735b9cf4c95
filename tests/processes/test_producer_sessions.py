"""What connects a producer is a lock that the kernel drops with its process: nothing else keeps a topic, or frees it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from storage import Store
from storage.disk.codec import key1, pack
from storage.disk.schema import LEASES
from storage.disk.view import WriteBatch
from storage.errors import ProducerBusy, ProducerFenced
from storage.process.identity import started
from storage.topic import catalogue as topics
from storage.topic.producers import session as sessions
from tests.processes.child import Child, Children
from tests.row_json import row_json
from tests.waiting import wait_for

OWNER = """
    store = Store.open(path)
    try:
        producer = store.create_producer("t", access_mode=sys.argv[2], producer_name=sys.argv[3])
    except errors.ProducerFenced:
        say("evicted")
        sys.exit(0)
    say("owns", producer.topic_epoch, producer.session)
    while word := hear():
        try:
            say("sent", producer.send(word.encode()))
        except errors.ProducerFenced as error:
            say("fenced", error.details["topicEpoch"])
"""

PARENT_OF_A_SLEEPER = """
    import subprocess
    store = Store.open(path)
    producer = store.create_producer("t", access_mode="Exclusive")
    inherits_all = {"close_fds": False}
    sleeper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], **inherits_all)
    say("owns", producer.topic_epoch, producer.session)
    say("sleeper", sleeper.pid)
    hear()
"""

FORKED = """
    store = Store.open(path)
    owner = store.create_producer("t", access_mode="Exclusive", producer_name="parent")
    owner.send(b"1 of the parent")
    child = os.fork()
    if child == 0:
        try:
            for attempt in (
                lambda: owner.send(b"of the child"),
                owner.close,
                lambda: store.create_producer("t"),
                lambda: store.admin.producers.close_session(owner.session),
                lambda: store.reports.list_producers(),
            ):
                try:
                    attempt()
                except errors.StoreClosed:
                    say("closed")
                else:
                    say("worked")
            with Store.open(path) as own:
                try:
                    own.create_producer("t", access_mode="Exclusive")
                except errors.ProducerBusy:
                    say("busy")
                say("pid", own.reports.list_producers("t")[0].pid)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    say("parent", os.getpid())
    hear()
    owner.send(b"2 of the parent")
    say("sent")
    hear()
"""

ORPHANED_CHILD = """
    store = Store.open(path)
    owner = store.create_producer("t", access_mode="Exclusive")
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"1")
        signal.pause()
        os._exit(0)
    os.read(ready, 1)
    say("owns", 0, owner.session)
    say("forked", child)
    hear()
"""

OWNER_OF_ANOTHER_BOOT = """
    from storage.process.clock import ManualClock
    store = Store.open(path, clock=ManualClock(boot=b"another-boot-001"))
    owner = store.create_producer("t", access_mode="Exclusive")
    owner.send(b"before the reboot")
    say("owns", owner.topic_epoch, owner.session)
    hear()
"""


@pytest.fixture
def contend(children: Children) -> Callable[..., Child]:
    """Starts a process that wants the topic, and waits where its mode does."""

    def start(mode: str = "Exclusive", name: str = "owner") -> Child:
        return children.run(OWNER, mode, name)

    return start


def own(child: Child) -> tuple[int, str]:
    """That it owns the topic; its epoch and token."""
    epoch, token = child.expect("owns").split()
    return int(epoch), token


def rows(store: Store) -> list[tuple[Any, ...]]:
    return [
        (row["producerName"], row["pid"], row["state"], row["isOwner"], row["place"])
        for row in row_json(store.reports.list_producers("t"))
    ]


def wait_until_queued(store: Store, names: list[str]) -> None:
    """Until those wait, in that order."""

    def waiting() -> list[str]:
        return [
            row["producerName"] for row in row_json(store.reports.list_producers("t")) if row["isWaiting"]
        ]

    wait_for(lambda: waiting() == names, f"{names} are queued")


def check_is_free(store: Store, epoch: int) -> None:
    """That the next one owns the topic at once."""
    with store.create_producer("t", access_mode="Exclusive") as producer:
        assert producer.topic_epoch == epoch
        producer.send(b"of the next owner")


class TestDeath:
    """However a process dies, its topic is free at once."""

    def test_sigkill(self, store: Store, contend: Callable[..., Child]) -> None:
        """Before anybody writes it is shown dead; whoever comes next owns the topic."""
        owner = contend()
        own(owner)
        owner.say("message")
        owner.expect("sent")
        with pytest.raises(ProducerBusy, match=str(owner.pid)):
            store.create_producer("t")
        assert rows(store) == [("owner", owner.pid, "alive", True, None)]
        owner.kill()
        assert rows(store) == [("owner", owner.pid, "dead", False, None)]
        check_is_free(store, 1)
        assert row_json(store.reports.ownership_history("t"))[1]["endedBy"] == "dead"

    def test_exit(self, store: Store, contend: Callable[..., Child]) -> None:
        """An end without a close is a death as well."""
        owner = contend()
        own(owner)
        owner.say()
        owner.succeed()
        check_is_free(store, 1)

    def test_sigkill_of_a_stopped_one(self, store: Store, contend: Callable[..., Child]) -> None:
        """SIGKILL reaches a stopped process, and its lock goes with it."""
        owner = contend()
        own(owner)
        owner.stop()
        assert rows(store) == [("owner", owner.pid, "stopped", True, None)]
        owner.kill()
        check_is_free(store, 1)

    def test_another_boot(self, store: Store, children: Children) -> None:
        """A session of before a reboot is void; its owner may resume under its epoch."""
        owner = children.run(OWNER_OF_ANOTHER_BOOT)
        _, token = own(owner)
        owner.kill()
        (row,) = row_json(store.reports.list_producers("t"))
        assert (row["state"], row["isOwner"]) == ("rebooted", False)
        with store.create_producer("t", access_mode="Exclusive", resume=token) as again:
            assert again.topic_epoch == 0
        check_is_free(store, 1)

    def test_its_transactions_go_with_it(self, store: Store, children: Children) -> None:
        """What was attached to the dead owner is aborted by whoever takes the topic, in that store transaction."""
        owner = children.run(
            """
            store = Store.open(path)
            txn = store.transaction()
            store.create_producer("t", access_mode="Exclusive").send(b"never seen", txn=txn)
            say("began", txn.id)
            hear()
            """
        )
        txn = owner.expect("began")
        owner.kill()
        check_is_free(store, 1)
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"
        assert [message.value for message in store.reader("t")] == [b"of the next owner"]

    def test_the_dead_owner_comes_back(self, store: Store, contend: Callable[..., Child]) -> None:
        """By its token, as another process, under its epoch: nobody took over and nobody produced."""
        owner = contend()
        _, token = own(owner)
        owner.say("first")
        owner.expect("sent")
        owner.kill()
        with store.create_producer("t", access_mode="Exclusive", resume=token) as again:
            again.send(b"second")
        assert [(m.value, m.epoch, m.sequence_id, m.producer_name) for m in store.reader("t")] == [
            (b"first", 0, 0, "owner"), (b"second", 0, 1, "owner"),
        ]  # fmt: skip


class TestPids:
    """A pid is evidence for people, and proves nothing."""

    def test_a_reused_pid_does_not_revive_an_owner(self, store: Store, contend: Callable[..., Child]) -> None:
        """Its records name a living process, with its very start time; the lock says that the owner is dead."""
        owner = contend()
        own(owner)
        owner.kill()
        forge(store, os.getpid())
        assert rows(store) == [("owner", os.getpid(), "dead", False, None)]
        check_is_free(store, 1)

    def test_a_pid_that_is_gone_does_not_evict_an_owner(
        self, store: Store, contend: Callable[..., Child]
    ) -> None:
        """The other way round: the lock is held, whatever the records say."""
        owner = contend()
        own(owner)
        gone = contend("Shared")
        gone.wait()
        forge(store, gone.pid)
        with pytest.raises(ProducerBusy):
            store.create_producer("t")
        owner.say("message")
        owner.expect("sent")


def forge(store: Store, pid: int) -> None:
    """Write into the records of the one session on `t` that it is of the process `pid`."""

    def change(batch: WriteBatch) -> None:
        (mine,) = sessions.every(batch, topics.get(batch, "t").topic_id)
        fields = list(mine.owner_fields)
        fields[2], fields[3] = pid, started(pid)
        mine.owner_fields = fields
        sessions.save(batch, mine)
        batch.put(LEASES, key1(mine.lease), pack(fields))

    prologue, store.connection.environment.writer.prologue = (
        store.connection.environment.writer.prologue,
        None,
    )
    store.connection.write(change)
    store.connection.environment.writer.prologue = prologue


class TestForks:
    """Nothing is handed on."""

    def test_a_forked_child_inherits_no_session(self, store: Store, children: Children) -> None:
        """It can neither publish, close nor see anything by what its parent opened; the parent owns on."""
        parent = children.run(FORKED)
        assert [parent.line() for _ in range(6)] == ["closed"] * 5 + ["busy"]
        assert parent.expect("pid") == parent.expect("parent")
        parent.say("go on")
        parent.expect("sent")
        with pytest.raises(ProducerBusy, match="parent"):
            store.create_producer("t")
        parent.kill()
        check_is_free(store, 1)
        assert [m.value for m in store.reader("t")] == [
            b"1 of the parent", b"2 of the parent", b"of the next owner",
        ]  # fmt: skip

    def test_a_forked_child_keeps_no_dead_parents_topic(self, store: Store, children: Children) -> None:
        """The parent is killed, the child lives: the topic is free."""
        parent = children.run(ORPHANED_CHILD)
        own(parent)
        child = int(parent.expect("forked"))
        try:
            parent.kill()
            os.kill(child, 0)
            check_is_free(store, 1)
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)

    def test_a_subprocess_with_all_descriptors_keeps_no_topic(self, store: Store, children: Children) -> None:
        """The owner is dead though a process that it started lives."""
        owner = children.run(PARENT_OF_A_SLEEPER)
        own(owner)
        sleeper = int(owner.expect("sleeper"))
        try:
            owner.kill()
            os.kill(sleeper, 0)
            check_is_free(store, 1)
        finally:
            os.kill(sleeper, signal.SIGKILL)


class TestStopped:
    """A stopped process counts as alive."""

    def test_it_owns_on_until_it_is_fenced(self, store: Store, contend: Callable[..., Child]) -> None:
        """Nobody but ExclusiveWithFencing gets past it; going on, it learns that it is fenced, and nothing of it shows."""
        owner, waiter = contend(), None
        own(owner)
        owner.say("before")
        owner.expect("sent")
        owner.stop()
        waiter = contend("WaitForExclusive", "waiter")
        wait_until_queued(store, ["waiter"])
        with pytest.raises(ProducerBusy, match="stopped"):
            store.create_producer("t", access_mode="Exclusive")
        assert not waiter.has_spoken(within=1)
        with store.create_producer("t", access_mode="ExclusiveWithFencing") as successor:
            successor.send(b"of the successor")
            waiter.expect("evicted")
            owner.resume()
            for _ in range(2):
                owner.say("after")
                assert owner.expect("fenced") == "1"
            successor.send(b"undisturbed")
        owner.say("still")
        owner.expect("fenced")
        assert [(m.value, m.epoch) for m in store.reader("t")] == [
            (b"before", 0), (b"of the successor", 1), (b"undisturbed", 1),
        ]  # fmt: skip

    def test_a_stopped_waiter_keeps_its_place(self, store: Store, contend: Callable[..., Child]) -> None:
        """The topic is its own when the owner leaves; those behind it wait until it goes on, or is killed."""
        owner = contend()
        own(owner)
        first = contend("WaitForExclusive", "first")
        wait_until_queued(store, ["first"])
        second = contend("WaitForExclusive", "second")
        wait_until_queued(store, ["first", "second"])
        first.stop()
        owner.kill()
        assert not second.has_spoken(within=1.5)
        assert rows(store)[1:] == [
            ("first", first.pid, "stopped", False, 1), ("second", second.pid, "alive", False, 2),
        ]  # fmt: skip
        first.resume()
        assert own(first)[0] == 1
        first.say("mine")
        first.expect("sent")
        first.kill()
        assert own(second)[0] == 2


class TestQueue:
    """Waiting across processes."""

    def test_a_waiter_learns_of_a_death(self, store: Store, contend: Callable[..., Child]) -> None:
        """Nobody else writes: it finds out by itself, and owns the topic."""
        owner = contend()
        own(owner)
        waiter = contend("WaitForExclusive", "waiter")
        wait_until_queued(store, ["waiter"])
        owner.kill()
        assert own(waiter)[0] == 1

    def test_a_waiter_learns_of_the_death_of_the_last_shared_one(
        self, store: Store, contend: Callable[..., Child]
    ) -> None:
        """Behind two Shared producers, killed one after the other."""
        shared = [contend("Shared", name) for name in ("a", "b")]
        for each in shared:
            assert each.expect("owns").startswith("None")
        waiter = contend("WaitForExclusive", "waiter")
        wait_until_queued(store, ["waiter"])
        shared[0].kill()
        assert not waiter.has_spoken(within=1.5)
        shared[1].kill()
        assert own(waiter)[0] == 0

    def test_five_processes_own_it_in_the_order_of_their_coming(
        self, store: Store, contend: Callable[..., Child]
    ) -> None:
        """Owners are killed, some waiters too, which are skipped; each epoch is one more (invariants 9, 11)."""
        names = [f"w{number}" for number in range(5)]
        running = {"owner": contend()}
        own(running["owner"])
        for place, name in enumerate(names, 1):
            running[name] = contend("WaitForExclusive", name)
            wait_until_queued(store, names[:place])
        for name in ("w1", "w3"):
            running[name].kill()
        owner = "owner"
        for epoch, name in enumerate(("w0", "w2", "w4"), 1):
            running[owner].kill()
            assert own(running[name])[0] == epoch
            running[name].say(name)
            running[name].expect("sent")
            owner = name
        assert [(m.value, m.epoch) for m in store.reader("t")] == [(b"w0", 1), (b"w2", 2), (b"w4", 3)]

    def test_ctrl_c_withdraws_the_place(self, store: Store, children: Children) -> None:
        """The process lives on without it; who stood behind it is next."""
        owner = store.create_producer("t", access_mode="Exclusive")
        waiter = children.run(
            """
            store = Store.open(path)
            try:
                store.create_producer("t", access_mode="WaitForExclusive", producer_name="w")
            except KeyboardInterrupt:
                say("withdrawn")
            hear()
            """
        )
        wait_until_queued(store, ["w"])
        waiter.interrupt()
        waiter.expect("withdrawn")
        assert [row["isWaiting"] for row in row_json(store.reports.list_producers("t"))] == [False]
        owner.close()
        check_is_free(store, 1)
        waiter.say()
        waiter.succeed()

    def test_a_waiter_holds_no_view(self, store: Store, contend: Callable[..., Child]) -> None:
        """While it sleeps, none of the readers' slots is in a transaction: pages are freed for others."""
        owner = store.create_producer("t", access_mode="Exclusive")
        contend("WaitForExclusive", "w")
        wait_until_queued(store, ["w"])
        wait_for(
            lambda: all(
                row["commit"] is None
                for row in row_json(store.reports.list_readers())
                if row["pid"] != os.getpid()
            ),
            "no process but this one has a view",
        )
        owner.send(b"x")

    def test_one_of_many_that_come_at_once_owns_it(self, store: Store, contend: Callable[..., Child]) -> None:
        """Eight processes race for Exclusive: one is owner, and the others are told who."""
        racers = [contend("Exclusive", f"r{number}") for number in range(8)]
        winners = []
        for racer in racers:
            line = racer.line()
            if line is None:
                assert "ProducerBusy" in racer.complaint()
            else:
                winners.append(line)
        assert len(winners) == 1
        assert [row["isOwner"] for row in row_json(store.reports.list_producers("t"))] == [True]


def test_a_token_does_not_outlive_the_process_that_leads(store: Store, contend: Callable[..., Child]):
    """What was published through its session stands; after its death nothing is added, though nobody took over."""
    leader = contend()
    _, token = own(leader)
    borrower = store.session_producer("t", token)
    borrower.send(b"while it leads")
    leader.kill()
    for _ in range(2):
        with pytest.raises(ProducerFenced):
            borrower.send(b"never stored")
    assert [message.value for message in store.reader("t")] == [b"while it leads"]
