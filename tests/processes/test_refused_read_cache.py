"""A read cache for which the disk has no room: the read is refused, and works once there is room."""

from __future__ import annotations

import shutil

from storage import Store
from tests.processes.child import Children

AGAIN = """
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def read():
        with store.transaction() as txn:
            return store.table("rows").get(b"k", txn=txn)

    with Store.open(sys.argv[2]) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        for _ in range(2):
            try:
                read()
            except errors.StoreFull:
                say("full")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say("read", read().decode())
"""


def test_a_read_refused_for_lack_of_room_works_in_the_same_process_later(path: str, children: Children):
    """The file of a copied store counts no more, and no new one can be made: twice full, then read."""
    with Store.open(path) as store:
        store.create_table("rows")
        store.table("rows").put(b"k", b"value")
        with store.transaction() as txn:
            store.table("rows").get(b"k", txn=txn)
    shutil.copytree(path, path + "-copy")
    child = children.run(AGAIN, path + "-copy")
    child.expect("full")
    child.expect("full")
    assert child.expect("read") == "value"
    child.succeed()
