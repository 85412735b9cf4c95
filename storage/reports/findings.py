"""Findings: the problems of a store with reason and next action, decided from the facts of `overview.py` alone.

A finding is critical if nothing goes on, or soon nothing will; a warning if work waits; an info if nothing is wrong.
Findings about work that waits for a holder come first.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.actions import Action, inspect, is_elsewhere, resume
from storage.disk.environment import HolderProcess
from storage.disk.schema import FORMAT_NUMBER
from storage.limits import CLOCKS_DISAGREE_NS
from storage.reports import holder_findings, livelock, quiet_findings, server_findings
from storage.reports.facts import Facts
from storage.reports.finding import Finding, several, some, warning
from storage.values.durations import short_duration
from storage.values.timestamps import rfc3339

DISK_LOW = (1 << 30, 5)
DISK_FULL = (128 << 20, 1)
"""Free bytes, and percent of the disk: less than both is low, or next to nothing."""

READERS_HIGH_PERCENT = 90
READER_BEHIND_MAX = 1000
"""Commits that a reader may be behind before the growth of the file is worth a finding."""

VERSIONS_HIGH = 100_000
"""Superseded versions of a table that are worth a run of gc, if the table has fewer keys."""

RETENTION_HELD_MS = 3600 * 1000
"""Age of the first message not acknowledged, or of the open transaction, from which a topic held back is noted."""

_FULLNESS_HINT = (
    "A write that finds no room is refused, whole; what is stored stays readable. A reserve is kept for what frees "
    "space: this lists it."
)


_LOCKS = Action("store.reports.list_locks")
_SEVERITIES = ("critical", "warning", "info")


def judge(facts: Facts) -> list[Finding]:
    """All findings, the critical ones first, the informing ones last."""
    findings = [finding for rule in _RULES for finding in rule(facts)]
    return sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity))


def verdict(findings: list[Finding]) -> str:
    """ok, warning or critical: as the worst finding; ok too if all findings only inform."""
    worst = findings[0].severity if findings else "info"
    return "ok" if worst == "info" else worst


def _gate(facts: Facts) -> Iterator[Finding]:
    gate = facts.writer_gate
    if gate is None or not gate.stops_writers:
        return
    if gate.state != "stopped":
        yield _held_gate(gate)
    else:
        what = f"nobody can write: process {gate.pid} holds the writer gate and is stopped"
        why = f"{gate.holder} got SIGSTOP (Ctrl-Z) while it wrote. Continue it, or end it with kill -KILL."
        yield Finding("gate-stopped", "critical", "writer gate", what, why, resume(gate.pid, gate.host))


def _held_gate(gate: HolderProcess) -> Finding:
    """The finding about a holder that is on another host, foreign to txnctl, or just slow."""
    activity = f", {gate.activity}" if gate.activity else ""
    what = f"nobody can write: {gate.holder} has held the writer gate for {short_duration(gate.held_ms or 0)}{activity}"
    end = f"on the server, `SELECT pg_terminate_backend({gate.session})` ends its session"
    if gate.pid is None:
        why = (
            f"It is no process of txnctl. Commit or roll back there; {end}, and its open transaction with it."
        )
    elif is_elsewhere(gate.host):
        why = f"Only {gate.host} knows whether it is stopped (Ctrl-Z): continue it there; {end}."
    else:
        why = f"Look what it waits for; {end}."
        return Finding("gate-held", "critical", "writer gate", what, why, inspect(gate.pid))
    return Finding("gate-held", "critical", "writer gate", what, why, gate.way_out or _LOCKS)


def _old_format(facts: Facts) -> Iterator[Finding]:
    number = facts.store.info.format
    if number != FORMAT_NUMBER:
        what = f"the store has format {number}: this release reads it and refuses every change"
        why = f"The upgrade to format {FORMAT_NUMBER} needs the store alone; earlier releases refuse it afterwards."
        yield warning("old-format", "store", what, why, Action("store.maintenance.upgrade_store"))


def _disk(facts: Facts) -> Iterator[Finding]:
    free, whole = facts.store.disk.disk_free_bytes, facts.store.disk.disk_bytes
    if free is None or whole is None:
        return
    for code, severity, (least_bytes, percent) in (
        ("disk-full", "critical", DISK_FULL),
        ("disk-low", "warning", DISK_LOW),
    ):
        if free < least_bytes and free * 100 < whole * percent:
            what = f"the disk of the store has {free >> 20:,} MiB left"
            yield Finding(code, severity, "disk", what, _FULLNESS_HINT, Action("store.reports.list_freeable"))
            return


def _readers(facts: Facts) -> Iterator[Finding]:
    readers = facts.readers
    if (
        readers.in_use is not None
        and readers.max
        and readers.in_use * 100 >= readers.max * READERS_HIGH_PERCENT
    ):
        what = f"{readers.in_use} of {readers.max} places for readers are taken"
        why = "Without a free one nobody can open the store. gc frees those of processes that died."
        collect = Action("store.maintenance.collect_garbage")
        yield Finding("readers-nearly-full", "critical", "readers", what, why, collect)
    oldest = readers.oldest
    behind = oldest.behind or 0 if oldest is not None else 0
    if oldest is not None and behind and oldest.state == "stopped":
        what = f"process {oldest.pid} is stopped and holds a view {behind:,} commits old"
        why = f"{oldest.holder}: as long as it does, the file grows instead of reusing what was freed."
        yield warning("reader-stopped", "readers", what, why, resume(oldest.pid))
    elif oldest is not None and behind > READER_BEHIND_MAX:
        what = f"process {oldest.pid} holds a view {behind:,} commits old"
        why = f"{oldest.holder}: meanwhile the file grows. A backup or a full verify does so as long as it runs."
        yield warning("reader-long", "readers", what, why, Action("store.reports.list_readers"))


def _versions(facts: Facts) -> Iterator[Finding]:
    for table in facts.tables:
        if table.versions >= VERSIONS_HIGH and table.versions > table.keys:
            what = f"table {table.table} keeps {table.versions:,} superseded versions of {table.keys:,} keys"
            why = "gc removes those that are older than the retention window."
            collect = Action("store.maintenance.collect_garbage", dry_run=True)
            yield warning("versions-kept", f"table {table.table}", what, why, collect)


def _clocks(facts: Facts) -> Iterator[Finding]:
    skew_ms = facts.clock_skew_ms
    if skew_ms is not None and abs(skew_ms) * 1_000_000 > CLOCKS_DISAGREE_NS:
        way = "ahead" if skew_ms > 0 else "back"
        what = f"the wall clock was set {way} by {abs(skew_ms) // 1000:,} s"
        why = "Until somebody has looked at it, nothing is removed for its age. If it is right now, this says so."
        collect = Action("store.maintenance.collect_garbage", trust_clock=True)
        yield warning("clocks-disagree", "clock", what, why, collect)


def _no_consumer(facts: Facts) -> Iterator[Finding]:
    """Subscriptions without a consumer only inform: many have none between two runs of a job."""
    rows = [row for row in facts.subscriptions if row.verdict == "no-consumer"]
    if not rows:
        return
    named = some([f"{row.subscription} of topic {row.name} ({row.visible:,})" for row in rows])
    have = "subscription has" if len(rows) == 1 else "subscriptions have"
    what = f"{len(rows):,} {have} messages to read and no consumer: {named}"
    why = "No living process is attached. Start the consumer; or delete a subscription that is used no more."
    topics = {row.name for row in rows}
    action = Action("store.reports.list_subscriptions", *(topics if len(topics) == 1 else ()))
    yield Finding("no-consumer", "info", "subscriptions", what, why, action)


def _retention_held(facts: Facts) -> Iterator[Finding]:
    """Topics that a subscription or a transaction keeps from being trimmed: the disk fills, and nobody may read."""
    for row in facts.retention_held:
        if facts.as_of_at_ms - row.held_by.since_at_ms < RETENTION_HELD_MS:
            continue  # a consumer at work is always a little behind
        kept = f"{several(row.messages, 'message')} past its retention ({row.bytes:,} bytes)"
        what = f"topic {row.name} keeps {kept}: {row.held_by.kind} {row.held_by.name} holds them back"
        since = rfc3339(row.held_by.since_at_ms)
        if row.held_by.kind == "subscription":
            why = f"It has acknowledged all up to {row.held_by.position}; its next message was published at {since}."
            action = Action("store.reports.subscription_stats", row.name, row.held_by.name)
        elif row.held_by.kind == "compaction":
            why = f"It is compacted up to {row.held_by.name}; the next message was published at {since}."
            action = Action("store.admin.topics.compact_topic", row.name)
        else:
            why = f"It is open since {since}."
            action = Action("store.reports.explain_transaction", row.held_by.name)
        yield Finding("retention-held", "info", f"topic {row.name}", what, why, action)


def _forgotten(facts: Facts) -> Iterator[Finding]:
    """Subscriptions without a consumer for long: each keeps the log from being trimmed, and likely for nobody."""
    for row in facts.forgotten_subscriptions:
        since_ms, about = row.without_consumer_since_at_ms, f"subscription {row.subscription}"
        what = f"nobody has read {row.subscription} of topic {row.name} "
        what += "for long" if since_ms is None else f"since {rfc3339(since_ms)}"
        kept = f"{several(row.messages, 'message')} ({row.bytes:,} bytes)"
        why = f"It keeps {kept}, the first of {rfc3339(row.next_message_at_ms)}. If it is used no more, delete it."
        action = Action("store.admin.subscriptions.delete_subscription", row.name, row.subscription)
        yield Finding("subscription-forgotten", "info", about, what, why, action)


_RULES = (
    _gate,
    _old_format,
    *holder_findings.RULES,
    quiet_findings.quiet,
    livelock.livelocks,
    _disk,
    _readers,
    server_findings.server_findings,
    _versions,
    _clocks,
    _retention_held,
    _forgotten,
    _no_consumer,
)
