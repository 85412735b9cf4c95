"""The store lock: shared by all who have the store open, exclusive for what must have it alone."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.errors import StoreInUse
from storage.process.clock import SYSTEM_CLOCK
from storage.process.lock_file import FILE_NAME, LockFile
from tests.processes.child import Children
from tests.row_json import row_json

OPEN = """
    with Store.open(path, read_only=sys.argv[2] == "read") as store:
        say("open")
        hear()
    say("closed")
    hear()
"""

ALONE = """
    from storage.process.clock import SYSTEM_CLOCK
    from storage.process.lock_file import FILE_NAME, LockFile
    lock = LockFile(os.path.join(path, FILE_NAME), SYSTEM_CLOCK, writable=True)
    say("alone" if lock.own_store() else "refused")
    hear()
"""


def may_be_alone(path: str) -> bool:
    """Whether somebody could have the store alone now."""
    lock = LockFile(os.path.join(path, FILE_NAME), SYSTEM_CLOCK, writable=True)
    try:
        return lock.own_store()
    finally:
        lock.close()


def test_many_share_the_store_and_nobody_has_it_alone_meanwhile(path: str, children: Children):
    """Readers and writers, open at once, each refuse the exclusive lock; `locks` names them all."""
    assert may_be_alone(path)
    sharing = [children.run(OPEN, mode) for mode in ("read", "write", "read", "write")]
    for child in sharing:
        child.expect("open")
    with Store.open(path, read_only=True) as store:
        who = {
            row["pid"]: row["state"] for row in row_json(store.reports.list_locks()) if row["lock"] == "store"
        }
        assert who == {child.pid: "open" for child in sharing}
        sharing[0].stop()
        who = {
            row["pid"]: row["state"] for row in row_json(store.reports.list_locks()) if row["lock"] == "store"
        }
        assert who[sharing[0].pid] == "stopped"
        sharing[0].resume()
    for child in sharing:
        assert not may_be_alone(path)
        child.say("close")
        child.expect("closed")
    assert may_be_alone(path)


def test_the_lock_of_a_killed_process_is_free_at_once(path: str, children: Children):
    """kill -9 of the last process that has the store open leaves it to whoever wants it alone."""
    child = children.run(OPEN, "write")
    child.expect("open")
    assert not may_be_alone(path)
    child.kill()
    assert may_be_alone(path)


@pytest.mark.parametrize("read_only", [False, True])
def test_nobody_opens_a_store_that_somebody_has_alone(path: str, children: Children, read_only: bool):
    """Opening is StoreInUse, exit code 5, worth repeating; it works as soon as the other has gone, however."""
    owner = children.run(ALONE)
    owner.expect("alone")
    with pytest.raises(StoreInUse) as caught:
        Store.open(path, read_only=read_only)
    assert (caught.value.exit_code, caught.value.retryable) == (5, True)
    assert caught.value.hint
    owner.kill()
    with Store.open(path, read_only=read_only) as store:
        assert store.topics() == ["t"]


def test_two_cannot_have_the_store_alone(path: str, children: Children):
    """The exclusive lock is one process's."""
    first = children.run(ALONE)
    first.expect("alone")
    children.run(ALONE).expect("refused")
