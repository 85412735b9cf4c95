"""The parts of a transaction together: when what is buffered is written, and what giving out the number changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import IsolationLevel, Store, Table
from storage.client.append import Appender
from storage.client.work.beginning import BeginRequest
from storage.client.work.work import Work, begin_work
from storage.errors import ProducerFenced, TransactionNotOpen, WriteTooOld
from storage.limits import BUFFER_KEYS_MAX
from storage.process.background_flush import WRITE_BEHIND_NS
from storage.process.clock import ManualClock
from storage.table.catalogue import TableEntry
from tests.row_json import row_json
from tests.storage.client.work.conftest import MINUTE_MS, outgoing

NewAppender = Callable[[str], Appender]


@pytest.fixture
def entry(table: Table) -> TableEntry:
    """What the catalogue has of the table."""
    return TableEntry(table.name, table.table_id, 0, {})


@pytest.fixture
def work(store: Store, table: Table) -> Work:
    """A transaction that has just begun, in a process that has begun one before."""
    table.put(b"warm", b"")
    return begin_work(store.connection, store.engine.coordinator, BeginRequest(MINUTE_MS, None))


def commits(store: Store) -> int:
    return int(row_json(store.reports.store_info())["commits"])


def dirty(store: Store) -> list[bytes | None]:
    return [each.value for each in store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)]


def keys_held(store: Store) -> list[bytes]:
    return [row.key for row in store.reports.list_intents()]


def test_a_flush_writes_both_parts_in_one_batch(
    store: Store, work: Work, entry: TableEntry, new_appender: NewAppender
) -> None:
    """And a commit what came after it."""
    work.buffer_messages(new_appender("p"), outgoing(b"0"))
    work.write_key(entry, b"k", b"v")
    before = commits(store)
    work.flush_buffers()
    assert (commits(store) - before, dirty(store), keys_held(store)) == (1, [b"0"], [b"k"])
    work.write_key(entry, b"l", b"w")
    work.commit()
    assert (commits(store) - before, keys_held(store)) == (2, [])


def test_everything_is_checked_before_anything_is_written(
    store: Store, work: Work, table: Table, entry: TableEntry, new_appender: NewAppender
) -> None:
    """A key that is refused leaves no message; a producer that is refused leaves no key."""
    other = begin_work(store.connection, store.engine.coordinator, BeginRequest(MINUTE_MS, None))
    p = new_appender("p")
    for each in (work, other):
        each.buffer_messages(p, outgoing(b"never"))
        each.write_key(entry, b"k", b"never")
    table.put(b"k", b"newer")
    with pytest.raises(WriteTooOld):
        work.flush_buffers()
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("t")
    with pytest.raises(ProducerFenced):
        other.commit()
    assert (dirty(store), table.get(b"k"), keys_held(store)) == ([], b"newer", [])


def test_the_number_for_this_process_stores_messages_and_keeps_puts(
    store: Store, work: Work, entry: TableEntry, new_appender: NewAppender
) -> None:
    """And messages are buffered again afterwards."""
    p = new_appender("p")
    work.buffer_messages(p, outgoing(b"0"))
    work.write_key(entry, b"k", b"v")
    assert work.number() == work.txn_id > 0
    assert (dirty(store), keys_held(store)) == ([b"0"], [])
    receipt = work.buffer_messages(p, outgoing(b"1"))
    assert receipt is not None
    assert receipt.is_buffered


def test_after_the_number_is_given_out_nothing_is_buffered(
    store: Store, work: Work, entry: TableEntry, new_appender: NewAppender
) -> None:
    """Messages are left to be stored at once, a put is an intent at once, and many puts come a buffer at a time."""
    work.write_key(entry, b"before", b"v")
    assert work.share() == work.share() == work.txn_id
    assert keys_held(store) == [b"before"]
    assert work.buffer_messages(new_appender("p"), outgoing(b"0")) is None
    work.write_key(entry, b"k", b"v")
    assert keys_held(store) == [b"before", b"k"]
    before = commits(store)
    rows = [(b"m%05d" % number, b"v") for number in range(BUFFER_KEYS_MAX + 1)]
    assert work.write_keys(entry, rows) == BUFFER_KEYS_MAX + 1
    assert (commits(store) - before, len(keys_held(store))) == (2, BUFFER_KEYS_MAX + 3)
    work.write_key(entry, b"after", b"v")
    assert commits(store) - before == 3


def test_many_puts_that_fail_leave_nothing_buffered(store: Store, work: Work, entry: TableEntry) -> None:
    """Of a transaction whose number is known, a broken import is dropped."""
    work.share()

    def broken() -> object:
        yield b"a", b"v"
        raise KeyError

    with pytest.raises(KeyError):
        work.write_keys(entry, broken())  # type: ignore[arg-type]
    work.flush_buffers()
    assert keys_held(store) == []


def test_overdue_messages_are_stored(
    store: Store, work: Work, entry: TableEntry, clock: ManualClock, new_appender: NewAppender
) -> None:
    """By the watch, in the middle of nothing; puts wait for the commit."""
    work.buffer_messages(new_appender("p"), outgoing(b"0"))
    work.write_key(entry, b"k", b"v")
    clock.advance(WRITE_BEHIND_NS / 1e9 + 0.5)
    assert (dirty(store), keys_held(store)) == ([b"0"], [])


def test_a_failure_of_the_watch_is_raised_once(
    store: Store, work: Work, entry: TableEntry, clock: ManualClock, new_appender: NewAppender
) -> None:
    """By the next operation, whichever; after it the transaction is known to be aborted."""
    work.buffer_messages(new_appender("p"), outgoing(b"never"))
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("t")
    clock.advance(WRITE_BEHIND_NS / 1e9 + 0.5)
    with pytest.raises(ProducerFenced):
        work.read_version(entry, b"k")
    with pytest.raises(TransactionNotOpen):
        work.read_version(entry, b"k")
    assert dirty(store) == []


def test_own_writes_are_read_wherever_they_are(store: Store, work: Work, entry: TableEntry) -> None:
    """Buffered, or as intents."""
    for flushes in (False, True):
        work.write_key(entry, b"k", b"own")
        if flushes:
            work.flush_buffers()
        seen = work.read_version(entry, b"k")
        assert seen is not None
        assert (seen.value, seen.version) == (b"own", work.known_timestamp())
    work.write_key(entry, b"k", None)
    assert work.read_version(entry, b"k") is None
    assert store.table("accounts").get(b"k") is None
