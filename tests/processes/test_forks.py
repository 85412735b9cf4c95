"""A forked child holds nothing of its parent, and the other way round (hazards, "Kernel locks")."""

from __future__ import annotations

import os
import signal

import pytest

from storage import Store
from tests.processes.child import Child, Children
from tests.row_json import row_json

FORKED = """
    store = Store.open(path)
    producer = store.create_producer("t")
    producer.send(b"of the parent")
    consumer = store.subscribe("t", "s", initial_position=EARLIEST)
    reader = store.reader("t")
    txn = store.transaction()

    def attempts():
        yield "send", lambda: producer.send(b"of the child")
        yield "send in a transaction", lambda: producer.send(b"of the child", txn=txn)
        yield "read", lambda: reader.read_next(timeout=0)
        yield "receive", lambda: consumer.receive_batch(1, timeout=0)
        yield "close the consumer", consumer.close
        yield "commit", txn.commit
        yield "abort", txn.abort
        yield "begin", store.transaction
        yield "topics", store.topics
        yield "stats", lambda: store.reports.topic_stats("t")
        yield "info", store.reports.store_info
        yield "space", store.reports.list_databases
        yield "readers", store.reports.list_readers
        yield "locks", store.reports.list_locks
        yield "verify", store.maintenance.verify_store

    child = os.fork()
    if child == 0:
        for name, attempt in attempts():
            try:
                attempt()
            except errors.StoreClosed as error:
                say("closed" if "fork" in error.message else "unclear", name)
            except BaseException as error:
                say("wrong", name, repr(error))
            else:
                say("worked", name)
        store.close()
        say("done")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    hear()
    producer.send(b"of the parent", txn=txn)
    txn.commit()
    consumer.acknowledge(consumer.receive(timeout=0))
    store.close()
"""

ANEW = """
    store = Store.open(path)
    producer = store.create_producer("t")
    producer.send(b"1 parent")
    txn = store.transaction()
    number = str(txn.id)
    child = os.fork()
    if child == 0:
        with Store.open(path) as own:
            own.create_producer("t").send(b"2 child")
            say("child", *(message.value.decode()[0] for message in own.reader("t")))
            assert number in [str(row.txn_id) for row in own.reports.list_transactions()]
            assert not own.reports.show_transaction(number).row.orphaned
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    producer.send(b"3 parent", txn=txn)
    txn.commit()
    say("parent", *(message.value.decode()[0] for message in store.reader("t")))
    store.close()
"""

CLOSING = """
    store = Store.open(path)
    child = os.fork()
    if child == 0:
        with Store.open(path) as own:
            store.close()
            own.create_producer("t").send(b"of the child")
        say("sent")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.create_producer("t").send(b"of the parent")
    store.close()
"""

ORPHANED_CHILD = """
    store = Store.open(path)
    txn = store.transaction()
    store.create_producer("t").send(b"of the parent", txn=txn)
    number = txn.id
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"1")
        signal.pause()
        os._exit(0)
    os.read(ready, 1)

    def hold(batch):
        say("forked", child, number)
        hear()

    store.connection.write(hold)
"""

THREADED = """
    import threading
    store = Store.open(path)
    inside, leave = threading.Event(), threading.Event()

    def hold(batch):
        inside.set()
        leave.wait()
        assert os.getpid() == mine, "a batch is never open in two processes"

    mine = os.getpid()
    busy = threading.Thread(target=lambda: store.connection.write(hold))
    busy.start()
    inside.wait()
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        with Store.open(path, lock_timeout=10) as own:
            own.create_producer("t").send(b"of the child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    busy.join()
    store.create_producer("t").send(b"of the parent")
    say("values", *(message.value.decode()[7:] for message in store.reader("t")))
    store.close()
"""

BUSY = """
    import shutil, threading
    store = Store.open(path)
    store.create_table("a")
    producer = store.create_producer("t")
    producer.send_batch([b"x" * 100] * 2000)
    is_over, rounds, failures = threading.Event(), {}, []

    def backup():
        store.maintenance.backup_store(path + "-copy")
        shutil.rmtree(path + "-copy")

    works = {
        "send": lambda: producer.send(b"x"), "read": lambda: list(store.reader("t")), "get": lambda: store.table("a").get(b"k"),
        "verify": store.maintenance.verify_store, "backup": backup, "open": lambda: Store.open(path).close(),
        "log": lambda: list(store.reports.topic_log("t")), "info": store.reports.store_info,
    }

    def go_on(name):
        try:
            while not is_over.is_set():
                works[name]()
                rounds[name] = rounds.get(name, 0) + 1
        except BaseException as error:
            failures.append(repr(error))
            raise

    threads = [threading.Thread(target=go_on, args=[name]) for name in sys.argv[2].split(",")]
    for thread in threads:
        thread.start()
    for _ in range(15):
        before = dict(rounds)
        names = sys.argv[2].split(",")
        wait_for(lambda: failures or all(rounds.get(name, 0) != before.get(name, 0) for name in names), "a round of each")
        assert not failures, failures
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                with Store.open(path, lock_timeout=10) as own:
                    own.create_producer("t").send(b"of the child")
            except BaseException as error:
                say("failed", repr(error))
            else:
                say("sent")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, "the child hangs"
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures, failures
    store.close()
"""

LONG_VIEW = """
    import threading
    store = Store.open(path)
    inside, leave = threading.Event(), threading.Event()

    def look():
        with store.connection.view():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=look)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        try:
            Store.open(path)
        except errors.StoreInvalid as error:
            say("refused", error.message, "|", error.hint)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    leave.set()
    thread.join()
    store.create_producer("t").send(b"of the parent")
    store.close()
"""


@pytest.mark.parametrize("works", ["read,read", "log", "verify", "backup", "info,send,get,open"])
def test_a_child_opens_the_store_anew_whatever_threads_of_the_parent_do(
    path: str, children: Children, works: str
):
    """Views and calls that follow one another without a pause: the fork comes between them, 15 times of 15."""
    parent = children.run(BUSY, works)
    assert [parent.line(60) for _ in range(15)] == ["sent"] * 15
    parent.succeed()


def test_a_child_forked_beside_a_long_view_is_told_why_the_store_stays_closed(path: str, children: Children):
    """The environment of the parent cannot be closed in the child while a view of it is open."""
    parent = children.run(LONG_VIEW)
    assert "after this fork" in parent.expect("refused")
    parent.succeed()


def test_a_forked_child_can_use_nothing_of_its_parents_store(path: str, children: Children):
    """Every operation on what the parent opened is StoreClosed in the child; the parent goes on undisturbed."""
    parent = children.run(FORKED)
    said = []
    while (line := parent.line()) not in ("done", None):
        said.append(line)
    assert [line for line in said if not line.startswith("closed ")] == []
    assert len(said) == 15
    parent.succeed()
    with Store.open(path) as store:
        assert [message.value for message in store.reader("t")] == [b"of the parent"] * 2
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 1
        assert row_json(store.reports.list_transactions()) == []


def test_a_forked_child_may_open_the_store_anew(path: str, children: Children):
    """What the child opens itself works, beside the parent's transaction, which stays the parent's."""
    parent = children.run(ANEW)
    assert parent.expect("child") == "1 2"
    assert parent.expect("parent") == "1 2 3"
    parent.succeed()


def test_a_forked_child_may_close_its_parents_store(path: str, children: Children):
    """A store that the child has opened itself, and the parent's, stay open."""
    parent = children.run(CLOSING)
    parent.expect("sent")
    parent.succeed()
    with Store.open(path) as store:
        assert [message.value for message in store.reader("t")] == [b"of the child", b"of the parent"]


def test_a_process_forks_when_no_thread_of_it_is_inside_the_gate(path: str, children: Children):
    """Forking waits for the batch of another thread; then parent and child write, each with a store of its own."""
    parent = children.run(THREADED)
    assert parent.expect("values") == "child parent"
    parent.succeed()


def test_a_forked_child_keeps_neither_gate_nor_lease_of_a_dead_parent(path: str, children: Children):
    """The parent is killed inside the gate: the next writer gets in at once, and finds its transaction orphaned."""
    parent: Child = children.run(ORPHANED_CHILD)
    forked, txn = parent.expect("forked").split()
    try:
        parent.kill()
        os.kill(int(forked), 0)
        with Store.open(path, lock_timeout=1) as store:
            assert row_json(store.reports.show_transaction(txn))["orphaned"] is True
            store.create_producer("t").send(b"of the next writer")
            assert row_json(store.reports.show_transaction(txn))["reason"] == "owner-dead"
            others = [
                row
                for row in row_json(store.reports.list_locks())
                if row["lock"] != "store" and row["pid"] != os.getpid()
            ]
            assert {row["state"] for row in others} <= {"dead"}
        os.kill(int(forked), 0)
    finally:
        os.kill(int(forked), signal.SIGKILL)
