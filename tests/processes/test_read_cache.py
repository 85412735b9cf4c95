"""A process killed half-way through a change of the read cache: its reads are covered, and the next process goes on."""

from __future__ import annotations

import signal

import pytest

from storage import Store
from storage.errors import WriteTooOld
from tests.processes.child import Children

READER = """
    from storage import faults

    cache = os.path.join(path, "reads.cache")
    with Store.open(path) as store:
        table, reader = store.table("accounts"), store.transaction()
        table.get(b"k", txn=reader)
        size, number = os.path.getsize(cache), 0

        def kill():
            if sys.argv[2] == "at once" or os.path.getsize(cache) > size:
                os.kill(os.getpid(), signal.SIGKILL)

        say("read")
        hear()
        faults.arm("read_cache.half_changed", kill)
        while number < 100_000:
            number += 1
            if sys.argv[3] == "keys":
                table.get(b"%d" % number, txn=reader)
            else:
                list(table.scan(start=b"%0200d" % (2 * number), end=b"%0200d" % (2 * number + 1), txn=reader))
"""


def generation(store: Store) -> int:
    """The generation of the read cache that counts."""
    with store.connection.view() as view:
        return view.superblock.read_generation


@pytest.mark.parametrize("when", ["at once", "growing"])
@pytest.mark.parametrize("what", ["keys", "ranges"])
def test_a_process_killed_half_way_leaves_no_read_uncovered(
    path: str, children: Children, when: str, what: str
) -> None:
    """While it records a read, and while it makes the file larger: the older writer of a read key is refused."""
    with Store.open(path) as store:
        store.create_table("accounts")
        table = store.table("accounts")
        table.put(b"k", b"v")
        old = store.begin_transaction()
        reader = children.run(READER, when, what)
        reader.expect("read")
        before = generation(store)
        reader.say()
        assert reader.wait(120) == -signal.SIGKILL, reader.complaint()
        with pytest.raises(WriteTooOld):
            table.put(b"k", b"w", txn=old)
        assert generation(store) == before + 1
        table.put(b"k", b"x")
        with store.transaction() as txn:
            assert table.get(b"k", txn=txn) == b"x"
            table.put(b"other", b"x", txn=txn)
        assert store.maintenance.verify_store(full=True) == []
