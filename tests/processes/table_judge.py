"""Judges what the workers of the serializability test logged against what stands in the store in the end.

What was committed is told by the versions that the store keeps, each a transaction's timestamp, and must agree with
what the workers were answered (invariants 15 to 17); a transaction is there with all its keys or with none (6). From
that the history is built and checked (12), and the read-committed reads with it (14).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from storage import Store
from tests.processes.table_log import UNKNOWN, Asked, Dropped, read_log
from tests.storage.table.history import Found, History, Put, Recorded
from tests.storage.table.recency import Commit, CommittedRead, check_committed_reads, check_order

Versions = dict[str, dict[int, str | None]]
"""Key to version to value, None where it was deleted."""


def committed_versions(store: Store, table: str, keys: Iterable[str]) -> Versions:
    """All versions that the store keeps of these keys."""
    accounts, found = store.table(table), {}
    for key in keys:
        rows = accounts.versions(key.encode())
        assert {row.state for row in rows} <= {"COMMITTED"}, "gc has finalised everything"
        numbers = [row.version_ns for row in rows]
        assert numbers == sorted(set(numbers), reverse=True), f"versions of {key} are out of order"
        found[key] = {row.version_ns: None if row.value is None else row.value.decode() for row in rows}
    return found


class Judge:
    """One run."""

    def __init__(self, logs: Path, versions: Versions) -> None:
        self.asked: list[Asked] = []
        self.dropped: list[Dropped] = []
        self.reads: list[CommittedRead] = []
        for path in sorted(logs.iterdir()):
            if path.is_file() and not path.suffix:
                asked, dropped, reads = read_log(path)
                self.asked += asked
                self.dropped += dropped
                self.reads += reads
        self._versions = versions
        self._keys_of: dict[int, set[str]] = defaultdict(set)
        self._version_of: dict[tuple[str, str], int] = {}
        for key, of_key in versions.items():
            for version, value in of_key.items():
                self._keys_of[version].add(key)
                if value is not None:
                    self._version_of[key, value] = version
        self.recorded: list[Recorded] = []
        self.commits: list[Commit] = []
        self._found: list[Found] = []

    def check(self) -> list[Found]:
        """Everything that is wrong."""
        for each in self.asked:
            self._settle(each)
        for one in self.dropped:
            self._note(Recorded(one.name, one.version, False, one.operations))
        known = {each.version for each in self.recorded if each.is_committed}
        for version, keys in self._keys_of.items():
            if version not in known:
                self._found.append(
                    Found("unknown", f"version {version} of {sorted(keys)} was never asked for")
                )
        return [
            *self._found,
            *History(self.recorded).check(),
            *check_order(self.commits),
            *check_committed_reads(self.commits, map(self._with_version, self.reads)),
        ]

    def _with_version(self, read: CommittedRead) -> CommittedRead:
        if read.version != UNKNOWN:
            return read
        return read._replace(version=self._version_of.get((read.key, read.value or ""), UNKNOWN))

    def _note(self, recorded: Recorded) -> None:
        """A transaction that was not committed; without a timestamp nobody can have seen it."""
        if recorded.version:
            if recorded.version in self._keys_of:
                self._found.append(Found("17", f"{recorded.name} is over, and its version is there"))
            self.recorded.append(recorded)

    def _settle(self, asked: Asked) -> None:
        """Whether a transaction was committed; what was announced and refused is judged as dropped."""
        wrote = {each.key: each.value for each in asked.operations if isinstance(each, Put)}
        version = asked.version or self._look_up(wrote)
        there = self._keys_of.get(version, set())
        if wrote and there and there != set(wrote):
            self._found.append(
                Found("6", f"{asked.name} wrote {sorted(wrote)}, of which {sorted(there)} are there")
            )
        if asked.is_refused:
            if there:
                self._found.append(Found("17", f"{asked.name} was refused, and its version is there"))
            return
        is_committed = bool(there) if wrote else asked.answered is not None
        if asked.answered is not None and not is_committed:
            self._found.append(Found("15", f"{asked.name} was committed and is lost"))
        for key in there & set(wrote):
            if self._versions[key][version] != wrote[key]:
                self._found.append(Found("value", f"{key} of {asked.name} is not what it wrote last"))
        if version:
            self.recorded.append(Recorded(asked.name, version, is_committed, asked.operations))
        if is_committed:
            self.commits.append(Commit(version, asked.began, asked.asked, asked.answered, wrote))

    def _look_up(self, wrote: dict[str, str | None]) -> int:
        """The version of a plain put whose process died before it learned of it; 0 if it is not there."""
        return max((self._version_of.get((key, value or ""), 0) for key, value in wrote.items()), default=0)

    def figures(self) -> dict[str, int]:
        """What there was, for the report of a long run."""
        committed = [each for each in self.recorded if each.is_committed]
        reasons = Counter(each.code for each in self.dropped)
        unanswered = sum(each.answered is None and not each.is_refused for each in self.asked)
        return {
            "transactions": len(self.asked) + len(self.dropped) - sum(each.is_refused for each in self.asked),
            "committed": len(committed),
            "operations of committed": sum(len(each.operations) for each in committed),
            "versions": sum(map(len, self._versions.values())),
            "read-committed reads": len(self.reads),
            "killed at their commit": unanswered,
            **{f"not committed: {code}": count for code, count in sorted(reasons.items())},
        }
