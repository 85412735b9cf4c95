"""Livelocks: keys of tables that transactions keep losing to each other, while hardly a write of the key is committed.

The evidence is in the store already: the last conflicts with their losers (`storage/table/conflict.py`), the records of
the losers, which say labels and program and are kept for a day, and the versions of the key. A livelock is found only
while it goes on: its last loss is as recent as the rhythm of its losses lets expect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.actions import Action, Hint
from storage.disk.codec import key1
from storage.disk.schema import ROWS, VERSIONS
from storage.disk.view import ReadView
from storage.limits import LIVELOCK_LOSSES_MIN, LIVELOCK_QUIET_MS, LIVELOCK_RATIO, LIVELOCK_WINDOW_MS
from storage.process.identity import ProcessIdentity
from storage.reports.facts import ContendedKey, Facts, LosingJob
from storage.reports.finding import Finding, several, some, warning
from storage.table import catalogue as tables, conflict as conflicts, row as rows
from storage.table.conflict import ConflictRow
from storage.txn import record as records
from storage.values.key_text import key_text

_NS_PER_MS = 1_000_000


def contended_keys(view: ReadView, shows_keys: bool) -> list[ContendedKey]:
    """Return the keys over which a livelock goes on, those with the most losses first.

    At most `CONFLICTS_MAX` conflicts and as many records are read, and a version for every few conflicts.

    Args:
        shows_keys: whether the rows have the key, which is content of the store.
    """
    since_ms = max(
        view.clock.wall_ms() - LIVELOCK_WINDOW_MS, view.superblock.collected_timestamp // _NS_PER_MS
    )
    lost: dict[tuple[str, bytes], list[ConflictRow]] = {}
    for conflict in conflicts.list_conflicts(view, since_ms=since_ms):
        if conflict.table is not None and conflict.key is not None:
            lost.setdefault((conflict.table, conflict.key), []).append(conflict)
    contended = []
    for (table, key), losses in lost.items():
        if len(losses) >= LIVELOCK_LOSSES_MIN and _goes_on(losses, view.clock.wall_ms()):
            row = _contended_key(view, table, key, losses)
            if row is not None:
                contended.append(row if shows_keys else row._replace(key=None))
    return sorted(contended, key=lambda row: (-row.losses, row.table, row.key or ""))


def _goes_on(losses: list[ConflictRow], now_ms: int) -> bool:
    """Whether the last of some losses, the newest first, is no older than two intervals between losses, or a minute."""
    newest_ms, oldest_ms = losses[0].happened_at_ms, losses[-1].happened_at_ms
    interval_ms = (newest_ms - oldest_ms) // (len(losses) - 1)
    return now_ms - newest_ms <= max(LIVELOCK_QUIET_MS, 2 * interval_ms)


def _contended_key(view: ReadView, table: str, key: bytes, losses: list[ConflictRow]) -> ContendedKey | None:
    """The row of a key, from losses, the newest first; None if enough is committed, or one process alone loses."""
    first_at_ms = losses[-1].happened_at_ms
    commits = _commits_since(view, table, key, first_at_ms * _NS_PER_MS, len(losses) // LIVELOCK_RATIO + 1)
    if commits is None or commits * LIVELOCK_RATIO > len(losses):
        return None
    counts: dict[tuple[tuple[tuple[str, str], ...], str], int] = {}
    owners: set[ProcessIdentity] = set()
    for loss in losses:
        record = records.find(view, loss.loser.least)
        if record is not None:
            job = (tuple(sorted(record.labels.items())), record.owner.program)
            counts[job] = counts.get(job, 0) + 1
            owners.add(record.owner)
    if len(owners) < 2:
        return None
    jobs = [
        LosingJob(dict(labels), program, count)
        for (labels, program), count in sorted(counts.items(), key=_most_first)
    ]
    return ContendedKey(
        table, key_text(key), len(losses), commits, first_at_ms, losses[0].happened_at_ms, jobs
    )


def _most_first(counted: tuple[object, int]) -> tuple[int, str]:
    """The place of something counted: the highest count first, equal ones by name."""
    return -counted[1], str(counted[0])


def _commits_since(view: ReadView, table: str, key: bytes, since_ns: int, limit: int) -> int | None:
    """Count the committed versions of a key from a timestamp on, up to a limit; None if the table is gone."""
    entry = tables.find(view, table)
    if entry is None:
        return None
    stored = key1(entry.table_id) + key
    payload = view.get(ROWS, stored)
    newest = None if payload is None else rows.decode(stored, payload).committed
    if newest is None or newest.version < since_ns:
        return 0
    older = islice(view.keys(VERSIONS, rows.old_prefix(entry.table_id, key)), limit)
    return 1 + sum(rows.version_of(version) >= since_ns for version in older)


def livelocks(facts: Facts) -> Iterator[Finding]:
    """One finding for the keys of a table over which the same jobs lose to each other."""
    groups: dict[tuple[str, frozenset[str]], list[ContendedKey]] = {}
    for row in facts.contended_keys:
        groups.setdefault((row.table, frozenset(map(_job_text, row.jobs))), []).append(row)
    for (table, _), group in groups.items():
        keys = [row.key for row in group if row.key is not None]
        subject = f"{several(len(group), 'key')} of table {table}{f' ({some(keys)})' if keys else ''}"
        losses, commits = sum(row.losses for row in group), sum(row.commits for row in group)
        lost = f"{several(losses, 'transaction')} lost {subject} to each other, {commits:,} committed"
        what = f"livelock: {lost}: {some(_job_counts(group))}"
        why = Hint(
            "No transaction waits for a second one, so two that are tried again at once abort each other for ever. "
            "Let each wait for a random time before the next try, as {} does.",
            Action("store.run_transaction", "COMMAND"),
        )
        yield warning("livelock", f"table {table}", what, why, Action("store.reports.list_conflicts"))


def _job_counts(group: list[ContendedKey]) -> list[str]:
    """Jobs with the numbers of their losses: `132 of job=left (counter.py)`."""
    counts: dict[str, int] = {}
    for row in group:
        for job in row.jobs:
            counts[_job_text(job)] = counts.get(_job_text(job), 0) + job.losses
    return [f"{count:,} of {job}" for job, count in sorted(counts.items(), key=_most_first)]


def _job_text(job: LosingJob) -> str:
    labels = " ".join([f"{name}={value}" for name, value in job.labels.items()])
    return f"{labels} ({job.program})" if labels else job.program
