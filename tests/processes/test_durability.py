"""A commit is on disk before it is reported: where the disk fails to take it, the commit fails.

Each way in which a store comes to be open for writing is tried, since each opens LMDB by itself.
"""

from __future__ import annotations

import pytest

from storage import Store
from tests.processes.child import Children
from tests.row_json import row_json

COMMIT = """
    from tests.processes import failing_calls
    way, call = sys.argv[2:]
    reading = Store.open(path, read_only=True) if way == "joins a reader" else None
    store = Store.open(path)
    producer = store.create_producer("t")
    producer.send(b"before")
    if way == "after compacting":
        store.maintenance.compact_store()
        producer.send(b"again")
    if call == "pwrite":
        (descriptor,) = failing_calls.synchronous(path + "/data.mdb")
        failing_calls.refuse("pwrite", descriptor)
    else:
        failing_calls.refuse(call)
    try:
        producer.send(b"never on disk")
    except errors.TxnctlError as error:
        say(error.code)
    else:
        say("reported")
    os._exit(0)
"""

ways = pytest.mark.parametrize("way", ["opened", "joins a reader", "after compacting"])


@ways
def test_the_pages_of_a_commit_are_flushed_before_it_is_reported(path: str, children: Children, way: str):
    """LMDB calls fdatasync; a disk that refuses it leaves nothing stored."""
    child = children.run(COMMIT, way, "fdatasync")
    assert child.line() == "store-invalid"
    child.succeed()
    with Store.open(path, read_only=True) as store:
        assert {message.value for message in store.reader("t")} <= {b"before", b"again"}


@ways
def test_the_first_page_of_a_commit_is_written_through_to_the_disk(path: str, children: Children, way: str):
    """The page that makes the commit valid goes through a descriptor that waits for the disk: refused, the end is open.

    Through any other descriptor a power cut would undo the commit after its report.
    """
    child = children.run(COMMIT, way, "pwrite")
    assert child.line() == "outcome-unknown"
    child.succeed()


GOES_ON = """
    import threading
    from tests.processes import failing_calls

    def opened():
        store = Store.open(path)
        producers = [store.create_producer("t", producer_name=name) for name in "pq"]
        return store, producers, store.subscribe("t", "s", initial_position=EARLIEST)

    def begun():
        txn, message = store.transaction(), consumer.receive(timeout=30)
        for producer in producers:
            producer.send(b"in the transaction", txn=txn)
        consumer.acknowledge(message, txn=txn)
        txn.flush()
        return txn, message

    def commit_on_a_failing_disk():
        failing_calls.refuse(*refused)
        try:
            txn.commit()
        except errors.TxnctlError as error:
            say(error.code)

    store, producers, consumer = opened()
    producers[0].send(b"before")
    txn, message = begun()
    of_superblock = failing_calls.synchronous(path + "/data.mdb")
    refused = ("pwrite", *of_superblock) if sys.argv[2] == "pwrite" else ("fdatasync",)
    # The kernel refuses the call in this thread only.
    failing = threading.Thread(target=commit_on_a_failing_disk)
    failing.start()
    failing.join()
    if sys.argv[2] == "pwrite":
        uses = [lambda: producers[1].send(b"never"), lambda: consumer.acknowledge(message), txn.commit]
        for use in uses:
            try:
                use()
            except errors.StoreClosed:
                say("closed")
        store.close()
        store, producers, consumer = opened()
        if store.reports.show_transaction(txn.known_id).row.state.value != "COMMITTED":
            txn, _ = begun()
            txn.commit()
    else:
        txn.commit()
    for producer in producers:
        producer.send(b"behind")
    store.close()
"""


@pytest.mark.parametrize("call", ["fdatasync", "pwrite"])
def test_a_program_goes_on_after_a_disk_that_failed_in_its_commit(path: str, children: Children, call: str):
    """With the same objects after a refusal, with new ones after a doubt; another process beside receives each message once."""
    child = children.run(GOES_ON, call)
    if call == "pwrite":
        assert [child.line() for _ in range(4)] == ["outcome-unknown", "closed", "closed", "closed"]
    else:
        assert child.line() == "store-invalid"
    child.succeed()
    with Store.open(path) as store:
        store.create_producer("t").send(b"beside")
        with store.subscribe("t", "s") as consumer:
            received = consumer.receive_batch(9, timeout=0)
            assert [message.value for message in received] == [
                b"in the transaction", b"in the transaction", b"behind", b"behind", b"beside",
            ]  # fmt: skip
            consumer.acknowledge_cumulative(received[-1])
        assert [message.value for message in store.reader("t")][:3] == [b"before"] + 2 * [
            b"in the transaction"
        ]
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
