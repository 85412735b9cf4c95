"""Tables among processes: one read cache, one oracle, and what a kill leaves."""

from __future__ import annotations

import random

import pytest

from storage import Priority, Store
from storage.errors import LostConflict, WriteTooOld
from tests.processes.child import Child, Children
from tests.row_json import row_json

HOLDER = """
    with Store.open(path) as store:
        txn = store.transaction(priority="highest")
        for key in (b"0", b"1"):
            store.table("accounts").put(key, b"5", txn=txn)
        txn.flush()
        say("wrote", txn.id)
        hear()
"""

BANK, EACH = 8, 100

TRANSFERS = """
    import random
    from storage.errors import Conflict
    chance = random.Random(int(sys.argv[2]))
    with Store.open(path) as store:
        accounts = store.table("accounts")
        for _ in range(60):
            first, second = (b"%d" % n for n in chance.sample(range(8), 2))
            detached = chance.random() < 0.4
            priority = chance.choice(["low", "medium", "high"])
            txn = store.begin_transaction(priority=priority) if detached else store.transaction(priority=priority)
            try:
                if chance.random() < 0.2:
                    assert sum(int(row.value) for row in accounts.scan(txn=txn)) == 800
                a, b = (int(accounts.get(key, txn=txn)) for key in (first, second))
                accounts.put(first, b"%d" % (a - 1), txn=txn)
                if not detached and chance.random() < 0.3:
                    txn.flush()
                accounts.put(second, b"%d" % (b + 1), txn=txn)
                store.commit_transaction(txn)
                say("done")
            except Conflict:
                say("lost")
    say("end")
"""

READER = """
    with Store.open(path) as store:
        accounts = store.table("accounts")
        with store.transaction() as txn:
            say("read", accounts.get(b"0", txn=txn).decode(), txn.timestamp)
            hear()
            say("again", accounts.get(b"0", txn=txn).decode())
    say("committed")
    hear()
"""

WRITER = """
    with Store.open(path) as store:
        txn = store.transaction()
        store.table("accounts").put(b"0", b"5", txn=txn)
        store.create_producer("t").send(b"said", txn=txn)
        txn.flush()
        say("wrote", txn.id)
        hear()
        txn.commit()
        say("committed")
        hear()
"""


@pytest.fixture
def bank(store: Store) -> Store:
    """A store with eight accounts of 100 each."""
    store.create_table("accounts")
    with store.transaction() as txn:
        for number in range(BANK):
            store.table("accounts").put(b"%d" % number, b"%d" % EACH, txn=txn)
    return store


def total(store: Store) -> int:
    return sum(int(row.value) for row in store.table("accounts").scan())


def test_a_read_in_one_process_refuses_an_older_write_in_another(bank: Store, children: Children) -> None:
    """Also when the reader's process has died: what it was shown, it was shown."""
    old = bank.begin_transaction()
    reader = children.run(READER)
    assert reader.expect("read").split()[0] == "100"
    reader.kill()
    with pytest.raises(WriteTooOld):
        bank.table("accounts").put(b"0", b"1", txn=old)


def test_a_snapshot_stays_while_another_process_commits(bank: Store, children: Children) -> None:
    """And timestamps of all processes grow in one order."""
    before = bank.transaction().timestamp
    reader = children.run(READER)
    value, timestamp = reader.expect("read").split()
    after = bank.table("accounts").put(b"0", b"7")
    reader.say()
    assert (value, reader.expect("again")) == ("100", "100")
    reader.expect("committed")
    assert before < int(timestamp) < after


def test_the_intents_of_a_killed_process_are_nothing(bank: Store, children: Children) -> None:
    """The next writer aborts its transaction, with its messages."""
    writer = children.run(WRITER)
    txn = writer.expect("wrote")
    assert bank.table("accounts").get(b"0") == b"100"
    writer.kill()
    bank.table("accounts").put(b"0", b"6")
    assert bank.table("accounts").get(b"0") == b"6"
    bank.admin.transactions.reap_transactions()
    assert row_json(bank.reports.show_transaction(txn))["state"] == "ABORTED"
    assert list(bank.reader("t")) == []


def test_no_write_loses_to_a_killed_process(bank: Store, children: Children) -> None:
    """Its intents refuse nothing from the kill on, whatever its priority, and also just after a look for the dead."""
    accounts = bank.table("accounts")
    for number in range(3):
        holder = children.run(HOLDER)
        txn = holder.expect("wrote")
        bank.create_topic(f"looked-{number}")
        holder.kill()
        with bank.transaction(priority=Priority.LOW) as mine:
            assert accounts.get(b"1", txn=mine) is not None
            accounts.put(b"0", b"%d" % number, txn=mine)
        assert row_json(bank.reports.show_transaction(txn))["reason"] == "owner-dead"
        assert accounts.get(b"0") == b"%d" % number
        accounts.put(b"0", b"100")
        accounts.put(b"1", b"100")


def test_a_process_learns_that_it_lost(bank: Store, children: Children) -> None:
    """A newer transaction pushes its intent; its commit fails, with winner and key."""
    writer = children.run(WRITER)
    txn = writer.expect("wrote")
    newer = bank.begin_transaction()
    assert bank.table("accounts").get(b"0", txn=newer) == b"100"
    assert row_json(bank.reports.show_transaction(txn))["conflict"]["winner"] == str(newer)
    writer.say()
    assert writer.line() is None
    assert "LostConflict" in writer.complaint()
    with pytest.raises(LostConflict):
        bank.commit_transaction(txn)


@pytest.mark.parametrize("kills", [0, 6])
def test_money_is_neither_made_nor_lost(bank: Store, children: Children, kills: int) -> None:
    """Three processes transfer at random, attached and detached, flushing or not, and are killed at random."""
    chance = random.Random(kills)
    seed = 0

    def started() -> Child:
        nonlocal seed
        seed += 1
        return children.run(TRANSFERS, seed)

    running = [started() for _ in range(3)]
    lines = 0
    while running:
        for child in list(running):
            word = child.line()
            assert word is not None, child.complaint()
            lines += 1
            if word == "end":
                running.remove(child)
            elif kills and lines % 11 == 0 and chance.random() < 0.7:
                kills -= 1
                child.kill()
                running.remove(child)
                running.append(started())
    bank.admin.transactions.reap_transactions()
    assert total(bank) == BANK * EACH
    bank.maintenance.collect_garbage()
    assert total(bank) == BANK * EACH
    assert row_json(bank.table("accounts").stats())["intents"] == len(row_json(bank.reports.list_intents()))
