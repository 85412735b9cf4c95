"""What transactions keep, in real processes and real time: seen by others within a second, stored once, never left behind."""

from __future__ import annotations

from storage import IsolationLevel, Store
from tests.processes.child import Children
from tests.row_json import row_json

PATIENCE_S = 30
"""For a machine that is busy with other things: how soon it comes is not what is tested."""

IDLE = """
    with Store.open(path) as store:
        producer = store.create_producer("t")
        with store.transaction() as txn:
            for number in range(3):
                producer.send(b"%d" % number, txn=txn)
                say("sent", number)
                hear()
            producer.send(b"kept", txn=txn)
        say("committed", txn.id)
"""

BUSY = """
    import threading
    store = Store.open(path, lock_timeout=30)
    store.create_table("counts")
    counts = store.table("counts")

    def work(name):
        producer = store.create_producer("t", producer_name=name)
        with store.transaction() as txn:
            for number in range(400):
                producer.send(f"{name} {number}".encode(), txn=txn)
                counts.put(name.encode(), b"%d" % number, txn=txn)
                let_pass(0.003, "the watch writes within a second")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.maintenance.verify_store() == []
    store.close()
"""

FORKED = """
    store = Store.open(path)
    producer, txn = store.create_producer("t"), store.transaction()
    producer.send(b"of the parent", txn=txn)
    child = os.fork()
    if child == 0:
        let_pass(1.5, "the watch of the parent writes after a second")
        for call in (lambda: producer.send(b"of the child", txn=txn), txn.flush, txn.commit, txn.abort, producer.flush):
            try:
                call()
            except errors.StoreClosed:
                continue
            os._exit(1)
        with Store.open(path) as own, own.transaction() as mine:
            own.create_producer("t").send(b"of the child", txn=mine)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    txn.commit()
    store.close()
"""

LEFT = """
    store = Store.open(path)
    producer, txn = store.create_producer("t"), store.transaction()
    producer.send(b"never", txn=txn)
    if hear() == "closes":
        store.close()
"""


def test_an_idle_process_shows_what_it_has_sent(path: str, children: Children):
    """It does nothing at all after a send, and who monitors its topic sees the message all the same."""
    idle = children.run(IDLE)
    with Store.open(path, read_only=True) as store:
        monitor = store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)
        for number in range(3):
            idle.expect("sent")
            message = monitor.read_next(timeout=PATIENCE_S)
            assert message.value == b"%d" % number
            assert list(store.reader("t")) == []
            idle.say("go on")
        assert str(message.txn_id) == idle.expect("committed")
        idle.succeed()
        assert [each.value for each in store.reader("t")] == [b"0", b"1", b"2", b"kept"]


def test_threads_and_the_watch_do_not_get_in_each_others_way(path: str, children: Children):
    """Two long transactions, whose messages are written on the way: each once, each producer's in order."""
    children.run(BUSY).succeed(4 * PATIENCE_S)
    with Store.open(path, read_only=True) as store:
        found = [(message.value or b"").decode().split() for message in store.reader("t")]
        entries = [row for row in row_json(store.reports.topic_log("t")) if row["messages"]]
    for name in ("one", "two"):
        assert [int(number) for each, number in found if each == name] == list(range(400))
    assert 2 < len(entries) < 400, "written now and then, neither all at the end nor one by one"


def test_a_forked_child_has_nothing_of_what_is_kept(path: str, children: Children):
    """Neither does it write its parent's messages, nor does it wait for a lock that nobody holds."""
    children.run(FORKED).succeed(PATIENCE_S)
    with Store.open(path) as store:
        values = [message.value for message in store.reader("t")]
        assert sorted(value or b"" for value in values) == [b"of the child", b"of the parent"]


def test_what_is_kept_keeps_no_process_alive(path: str, children: Children):
    """It ends, with its store closed or not; what it had not written within its second is not there."""
    for how in ("closes", "leaves"):
        left = children.run(LEFT)
        left.say(how)
        left.succeed(PATIENCE_S)
    with Store.open(path) as store:
        store.admin.transactions.reap_transactions()
        assert list(store.reader("t")) == []
        assert [row["state"] for row in row_json(store.reports.list_transactions())] == []
