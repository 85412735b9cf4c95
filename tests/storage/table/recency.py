"""What a clock that all processes share adds to a history: what was answered before, and what began after.

A transaction that began after another one's commit was answered has the later timestamp. A read-committed read
returns what is committed; in the check modes `full` and `minimal`, begun after a commit was answered, nothing older
than that. It shares no code with the store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tests.storage.table.history import NOTHING, Found


class Commit(NamedTuple):
    """When a committed transaction began, when its commit was asked for, and answered (None: never); in ns."""

    version: int
    began: int
    asked: int
    answered: int | None
    wrote: dict[str, str | None]


class CommittedRead(NamedTuple):
    """A read-committed read of a key, NOTHING and None if it found nothing, between two moments."""

    check: str
    key: str
    version: int
    value: str | None
    began: int
    ended: int


def check_order(commits: Iterable[Commit]) -> list[Found]:
    """That who began after a commit was answered has a later timestamp."""
    found: list[Found] = []
    every = list(commits)
    answered = sorted((each.answered, each.version) for each in every if each.answered is not None)
    highest = place = 0
    for each in sorted(every, key=lambda commit: commit.began):
        while place < len(answered) and answered[place][0] < each.began:
            highest = max(highest, answered[place][1])
            place += 1
        if each.version < highest:
            found.append(
                Found("real time", f"{each.version} began after the commit of {highest} was answered")
            )
    return found


class _Key:
    """The committed versions of one key."""

    def __init__(self) -> None:
        self.commits: dict[int, Commit] = {}
        self._answered: list[tuple[int, int]] = []
        self._highest: list[int] = []

    def finish(self) -> None:
        self._answered = sorted(
            (each.answered, each.version) for each in self.commits.values() if each.answered is not None
        )
        highest = NOTHING
        for _, version in self._answered:
            highest = max(highest, version)
            self._highest.append(highest)

    def answered_before(self, moment: int) -> int:
        """The newest version whose commit was answered before a moment."""
        place = bisect_left(self._answered, (moment, 0))
        return self._highest[place - 1] if place else NOTHING


def check_committed_reads(commits: Iterable[Commit], reads: Iterable[CommittedRead]) -> list[Found]:
    """That read-committed reads returned what is committed, and in which modes how new it must be."""
    keys: dict[str, _Key] = defaultdict(_Key)
    for each in commits:
        for key in each.wrote:
            keys[key].commits[each.version] = each
    for of_key in keys.values():
        of_key.finish()
    return [found for read in reads if (found := _judge(keys[read.key], read)) is not None]


def _judge(key: _Key, read: CommittedRead) -> Found | None:
    least = NOTHING if read.check == "none" else key.answered_before(read.began)
    if read.version == NOTHING:
        deletions = [each for each in key.commits.values() if each.wrote[read.key] is None]
        may_be_gone = least == NOTHING or any(
            each.version >= least and each.asked <= read.ended for each in deletions
        )
        return None if may_be_gone else Found("stale", f"{read}, though {least} had been committed")
    commit = key.commits.get(read.version)
    if commit is None or commit.wrote[read.key] != read.value:
        return Found("dirty", f"{read}: that was never committed")
    if commit.asked > read.ended:
        return Found("dirty", f"{read}: its commit had not been asked for")
    if read.version < least:
        return Found("stale", f"{read}, though {least} had been committed")
    return None
