"""What is wrong with a store, why, and what to do about it: decided from the facts of `overview.py` alone.

Each finding is a row: `code` (stable), `severity` (critical: nothing goes on, or soon nothing will; warning:
something waits), `about` (the object), `what` and `why` in plain words, `command` (what to type next).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from storage.limits import ACTIVE_OWNER_MS, CLOCKS_DISAGREE_NS
from storage.ops.owner_state import GONE

Facts = dict[str, Any]
Row = dict[str, Any]

SHOWN = 5
"""Names of one kind that a sentence lists."""

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
    """All findings, the critical ones first."""
    found = [row for rule in _RULES for row in rule(facts)]
    return sorted(found, key=lambda row: bool(row["severity"] != "critical"))


def verdict(findings: list[Row]) -> str:
    """ok, warning or critical: as the worst finding."""
    return str(findings[0]["severity"]) if findings else "ok"


def finding(code: str, about: str, what: str, why: str, command: str, severity: str = "warning") -> Row:
    """One finding as a row."""
    return {"code": code, "severity": severity, "about": about, "what": what, "why": why, "command": command}


def _gate(facts: Facts) -> Iterator[Row]:
    gate = facts["writerGate"]
    if gate is not None and gate["state"] == "stopped":
        what = f"nobody can write: process {gate['pid']} holds the writer gate and is stopped"
        why = f"{gate['holder']} got SIGSTOP (Ctrl-Z) while it wrote. Continue it, or end it with kill -KILL."
        yield finding("gate-stopped", "writer gate", what, why, f"kill -CONT {gate['pid']}", "critical")


def _disk(facts: Facts) -> Iterator[Row]:
    free, whole = facts["store"]["diskFreeBytes"], facts["store"]["diskBytes"]
    for code, severity, (least, percent) in (
        ("disk-full", "critical", DISK_FULL),
        ("disk-low", "warning", DISK_LOW),
    ):
        if free < least and free * 100 < whole * percent:
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
    verb, names = "is" if len(late) == 1 else "are", _some([row["txnId"] for row in late])
    what = f"{_several(len(late), 'open transaction')} {verb} late: {names}"
    why = f"{' and '.join(kinds)}. The next writer ends them"
    if facts["store"]["reapPolicy"] != "all":
        why += f", as far as the store's reap policy ({facts['store']['reapPolicy']}) lets it"
    yield finding(
        "late-transactions", "transactions", what, f"{why}; so does this.", "txnctl transactions reap"
    )


def _blocked(facts: Facts) -> Iterator[Row]:
    for topic in facts["topics"]:
        if topic["blockedBy"] is None:
            continue
        txn, name = topic["blockedBy"], topic["name"]
        waiting = [
            row["subscription"]
            for row in facts["subscriptions"]
            if row["topic"] == topic["topic"] and row["blocked"]
        ]
        who = f"; {_some(waiting)} cannot read on" if waiting else ""
        count = _several(topic["blockedMessages"], "committed message")
        verb = "waits" if topic["blockedMessages"] == 1 else "wait"
        what = f"{count} of {name} {verb} behind transaction {txn}{who}"
        why = "It is open, and READ_COMMITTED stops before its first message until it commits or aborts."
        yield finding("blocked", f"topic {name}", what, why, f"txnctl transactions explain {txn}")


def _subscriptions(facts: Facts) -> Iterator[Row]:
    for row in facts["subscriptions"]:
        about = f"subscription {row['subscription']} of {row['name']}"
        for each in row["consumers"]:
            if each["state"] == "stopped":
                what = f"consumer {each['consumerName']} of {row['subscription']} on {row['name']} is stopped"
                why = (
                    f"{each['owner']} keeps the messages it was handed. Continue it; or take them from it with "
                    f"txnctl subscriptions evict {row['name']} {row['subscription']} {each['consumerName']}."
                )
                yield finding("consumer-stopped", about, what, why, f"kill -CONT {each['pid']}")
        if row["verdict"] == "no-consumer":
            count = _several(row["visible"], "message")
            what = (
                f"{count} of {row['name']} could be read on {row['subscription']}, and no consumer is there"
            )
            why = "No living process is attached to it. Start its consumer; or delete the subscription."
            yield finding("no-consumer", about, what, why, f"txnctl subscriptions lag {row['name']}")


def _producers(facts: Facts) -> Iterator[Row]:
    for topic in facts["producers"]:
        standing = topic["before"] or topic["next"]
        if standing["state"] != "stopped":
            continue
        doing = "is connected" if topic["before"] else "is next"
        what = f"{_several(topic['waiting'], 'producer')} of {topic['name']} cannot go on: who {doing} is stopped"
        option = "" if topic["before"] else " --waiting"
        why = f"{standing['producerName']}, {standing['owner']}, keeps its place. Continue it; or fence it with "
        why += f"txnctl producers fence {topic['name']}{option}."
        yield finding(
            "producers-waiting", f"topic {topic['name']}", what, why, f"kill -CONT {standing['pid']}"
        )


def _tables(facts: Facts) -> Iterator[Row]:
    for table in facts["tables"]:
        idle = [row for row in table["heldBy"] if _nobody_at_work(row)]
        if idle:
            what = f"keys of table {table['table']} are held by {_some([row['txnId'] for row in idle])}"
            why = "Nobody is at work in it. Whoever writes one of these keys meets it, and one of the two is aborted."
            command = f"txnctl transactions explain {idle[0]['txnId']}"
            yield finding("intents-held", f"table {table['table']}", what, why, command)
        if table["versions"] >= VERSIONS_HIGH and table["versions"] > table["keys"]:
            what = f"table {table['table']} keeps {table['versions']:,} superseded versions of {table['keys']:,} keys"
            why = "gc removes those that are older than the retention window."
            yield finding("versions-kept", f"table {table['table']}", what, why, "txnctl store gc --dry-run")


def _nobody_at_work(holder: Row) -> bool:
    gone = holder["ownerState"] in (*GONE, "stopped") or holder["overdue"]
    return bool(gone or holder["idleMs"] > ACTIVE_OWNER_MS)


def _clocks(facts: Facts) -> Iterator[Row]:
    skew_ms = facts["clockSkewMs"]
    if skew_ms is not None and abs(skew_ms) * 1_000_000 > CLOCKS_DISAGREE_NS:
        way = "ahead" if skew_ms > 0 else "back"
        what = f"the wall clock was set {way} by {abs(skew_ms) // 1000:,} s"
        why = "Until somebody has looked at it, nothing is removed for its age. If it is right now, this says so."
        yield finding("clocks-disagree", "clock", what, why, "txnctl store gc --trust-clock")


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _some(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


_RULES = (_gate, _disk, _readers, _late, _blocked, _subscriptions, _producers, _tables, _clocks)
