"""A read-only opening changes nothing, whatever it finds, and needs nobody's leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import EARLIEST, IsolationLevel, Position, Store
from storage.errors import StoreInvalid, WriterBusy
from tests.processes import places
from tests.processes.child import Children
from tests.row_json import row_json

HOLDER = """
    with Store.open(path) as store:
        store.connection.write(lambda batch: (say("holding"), hear()))
        say("left")
"""

ORPHANS = """
    store = Store.open(path)
    txn = store.transaction()
    store.create_producer("t").send(b"of an orphan", txn=txn)
    store.subscribe("t", "s").receive_batch(2, timeout=0)
    say("began", txn.id, store.begin_transaction(timeout=0.001))
"""


def contents(path: str) -> dict[str, object]:
    """All that is stored: the files with their times, or the rows of the tables of a server."""
    if places.is_on_server():
        return dict(places.rows(places.name_of(path)))
    return {
        name: (Path(path, name).read_bytes(), os.stat(os.path.join(path, name)).st_mtime_ns)
        for name in ("data.mdb", "store.lock")
    }


def look_at_everything(store: Store) -> int:
    """Every report and every reading there is; how many messages."""
    for report in (
        store.topics, store.reports.list_topics, store.reports.list_transactions, store.reports.list_audit_records, store.reports.store_info, store.reports.list_locks, store.reports.list_readers,
        store.reports.list_databases, store.reports.list_subscriptions, store.maintenance.verify_store,
    ):  # fmt: skip
        report()
    store.reports.list_transactions(ended=True)
    store.reports.topic_stats("t")
    store.reports.topic_stats_internal("t")
    store.reports.subscription_stats("t", "s")
    store.reports.peek_messages("t", "s", 5)
    store.reports.last_message_id("t")
    store.reports.position_at("t", 0)
    count = 0
    for level in IsolationLevel:
        reader = store.reader("t", start=EARLIEST, isolation_level=level)
        count += len(list(reader))
        assert not reader.has_message_available()
        reader.blocked_by()
    return count + len(list(row_json(store.reports.topic_log("t", Position(1, 0)))))


def test_reading_leaves_every_byte_as_it_was_and_needs_no_gate(path: str, children: Children):
    """With an overdue and an orphaned transaction to tempt it, and a writer inside the gate: nothing is written."""
    with Store.open(path) as store:
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
        store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    child = children.run(ORPHANS)
    orphan, overdue = child.expect("began").split()
    child.succeed()
    holder = children.run(HOLDER)
    holder.expect("holding")
    before = contents(path)
    with Store.open(path, read_only=True, lock_timeout=0) as store:
        assert look_at_everything(store) == 5 + 6 + 6
        states = {
            row["txnId"]: (row["overdue"], row["orphaned"])
            for row in row_json(store.reports.list_transactions())
        }
        assert states == {orphan: (False, True), overdue: (True, False)}
    assert contents(path) == before
    holder.say("leave")
    holder.expect("left")


def test_a_read_only_store_refuses_every_change(path: str):
    """Each is an error in words, and not a byte is written."""
    with Store.open(path) as store:
        store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
        txn = store.begin_transaction()
    before = contents(path)
    with Store.open(path, read_only=True) as store:
        for change in (
            lambda: store.create_topic("u"),
            lambda: store.create_producer("t").send(b"x"),
            lambda: store.create_producer("u", create_topic=True),
            lambda: store.subscribe("t", "s"),
            store.transaction,
            store.begin_transaction,
            lambda: store.commit_transaction(txn),
            lambda: row_json(store.admin.transactions.abort_transaction(txn)),
            store.admin.transactions.reap_transactions,
            lambda: row_json(store.admin.topics.delete_topic("t")),
            lambda: row_json(store.admin.subscriptions.seek_subscription("t", "s", EARLIEST)),
        ):
            with pytest.raises(StoreInvalid, match="reading only"):
                change()
    assert contents(path) == before


def test_readers_and_writers_of_one_process_share_a_store(path: str):
    """A handle for writing joins one that only reads; each goes on after the other has closed."""
    with Store.open(path, read_only=True) as reading:
        reader = reading.reader("t")
        with Store.open(path) as writing:
            writing.create_producer("t").send(b"x")
        assert reader.read_next(timeout=5).value == b"x"
        with pytest.raises(StoreInvalid, match="reading only"):
            reading.create_topic("u")


def test_a_reader_survives_that_its_process_may_not_write(path: str, children: Children):
    """A writer beside an open reader gives up in time when the gate is held, and the reader goes on."""
    with Store.open(path, read_only=True) as reading:
        holder = children.run(HOLDER)
        holder.expect("holding")
        with (
            pytest.raises(WriterBusy, match=r"within 0\.2 s"),
            Store.open(
                path, lock_timeout=0.2
            ) as writing,  # takes the gate of a directory, and none of a server
        ):
            writing.create_topic("u")
        assert reading.topics() == ["t"]
        holder.say("leave")
        holder.expect("left")
        with Store.open(path) as writing:
            writing.create_producer("t").send(b"x")
        assert [message.value for message in reading.reader("t")] == [b"x"]
