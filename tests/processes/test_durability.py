"""A commit is on disk before it is reported: where the disk fails to take it, the commit fails.

Each way in which a store comes to be open for writing is tried, since each opens LMDB by itself.
"""

from __future__ import annotations

import pytest

from storage import Store
from tests.processes.child import Children

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
