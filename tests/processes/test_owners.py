"""Whether an owner lives is proven by a lock that the kernel drops, never by a pid (semantics section 3)."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from storage import Store, TransactionState, TxnID
from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import LEASES, TXNS
from storage.disk.view import WriteBatch
from storage.errors import OwnerAlive, TransactionNotOpen
from storage.process.identity import started
from storage.txn import record as records
from tests.processes.child import Child, Children
from tests.row_json import row_json

OWNER = """
    with Store.open(path) as store:
        txn = store.transaction()
        store.create_producer("t").send(b"of the owner", txn=txn)
        say("began", txn.id)
        hear()
        txn.commit()
        say("committed")
        hear()
"""

PARENT_OF_A_SLEEPER = """
    import subprocess
    with Store.open(path) as store:
        txn = store.transaction()
        store.create_producer("t").send(b"of the owner", txn=txn)
        inherits_all = {"close_fds": False}
        sleeper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], **inherits_all)
        say("began", txn.id)
        say("sleeper", sleeper.pid)
        hear()
"""

OWNER_OF_ANOTHER_BOOT = """
    from storage.process.clock import ManualClock
    store = Store.open(path, clock=ManualClock(boot=b"another-boot-001"))
    txn = store.transaction()
    store.create_producer("t").send(b"before the reboot", txn=txn)
    say("began", txn.id)
    hear()
"""


def begin(child: Child) -> str:
    return child.expect("began")


def row(path: str, txn: str) -> dict[str, Any]:
    """The transaction as somebody sees it who never writes."""
    with Store.open(path, read_only=True) as store:
        return row_json(store.reports.show_transaction(TxnID.parse(txn)))


def check_is_dead(path: str, txn: str, owner_state: str = "dead") -> None:
    """That the transaction is an orphan at once, and that the next writer aborts it, whatever it came for."""
    seen = row(path, txn)
    assert (seen["state"], seen["ownerState"], seen["orphaned"]) == ("OPEN", owner_state, True)
    with Store.open(path) as store:
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN", "opening alone ends nothing"
        store.create_producer("t", connected=False).send(b"of the next writer")
        seen = row_json(store.reports.show_transaction(txn))
        assert (seen["state"], seen["reason"]) == (TransactionState.ABORTED.value, "owner-dead")
        assert [message.value for message in store.reader("t")] == [b"of the next writer"]
        with pytest.raises(TransactionNotOpen, match="owner-dead"):
            store.commit_transaction(txn)
        store.admin.transactions.reap_transactions()
        assert [
            held for held in row_json(store.reports.list_locks()) if held["lock"].startswith("lease")
        ] == []


def test_a_transaction_whose_owner_was_killed_is_aborted_by_the_next_writer(path: str, children: Children):
    """kill -9 of the owner orphans its transaction at once; the next writer aborts it whatever it came for."""
    owner = children.run(OWNER)
    txn = begin(owner)
    seen = row(path, txn)
    assert (seen["ownerState"], seen["orphaned"], seen["attached"]) == ("alive", False, True)
    owner.kill()
    check_is_dead(path, txn)


def test_a_transaction_whose_owner_just_ended_is_aborted_too(path: str, children: Children):
    """An owner that exits without commit or abort has died as well."""
    owner = children.run("store = Store.open(path); say('began', store.transaction().id)")
    txn = begin(owner)
    owner.succeed()
    check_is_dead(path, txn)


def test_a_writer_that_was_busy_all_the_time_aborts_an_orphan_within_a_second_or_so(
    store: Store, children: Children
):
    """A process that writes all the time need not be opened anew to find out about a death."""
    owner = children.run(OWNER)
    txn = begin(owner)
    producer = store.create_producer("t")
    producer.send(b"1")
    owner.kill()
    until = time.monotonic() + 10
    while row_json(store.reports.show_transaction(txn))["state"] == "OPEN":
        assert time.monotonic() < until, "ten seconds of writing did not end the orphan"
        producer.send(b"again")
    assert row_json(store.reports.show_transaction(txn))["reason"] == "owner-dead"


def test_whoever_names_an_orphan_is_not_told_of_a_reaping_but_decides_it(path: str, children: Children):
    """A command that names a transaction does not reap that one itself: it may still commit it."""
    owner = children.run(OWNER)
    txn = begin(owner)
    owner.kill()
    with Store.open(path) as store:
        assert store.commit_transaction(txn) is True
        assert row_json(store.reports.show_transaction(txn))["state"] == "COMMITTED"
        assert [message.value for message in store.reader("t")] == [b"of the owner"]


def test_waiting_for_a_transaction_ends_with_its_owners_death(path: str, children: Children):
    """`wait_transaction` in another process wakes at the death of the owner, and aborts the transaction."""
    owner = children.run(OWNER)
    txn = begin(owner)
    waiter = children.run(
        """
        with Store.open(path) as store:
            say("waiting")
            seen = store.reports.wait_for_transaction(sys.argv[2], timeout=60).row
            say("ended", seen.state.value, seen.reason)
        """,
        txn,
    )
    waiter.expect("waiting")
    owner.kill()
    assert waiter.expect("ended") == "ABORTED owner-dead"
    waiter.succeed()


def test_a_stopped_owner_counts_as_alive(path: str, children: Children):
    """Nobody reaps the transaction of a stopped process; aborting it takes force; going on, it commits."""
    owner = children.run(OWNER)
    txn = begin(owner)
    owner.stop()
    with Store.open(path) as store:
        store.create_producer("t", connected=False).send(b"of another writer")
        assert row_json(store.admin.transactions.reap_transactions()) == []
        seen = row_json(store.reports.show_transaction(txn))
        assert (seen["state"], seen["ownerState"], seen["orphaned"]) == ("OPEN", "stopped", False)
        with pytest.raises(OwnerAlive):
            store.admin.transactions.abort_transaction(txn)
        leases = [held for held in row_json(store.reports.list_locks()) if held["lock"].startswith("lease")]
        assert [(held["pid"], held["state"]) for held in leases] == [(owner.pid, "stopped")]
        owner.resume()
        owner.say("commit")
        owner.expect("committed")
        assert row_json(store.reports.show_transaction(txn))["state"] == "COMMITTED"


def test_a_killed_stopped_owner_is_dead(path: str, children: Children):
    """SIGKILL reaches a stopped process, and its lease goes with it."""
    owner = children.run(OWNER)
    txn = begin(owner)
    owner.stop()
    owner.kill()
    check_is_dead(path, txn)


def test_an_owner_of_another_boot_is_dead(path: str, children: Children):
    """A record with another boot id and no lock is of before a reboot; the next writer aborts it."""
    owner = children.run(OWNER_OF_ANOTHER_BOOT)
    txn = begin(owner)
    owner.kill()
    check_is_dead(path, txn, "rebooted")


def forge(store: Store, txn: str, pid: int) -> None:
    """Write into the records of an owner that it is the process `pid`, which lives."""

    def change(batch: WriteBatch) -> None:
        record = records.get(batch, TxnID.parse(txn).least)
        fields = list(record.owner_fields)
        fields[2], fields[3] = pid, started(pid)
        record.owner_fields = fields
        batch.put(LEASES, key1(record.lease), pack(fields))
        records.save(batch, record)

    prologue, store.connection.environment.writer.prologue = (
        store.connection.environment.writer.prologue,
        None,
    )
    store.connection.write(change)
    store.connection.environment.writer.prologue = prologue


def test_a_pid_that_lives_again_does_not_revive_an_owner(path: str, children: Children):
    """The records name a living process, with its very start time; the lock says that the owner is dead."""
    owner = children.run(OWNER)
    txn = begin(owner)
    owner.kill()
    with Store.open(path) as store:
        forge(store, txn, os.getpid())
        with store.connection.view() as view:
            payload = view.get(TXNS, key1(TxnID.parse(txn).least))
            assert payload is not None and os.getpid() in unpack(view.get(LEASES, key1(1)))
    check_is_dead(path, txn)


def test_a_subprocess_of_the_owner_inherits_no_lease(path: str, children: Children):
    """The owner is dead though a process that it started, with all descriptors handed on, lives."""
    owner = children.run(PARENT_OF_A_SLEEPER)
    txn = begin(owner)
    sleeper = int(owner.expect("sleeper"))
    try:
        owner.kill()
        os.kill(sleeper, 0)
        check_is_dead(path, txn)
        os.kill(sleeper, 0)
    finally:
        os.kill(sleeper, signal.SIGKILL)


def test_leases_are_never_reused_and_each_process_has_one_of_its_own(path: str, children: Children):
    """Two living owners hold two leases; a third after their death gets a third number."""
    owners = [children.run(OWNER) for _ in range(2)]
    for owner in owners:
        begin(owner)
    with Store.open(path, read_only=True) as store:
        held = {
            row["lock"]: row["pid"]
            for row in row_json(store.reports.list_locks())
            if row["lock"].startswith("lease")
        }
    assert set(held.values()) == {owner.pid for owner in owners}
    assert set(held) == {"lease 1", "lease 2"}
    for owner in owners:
        owner.kill()
    third = children.run(OWNER)
    begin(third)
    with Store.open(path, read_only=True) as store:
        alive = [
            row
            for row in row_json(store.reports.list_locks())
            if row["lock"].startswith("lease") and row["state"] == "alive"
        ]
    assert [(row["lock"], row["pid"]) for row in alive] == [("lease 3", third.pid)]


def test_closing_the_store_gives_the_lease_up(path: str):
    """A transaction left open when its store is closed is an orphan, though its process lives."""
    with Store.open(path) as store:
        txn = str(store.transaction().id)
        store.create_producer("t").send(b"of the owner", txn=txn)
    check_is_dead(path, txn)


def test_two_handles_of_one_process_have_a_lease_each(path: str):
    """Closing one handle orphans its transaction and leaves the other handle's alone."""
    with Store.open(path) as one:
        other = Store.open(path)
        mine, others = one.transaction(), other.transaction().id
        other.close()
        one.create_producer("t").send(b"x")
        one.admin.transactions.reap_transactions()
        assert row_json(one.reports.show_transaction(others))["reason"] == "owner-dead"
        assert mine.state is TransactionState.OPEN
        mine.commit()
