"""Backup, restore and compact between processes: from one view, whole or not at all, and alone where they must be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreInUse, StoreNotFound, TransactionNotOpen
from tests.processes.child import Child, Children
from tests.row_json import row_json

COPIER = """
    def pause(done, total):
        global paused
        if not paused:
            paused = True
            say("copying")
            hear()

    paused = False
    if sys.argv[2] == "restore":
        Store.restore(path, path + "2", progress=pause)
    else:
        with Store.open(path) as store:
            if sys.argv[2] == "backup":
                store.maintenance.backup_store(path + "2", progress=pause)
            else:
                store.maintenance.compact_store(progress=pause)
                assert store.maintenance.verify_store(full=True) == []
    say("done")
"""

WRITER = """
    with Store.open(path, lock_timeout=30) as store:
        producer = store.create_producer("t")
        say("writing")
        from tests.processes.parent import has_let_go
        number = 0
        while not has_let_go():
            with store.transaction() as txn:
                producer.send(b"%d" % number, txn=txn)
                producer.send(b"%d" % (number + 1), txn=txn)
            number += 2
        say("wrote", number)
"""

HOLDER = """
    with Store.open(path) as store:
        txn = store.transaction()
        store.create_producer("t").send(b"of the owner", txn=txn)
        say("began", txn.id)
        hear()
        txn.commit()
        say("committed")
"""

ways = pytest.mark.parametrize("way", ["backup", "restore", "compact"])


def copier(children: Children, way: str) -> Child:
    """A process in the middle of a copy."""
    child = children.run(COPIER, way)
    child.expect("copying")
    return child


def values(path: str) -> list[int]:
    with Store.open(path, read_only=True) as store:
        assert store.maintenance.verify_store(full=True) == []
        return [int(message.value or b"") for message in store.reader("t")]


def names(path: str) -> set[str]:
    """What lies beside the store and in it."""
    return {*os.listdir(os.path.dirname(path)), *os.listdir(path)}


@pytest.mark.parametrize("way", ["backup", "restore"])
def test_a_copy_of_a_store_in_use_is_one_of_its_states(path: str, children: Children, way: str):
    """While another process writes pairs in transactions, the copy holds whole pairs from the beginning on."""
    writer = children.run(WRITER)
    writer.expect("writing")
    copying = copier(children, way)
    copying.say("go on")
    copying.expect("done")
    copying.succeed()
    writer.say("enough")
    written = int(writer.expect("wrote"))
    copied = values(path + "2")
    assert len(copied) % 2 == 0
    assert copied == list(range(len(copied)))
    assert values(path) == list(range(written))


@ways
def test_a_copy_that_is_killed_leaves_nothing_at_its_place_and_harms_nobody(
    path: str, children: Children, way: str
):
    """The store stays as it was; the next one of the same kind succeeds and removes the leftovers."""
    with Store.open(path) as store:
        store.create_producer("t").send(b"1")
    killed = copier(children, way)
    killed.kill()
    assert [name for name in names(path) if name.endswith(f".{killed.pid}.new")]
    with pytest.raises(StoreNotFound):
        Store.open(path + "2")
    assert values(path) == [1]
    copying = copier(children, way)
    copying.say("go on")
    copying.expect("done")
    copying.succeed()
    assert values(path) == [1]
    assert not [name for name in names(path) if name.endswith(".new")]
    if way != "compact":
        assert values(path + "2") == [1]


@ways
def test_a_copy_that_is_interrupted_ends_at_once_and_cleans_up(path: str, children: Children, way: str):
    """Ctrl-C in the middle: nothing is left, neither beside the store nor in it."""
    before = names(path)
    copying = copier(children, way)
    copying.interrupt()
    assert copying.wait(10) != 0
    assert "KeyboardInterrupt" in copying.complaint()
    assert names(path) == before
    assert values(path) == []


def test_compacting_wants_the_store_alone(path: str, children: Children):
    """While others have it open it is refused and they are named; while it runs others are refused; then all go on."""
    writer = children.run(WRITER)
    writer.expect("writing")
    with Store.open(path) as store, pytest.raises(StoreInUse, match=f"process {writer.pid} "):
        store.maintenance.compact_store()
    writer.say("enough")
    written = int(writer.expect("wrote"))
    writer.succeed()
    size = os.path.getsize(os.path.join(path, "data.mdb"))
    compacting = copier(children, "compact")
    for read_only in (False, True):
        with pytest.raises(StoreInUse):
            Store.open(path, read_only=read_only)
    compacting.say("go on")
    compacting.expect("done")
    compacting.succeed()
    assert os.path.getsize(os.path.join(path, "data.mdb")) <= size
    assert os.stat(os.path.join(path, "data.mdb")).st_mode & 0o777 == 0o600
    assert values(path) == list(range(written))
    writer = children.run(WRITER)
    writer.expect("writing")
    writer.say("enough")
    writer.expect("wrote")


def test_handles_of_the_process_that_compacts_go_on(store: Store, path: str):
    """Reader, consumer and transaction of the same process outlive the change of the file; others see their work."""
    store.admin.subscriptions.create_subscription("t", "s")
    producer, reader = store.create_producer("t"), store.reader("t")
    producer.send(b"1")
    with store.subscribe("t", "s") as consumer, store.transaction() as txn:
        found = consumer.receive(timeout=0)
        assert found.value == b"1"
        store.maintenance.compact_store()
        producer.send(b"2", txn=txn)
        consumer.acknowledge(found, txn=txn)
    assert [(message.value or b"") for message in reader] == [b"1", b"2"]
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 1
    assert values(path) == [1, 2]


def test_a_restored_store_has_none_of_the_living_transactions(path: str, children: Children, tmp_path: Path):
    """Restored from a store in use: its open transaction is aborted there, and goes on where it was begun."""
    owner = children.run(HOLDER)
    txn = owner.expect("began")
    Store.restore(path, tmp_path / "new")
    with Store.open(tmp_path / "new") as restored:
        assert row_json(restored.reports.list_transactions()) == []
        assert row_json(restored.reports.show_transaction(txn))["reason"] == "incarnation"
        with pytest.raises(TransactionNotOpen):
            restored.commit_transaction(txn)
        assert restored.maintenance.verify_store(full=True) == []
        with Store.open(path) as original:
            assert (
                row_json(original.reports.store_info())["storeId"]
                == row_json(restored.reports.store_info())["storeId"]
            )
            assert (
                row_json(original.reports.store_info())["incarnation"]
                < row_json(restored.reports.store_info())["incarnation"]
            )
    owner.say("commit")
    owner.expect("committed")
    with Store.open(path) as original:
        assert [message.value for message in original.reader("t")] == [b"of the owner"]


def test_a_failing_disk_leaves_no_backup_and_names_what_it_kept(
    path: str, children: Children, tmp_path: Path
):
    """Where not even the build directory can be removed, the next copy beside it does so, whatever its name."""
    child = children.run(
        """
        from tests.processes import failing_calls
        with Store.open(path) as store:
            for call in sys.argv[2:]:
                failing_calls.refuse(call)
            try:
                store.maintenance.backup_store(path + "2")
            except errors.StoreInvalid as error:
                say("refused", error.message, "|", error.hint)
        """,
        "fsync",
        "unlinkat",
    )
    left = f".store2.{child.pid}.new"
    refusal = child.expect("refused")
    assert f"Input/output error; {tmp_path}/{left} is left" in refusal and "removes it" in refusal
    child.succeed()
    assert set(os.listdir(tmp_path)) == {"store", left}
    with Store.open(path) as store:
        store.maintenance.backup_store(path + "3")
    assert set(os.listdir(tmp_path)) == {"store", "store3"}
