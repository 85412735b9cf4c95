"""Keys that jobs keep losing to each other, found from the conflicts, the losers and the versions in the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage import Store
from storage.errors import LostConflict
from storage.process.clock import ManualClock
from storage.reports.facts import ContendedKey, LosingJob
from storage.reports.finding import Finding
from tests.row_json import row_json
from txnctl.output import shell


class Job:
    """A process that increments a key, and its handle on the store."""

    def __init__(self, path: str, clock: ManualClock, program: str, label: str) -> None:
        self.store = Store.open(path, clock=clock, program=program)
        self._labels = {"job": label}
        self._clock = clock

    def lose(self, winner: Job, key: bytes = b"n", table: str = "accounts", seconds: float = 0.05) -> None:
        """Lose a key: the winner, which began later, writes an intent under the intent of this job."""
        rows = self.store.table(table)
        txn = self.store.begin_transaction(labels=self._labels)
        rows.put(key, b"lost", txn=txn)
        self._clock.advance(seconds)
        following = winner.store.begin_transaction(labels=winner._labels)
        winner.store.table(table).put(key, b"won", txn=following)
        with pytest.raises(LostConflict):
            self.store.commit_transaction(txn)
        winner.store.admin.transactions.abort_transaction(following, force=True)

    def commit(self, key: bytes = b"n") -> None:
        with self.store.transaction() as txn:
            self.store.table("accounts").put(key, b"1", txn=txn)


@pytest.fixture
def jobs(path: str, clock: ManualClock) -> Iterator[tuple[Job, Job]]:
    """Two jobs, beside a table."""
    with Store.open(path, clock=clock) as store:
        store.create_table("accounts")
    left, right = (Job(path, clock, f"{name}.py", name) for name in ("left", "right"))
    yield left, right
    left.store.close()
    right.store.close()


def lose_to_each_other(jobs: tuple[Job, Job], times: int, key: bytes = b"n", seconds: float = 0.05) -> None:
    for number in range(times):
        jobs[number % 2].lose(jobs[1 - number % 2], key, seconds=seconds)


def keys_of(store: Store) -> list[ContendedKey]:
    return store.reports.store_overview().facts.contended_keys


def livelocks(store: Store) -> list[Finding]:
    return [finding for finding in store.reports.store_overview().findings if finding.code == "livelock"]


def test_a_livelock_is_found_with_labels_and_programs(jobs: tuple[Job, Job], store: Store) -> None:
    """With the losses of each job, and the next command."""
    lose_to_each_other(jobs, 13)
    (row,) = keys_of(store)
    assert (row.table, row.key, row.losses, row.commits) == ("accounts", "n", 13, 0)
    assert row.jobs == [LosingJob({"job": "left"}, "left.py", 7), LosingJob({"job": "right"}, "right.py", 6)]
    assert row.last_at_ms - row.first_at_ms == 600
    (finding,) = livelocks(store)
    assert finding.severity == "warning"
    assert finding.what == (
        "livelock: 13 transactions lost 1 key of table accounts (n) to each other, 0 committed: "
        "7 of job=left (left.py), 6 of job=right (right.py)"
    )
    assert shell.command(finding.action) == "txnctl tables history"
    assert "txnctl transactions run --retries 10" in shell.spell(finding.why)


@pytest.mark.parametrize(
    ("losses", "commits", "is_found"), [(9, 0, False), (10, 0, True), (12, 3, True), (11, 3, False)]
)
def test_a_few_losses_or_some_commits_are_no_livelock(
    jobs: tuple[Job, Job], store: Store, losses: int, commits: int, is_found: bool
) -> None:
    """From ten losses on, four for each commit of the key since the first."""
    jobs[0].commit()
    lose_to_each_other(jobs, losses - 1)
    for _ in range(commits):
        jobs[1].commit()
    lose_to_each_other(jobs, 1)
    assert bool(livelocks(store)) is is_found


def test_deleting_the_key_is_a_commit(jobs: tuple[Job, Job], store: Store) -> None:
    lose_to_each_other(jobs, 10)
    for _ in range(2):
        jobs[0].commit()
        store.table("accounts").delete(b"n")
    assert livelocks(store) == []


@pytest.mark.parametrize(
    ("seconds", "quiet_s", "goes_on"),
    [(0.05, 59, True), (0.05, 61, False), (90, 170, True), (90, 190, False)],
)
def test_a_livelock_that_is_over_is_not_found(
    jobs: tuple[Job, Job], store: Store, clock: ManualClock, seconds: float, quiet_s: float, goes_on: bool
) -> None:
    """After a minute, or two intervals of long transactions, without a further loss."""
    lose_to_each_other(jobs, 12, seconds=seconds)
    clock.advance(quiet_s)
    assert bool(livelocks(store)) is goes_on


def test_losses_of_more_than_an_hour_ago_count_for_nothing(
    jobs: tuple[Job, Job], store: Store, clock: ManualClock
) -> None:
    lose_to_each_other(jobs, 9)
    clock.advance(3601)
    lose_to_each_other(jobs, 9)
    assert livelocks(store) == []


def test_versions_that_gc_may_have_removed_are_not_missed(
    jobs: tuple[Job, Job], store: Store, clock: ManualClock
) -> None:
    """Where commits cannot be counted, conflicts do not count either."""
    store.admin.settings.set_table_retention(1000)
    lose_to_each_other(jobs, 12)
    for _ in range(5):
        jobs[0].commit()
    clock.advance(10)
    store.maintenance.collect_garbage()
    lose_to_each_other(jobs, 2)
    assert livelocks(store) == []


def test_a_process_that_loses_alone_is_in_no_livelock(jobs: tuple[Job, Job], store: Store) -> None:
    """The winner has lost nothing."""
    for _ in range(12):
        jobs[0].lose(jobs[1])
    assert livelocks(store) == []


def test_the_table_may_be_gone(jobs: tuple[Job, Job], store: Store) -> None:
    lose_to_each_other(jobs, 12)
    store.admin.tables.delete_table("accounts")
    assert livelocks(store) == []


def test_keys_of_the_same_jobs_are_one_finding(jobs: tuple[Job, Job], store: Store) -> None:
    """As one cause has one mending."""
    for number in range(7):
        lose_to_each_other(jobs, 10, key=b"k%d" % number)
    (finding,) = livelocks(store)
    assert finding.what.startswith(
        "livelock: 70 transactions lost 7 keys of table accounts (k0, k1, k2, k3, k4 and 2 more) to each other"
    )
    assert finding.what.endswith("35 of job=left (left.py), 35 of job=right (right.py)")


def test_a_report_has_no_key(jobs: tuple[Job, Job], store: Store) -> None:
    """A report is handed on, and shows no content."""
    lose_to_each_other(jobs, 10, key=b"secret")
    report = store.reports.store_report()
    assert [finding.code for finding in report.overview.findings] == ["livelock"]
    assert "secret" not in str(row_json(report))
