"""What is wrong with a store, why, and what to do about it: decided from the facts of `overview.py` alone.

Each finding is a row: `code` (stable), `severity` (critical: nothing goes on, or soon nothing will; warning:
something waits; info: good to know, nothing is wrong), `about` (the object), `what` and `why` in plain words, `command`
(what to type next). What holds others up comes first.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.limits import CLOCKS_DISAGREE_NS
from storage.reports import blockers
from storage.reports.finding import Facts, Row, finding, several, some

DISK_LOW = (1 << 30, 5)
DISK_FULL = (128 << 20, 1)
"""Bytes that are free, and percent of the disk: what is less than both is low, or next to nothing."""

READERS_HIGH_PERCENT = 90
READER_BEHIND_MAX = 1000
"""Commits that a reader may be behind: with more, the file grows instead of reusing what was freed."""

VERSIONS_HIGH = 100_000
"""Superseded versions of a table from which on, if they are more than its keys too, gc is worth a run."""

_FULLNESS_HINT = "A write that finds no room is refused, whole; what is stored stays readable."


def judge(facts: Facts) -> list[Row]:
    """All findings, the critical ones first, what is only good to know last."""
    found = [row for rule in _RULES for row in rule(facts)]
    return sorted(found, key=lambda row: _SEVERITIES.index(row["severity"]))


_SEVERITIES = ("critical", "warning", "info")


def verdict(findings: list[Row]) -> str:
    """ok, warning or critical: as the worst finding; ok too where they only inform."""
    worst = str(findings[0]["severity"]) if findings else "info"
    return "ok" if worst == "info" else worst


def _gate(facts: Facts) -> Iterator[Row]:
    gate = facts["writerGate"]
    if gate is not None and gate["state"] == "stopped":
        what = f"nobody can write: process {gate['pid']} holds the writer gate and is stopped"
        why = f"{gate['holder']} got SIGSTOP (Ctrl-Z) while it wrote. Continue it, or end it with kill -KILL."
        yield finding("gate-stopped", "writer gate", what, why, f"kill -CONT {gate['pid']}", "critical")


def _disk(facts: Facts) -> Iterator[Row]:
    free, whole = facts["store"]["diskFreeBytes"], facts["store"]["diskBytes"]
    for code, severity, (txn_id, percent) in (
        ("disk-full", "critical", DISK_FULL),
        ("disk-low", "warning", DISK_LOW),
    ):
        if free < txn_id and free * 100 < whole * percent:
            what = f"the disk of the store has {free >> 20:,} MiB left"
            yield finding(code, "disk", what, _FULLNESS_HINT, "txnctl store space", severity)
            return


def _readers(facts: Facts) -> Iterator[Row]:
    readers = facts["readers"]
    if readers["inUse"] * 100 >= readers["max"] * READERS_HIGH_PERCENT:
        what = f"{readers['inUse']} of {readers['max']} places for readers are taken"
        why = "Without a free one nobody can open the store. gc frees those of processes that died."
        yield finding("readers-nearly-full", "readers", what, why, "txnctl store gc", "critical")
    oldest = readers["oldest"]
    if oldest is not None and oldest["behind"] and oldest["state"] == "stopped":
        what = f"process {oldest['pid']} is stopped and holds a view {oldest['behind']:,} commits old"
        why = f"{oldest['holder']}: as long as it does, the file grows instead of reusing what was freed."
        yield finding("reader-stopped", "readers", what, why, f"kill -CONT {oldest['pid']}")
    elif oldest is not None and oldest["behind"] > READER_BEHIND_MAX:
        what = f"process {oldest['pid']} holds a view {oldest['behind']:,} commits old"
        why = f"{oldest['holder']}: meanwhile the file grows. A backup or a full verify does so as long as it runs."
        yield finding("reader-long", "readers", what, why, "txnctl store readers")


def _late(facts: Facts) -> Iterator[Row]:
    late = facts["transactions"]["late"]
    if not late:
        return
    orphaned = sum(row["orphaned"] for row in late)
    kinds = [f"{orphaned} left behind by a process that is gone"] if orphaned else []
    if len(late) > orphaned:
        kinds.append(f"{len(late) - orphaned} past the deadline")
    verb, names = "is" if len(late) == 1 else "are", some([row["txnId"] for row in late])
    what = f"{several(len(late), 'open transaction')} {verb} late: {names}"
    why = f"{' and '.join(kinds)}. The next writer ends them"
    if facts["store"]["reapPolicy"] != "all":
        why += f", as far as the store's reap policy ({facts['store']['reapPolicy']}) lets it"
    yield finding(
        "late-transactions", "transactions", what, f"{why}; so does this.", "txnctl transactions reap"
    )


def _versions(facts: Facts) -> Iterator[Row]:
    for table in facts["tables"]:
        if table["versions"] >= VERSIONS_HIGH and table["versions"] > table["keys"]:
            what = f"table {table['table']} keeps {table['versions']:,} superseded versions of {table['keys']:,} keys"
            why = "gc removes those that are older than the retention window."
            yield finding("versions-kept", f"table {table['table']}", what, why, "txnctl store gc --dry-run")


def _clocks(facts: Facts) -> Iterator[Row]:
    skew_ms = facts["clockSkewMs"]
    if skew_ms is not None and abs(skew_ms) * 1_000_000 > CLOCKS_DISAGREE_NS:
        way = "ahead" if skew_ms > 0 else "back"
        what = f"the wall clock was set {way} by {abs(skew_ms) // 1000:,} s"
        why = "Until somebody has looked at it, nothing is removed for its age. If it is right now, this says so."
        yield finding("clocks-disagree", "clock", what, why, "txnctl store gc --trust-clock")


def _no_consumer(facts: Facts) -> Iterator[Row]:
    """Many subscriptions have no consumer between two runs of a job: no reason to wake anybody."""
    found = [row for row in facts["subscriptions"] if row["verdict"] == "no-consumer"]
    if not found:
        return
    named = some([f"{row['subscription']} of topic {row['name']} ({row['visible']:,})" for row in found])
    have = "subscription has" if len(found) == 1 else "subscriptions have"
    what = f"{len(found):,} {have} messages to read and no consumer: {named}"
    why = "No living process is attached. Start the consumer; or delete a subscription that is used no more."
    topics = {row["name"] for row in found}
    command = "txnctl subscriptions list" + (f" {topics.pop()}" if len(topics) == 1 else "")
    yield finding("no-consumer", "subscriptions", what, why, command, "info")


_RULES = (_gate, _late, *blockers.RULES, _disk, _readers, _versions, _clocks, _no_consumer)
