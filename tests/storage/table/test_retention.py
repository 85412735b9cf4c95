"""The window in which versions are kept, reading in the past, and collecting what is older (invariant 22)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store, Table, TxnID
from storage.errors import InvalidValue, RequestTooOld, TransactionNotOpen
from storage.limits import GC_STEP_RECORDS
from storage.process.clock import ManualClock
from tests.row_json import row_json

MINUTE_MS = 60_000


@pytest.fixture
def history(store: Store, table: Table, clock: ManualClock) -> list[int]:
    """Key `k` written as b"0" to b"5", a minute apart, with a window of 150 seconds; the versions."""
    store.admin.settings.set_table_retention(150_000)
    versions = []
    for number in range(6):
        versions.append(table.put(b"k", b"%d" % number))
        clock.advance(60)
    return versions


def test_a_read_at_a_version_shows_what_was_committed_then(
    store: Store, table: Table, history: list[int]
) -> None:
    """By key and by range, within the window."""
    for number in (4, 5):
        for at in (history[number], history[number] + 1):
            assert table.get(b"k", at=at) == b"%d" % number
            assert [row.value for row in table.scan(at=at)] == [b"%d" % number]
    assert table.get_row(b"k", at=history[5] - 1).version == history[4]  # type: ignore[union-attr]


def test_a_read_before_the_window_is_refused(table: Table, history: list[int]) -> None:
    """Whether or not the versions have been collected yet."""
    with pytest.raises(RequestTooOld):
        table.get(b"k", at=history[3])
    with pytest.raises(RequestTooOld):
        list(table.scan(at=1))


def test_collecting_keeps_the_window_and_the_newest_before_it(
    store: Store, table: Table, history: list[int]
) -> None:
    """The window starts between the third and the fourth version: the third is what it began with."""
    window = store.connection.clock.wall_ns() - 150_000 * 1_000_000
    assert history[3] < window < history[4]
    answers = {at: table.get(b"k", at=at) for at in range(window, history[5] + 2, 7_000_000_000)}
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == 3
    assert [each.value for each in table.versions(b"k")] == [b"5", b"4", b"3"]
    assert {at: table.get(b"k", at=at) for at in answers} == answers
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == 0


def test_versions_that_were_removed_are_not_read_after_a_step_back_of_the_clock(
    store: Store, table: Table, clock: ManualClock, history: list[int]
) -> None:
    """By the clock alone they lie in the window again: a get and a scan there are refused."""
    removed = history[3] - 1  # read from the version of history[2]
    clock.wall_now_ns -= 40 * 1_000_000_000
    assert table.get(b"k", at=removed) == b"2"
    clock.wall_now_ns += 40 * 1_000_000_000
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == 3
    clock.wall_now_ns -= 40 * 1_000_000_000
    with pytest.raises(RequestTooOld):
        table.get(b"k", at=removed)
    with pytest.raises(RequestTooOld):
        list(table.scan(at=removed))


def test_a_deleted_key_goes_when_its_deletion_is_older_than_the_window(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """First what the deletion superseded, then the deletion itself."""
    table.put(b"k", b"v")
    table.delete(b"k")
    assert row_json(store.maintenance.collect_garbage())["tombstonesRemoved"] == 0
    clock.advance(3601)
    result = row_json(store.maintenance.collect_garbage())
    assert (result["versionsRemoved"], result["tombstonesRemoved"]) == (1, 1)
    assert row_json(table.stats())["rows"] == 0


def test_collecting_goes_over_many_keys_in_steps(store: Store, table: Table, clock: ManualClock) -> None:
    """More than one step of keys and of versions of one key; the counters still agree (verified at the end)."""
    for value in (b"1", b"2"):
        table.import_rows((b"%05d" % n, value) for n in range(3000))
    for number in range(50):
        table.put(b"hot", b"%d" % number)
    store.maintenance.collect_garbage()
    clock.advance(3601)
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == 3000 + 49
    assert row_json(table.stats())["versions"] == 0
    assert len(list(table.scan())) == 3001


def test_collecting_a_key_in_several_steps_keeps_one_version_before_the_window(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """A step that ends among the versions of a key leaves the next step to see which newer version covers the rest."""
    count = GC_STEP_RECORDS + 10
    for number in range(count):
        table.put(b"hot", b"%d" % number)
    clock.advance(3601)
    table.put(b"hot", b"newest")
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == count - 1
    assert [version.value for version in table.versions(b"hot")] == [b"newest", b"%d" % (count - 1)]


def test_a_transaction_older_than_the_window_is_doomed(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Reading, writing and committing are refused, attached and detached."""
    store.admin.settings.set_table_retention(30_000)
    actions: list[Callable[[TxnID], object]] = [
        lambda txn: table.get(b"k", txn=txn),
        lambda txn: list(table.scan(txn=txn)),
        lambda txn: table.put(b"k", b"", txn=txn),
        store.commit_transaction,
    ]
    txns = [store.begin_transaction() for _ in actions]
    for txn in txns:
        table.get(b"k%d" % txn.least, txn=txn)
    attached = store.transaction()
    table.put(b"k", b"", txn=attached)
    clock.advance(31)
    for txn, action in zip(txns, actions, strict=True):
        with pytest.raises(RequestTooOld):
            action(txn)
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(txn)
    with pytest.raises(RequestTooOld):
        attached.commit()
    assert table.get(b"k") is None


def test_a_transaction_without_table_work_outlives_the_window(store: Store, clock: ManualClock) -> None:
    """Topics have no window of versions."""
    store.admin.settings.set_table_retention(30_000)
    txn = store.begin_transaction()
    store.create_producer("t").send(b"m", txn=txn)
    clock.advance(31)
    store.commit_transaction(txn)


def test_intents_never_count_as_the_version_that_is_kept(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """An open transaction's intent, or an aborted one's, does not let the version below it go."""
    table.put(b"k", b"0")
    txn = store.begin_transaction(timeout=86_000)
    table.put(b"k", b"1", txn=txn)
    store.admin.settings.set_table_retention(10_000)
    clock.advance(100)
    assert row_json(store.maintenance.collect_garbage())["versionsRemoved"] == 0
    store.admin.transactions.abort_transaction(txn)
    store.maintenance.collect_garbage()
    assert table.get(b"k") == b"0"


def test_nothing_is_removed_while_the_clocks_disagree(store: Store, table: Table, clock: ManualClock) -> None:
    """The wall clock jumps two hours ahead: versions stay, transactions live, reads in the past go on."""
    first = table.put(b"k", b"0")
    table.put(b"k", b"1")
    txn = store.begin_transaction()
    assert table.get(b"k", txn=txn) == b"1"
    clock.wall_now_ns += 2 * 3600 * 1_000_000_000
    result = row_json(store.maintenance.collect_garbage())
    assert (result["versionsRemoved"], result["clocksDisagree"]) == (0, True)
    assert table.get(b"k", at=first) == b"0"
    table.put(b"other", b"", txn=txn)
    store.commit_transaction(txn)
    assert row_json(store.maintenance.collect_garbage(trust_clock=True))["versionsRemoved"] == 1
    with pytest.raises(RequestTooOld):
        table.get(b"k", at=first)


def test_gc_finalises_what_commits_and_aborts_left(
    store: Store, table: Table, write_many: Callable[[TxnID, dict[bytes, bytes]], None]
) -> None:
    """And leaves the intents of open transactions alone."""
    done, dropped, still = store.begin_transaction(), store.begin_transaction(), store.begin_transaction()
    for txn, key in ((done, b"a"), (dropped, b"b"), (still, b"c")):
        write_many(txn, {key: b"v"})
    store.commit_transaction(done)
    store.admin.transactions.abort_transaction(dropped)
    assert row_json(table.stats())["intents"] == 3 * 65
    answers = [(row.key, row.value) for row in table.scan()]
    assert row_json(store.maintenance.collect_garbage())["intentsFinalized"] == 2 * 65
    assert row_json(table.stats())["intents"] == 65
    assert [(row.key, row.value) for row in table.scan()] == answers
    assert {row["txnId"] for row in row_json(table.intents())} == {str(still)}


@pytest.mark.parametrize("value", [0, 999, -1, 1 << 62, "1h", 2.5, True])
def test_a_retention_out_of_bounds_is_refused(store: Store, value: object) -> None:
    """From a second to ten years."""
    with pytest.raises(InvalidValue):
        store.admin.settings.set_table_retention(value)  # type: ignore[arg-type]


def test_a_read_in_the_future_is_refused(store: Store, table: Table, clock: ManualClock) -> None:
    """What will have been committed by then is not known; up to this millisecond, and what was written, is read."""
    version = table.put(b"k", b"v")
    now_ns = clock.wall_ns()
    for at in (version, now_ns, now_ns // 1_000_000 * 1_000_000 + 999_999):
        assert table.get(b"k", at=at) == b"v"
    for read in (lambda: table.get(b"k", at=now_ns + 1_000_000), lambda: list(table.scan(at=(1 << 63) - 1))):
        with pytest.raises(InvalidValue, match="in the future"):
            read()


def test_what_was_written_is_read_although_the_clock_was_set_back(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Versions go on from the last one, ahead of the clock, those issued without a commit too."""
    table.put(b"k", b"older")
    clock.wall_now_ns -= 30 * 1_000_000_000
    version = table.put(b"k", b"v")
    reader = store.transaction()
    assert clock.wall_ns() < version < reader.timestamp
    assert table.get(b"k", at=version) == table.get(b"k", at=reader.timestamp) == b"v"


@pytest.mark.parametrize("at", [0, -5, "now", 1.5, 1 << 63])
def test_what_is_no_version_is_refused(table: Table, at: object) -> None:
    """A version is a whole number of nanoseconds."""
    with pytest.raises(InvalidValue):
        table.get(b"k", at=at)  # type: ignore[arg-type]


def test_outcomes_that_nothing_names_are_forgotten_after_a_day(
    store: Store, table: Table, clock: ManualClock, write_many: Callable[[TxnID, dict[bytes, bytes]], None]
) -> None:
    """Those of messages stay, and so do open ones and young ones."""
    table.put(b"k", b"0")
    spoke = store.begin_transaction()
    store.create_producer("t").send(b"m", txn=spoke)
    store.commit_transaction(spoke)
    still = store.begin_transaction(timeout=86_400)
    clock.advance(23 * 3600)
    young = store.begin_transaction()
    store.admin.transactions.abort_transaction(young)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 0
    clock.advance(3601)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 1
    assert {row["txnId"] for row in row_json(store.reports.list_transactions(ended=True))} == {
        str(spoke),
        str(young),
        str(still),
    }
    assert table.get(b"k") == b"0"
    assert row_json(table.versions(b"k"))[0]["state"] == "COMMITTED"
