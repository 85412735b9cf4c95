"""How `txnctl status` is laid out: problems, then a line for each part of the store, then topics and tables."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from txnctl.fields.overview import verdict_text
from txnctl.fields.owner import process_state, users
from txnctl.fields.server import readers_text, server_facts, writing_text
from txnctl.output.column import Column
from txnctl.output.human import duration, size
from txnctl.output.screen import VERDICTS, heading, next_command, section, store_title
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.facts import Facts, TableFacts, TopicFacts, TransactionFacts
    from storage.reports.finding import Finding
    from storage.reports.overview import Overview
    from txnctl.cli.context import Context

R = TypeVar("R")

VERDICT_STYLES = {
    "ok": ("green",),
    "warning": ("bold", "yellow"),
    "critical": ("bold", "red"),
    "info": ("cyan",),
}

FINDINGS_SHOWN = 6
TOPICS_SHOWN = 12
TABLES_SHOWN = 6
"""So that all fits one screen; those with something to tell come first."""


class _TopicLine(NamedTuple):
    """A topic, and the producers that wait for their turn."""

    topic: TopicFacts
    waiting: int


_TOPICS: tuple[Column[_TopicLine], ...] = (
    Column("TOPIC", "id", lambda line: line.topic.name),
    Column("MESSAGES", "integer", lambda line: line.topic.msg_count),
    Column("BLOCKED", "integer", lambda line: line.topic.blocked_messages),
    Column("BY", "id", lambda line: line.topic.blocked_by),
    Column("UNCOMMITTED", "integer", lambda line: line.topic.uncommitted_messages, rank=1),
    Column("SUBSCRIPTIONS", "integer", lambda line: line.topic.subscriptions, rank=3),
    Column("LAG", "integer", lambda line: line.topic.visible),
    Column("WAITING", "integer", lambda line: line.waiting, rank=2),
)
_TABLES: tuple[Column[TableFacts], ...] = (
    Column("TABLE", "id", lambda table: table.table),
    Column("KEYS", "integer", lambda table: table.keys),
    Column("VERSIONS", "integer", lambda table: table.versions, rank=1),
    Column("INTENTS", "integer", lambda table: table.intents),
    Column("HELD BY", "list", lambda table: [held.holder.txn_id for held in table.held_by]),
)


def lines(context: Context, overview: Overview) -> Iterator[str]:
    """The screen."""
    yield overview_headline(context, overview)
    yield from _findings(context, overview.findings)
    yield ""
    yield from rest(context, overview.facts)


def overview_headline(context: Context, overview: Overview) -> str:
    """The first line of the screen."""
    facts = overview.facts
    return headline(context, facts.store.info.path, facts.as_of_at_ms, overview.verdict, overview.findings)


def rest(context: Context, facts: Facts) -> Iterator[str]:
    """The screen below the problems."""
    for name, fact in fact_texts(facts):
        yield f"  {name:<13}  {fact}"
    waiting = {queue.topic: queue.waiting for queue in facts.producers}
    topics = [_TopicLine(topic, waiting.get(topic.topic, 0)) for topic in facts.topics]
    topics.sort(key=_interest, reverse=True)
    yield from _section(context, topics, _TOPICS, TOPICS_SHOWN, line("topics list"))
    tables = sorted(facts.tables, key=lambda table: table.intents, reverse=True)
    yield from _section(context, tables, _TABLES, TABLES_SHOWN, line("tables list"))


def headline(context: Context, path: str, as_of_ms: int, verdict: str, findings: Sequence[Finding]) -> str:
    """Store, verdict and time."""
    text = verdict_text(verdict, findings)
    line = heading(context, store_title(path), text, as_of_ms)
    before, _, after = line.rpartition(text)
    return f"{before}{context.style(text, *VERDICT_STYLES[verdict])}{after}"


def _findings(context: Context, findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield from problem_lines(context, findings[:FINDINGS_SHOWN])
    if len(findings) > FINDINGS_SHOWN:
        yield f"    and {len(findings) - FINDINGS_SHOWN} more"
    yield ""
    yield next_command(context, line("doctor"))


def problem_lines(context: Context, findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each finding, unbroken."""
    for finding in findings:
        mark = "i" if finding.severity == "info" else "!"
        yield f"  {context.style(mark, *VERDICT_STYLES[finding.severity])} {finding.what}"


def fact_texts(facts: Facts) -> Iterator[tuple[str, str]]:
    """Name and text of each part of the store: space, writer, readers, transactions, subscriptions."""
    store = facts.store.info
    if store.server is None:
        in_use, free, file = size(store.in_use_bytes), size(store.free_bytes), size(store.data_bytes)
        left = size(facts.store.disk.disk_free_bytes)
        yield "space", f"{in_use} in use and {free} free in a file of {file}; the disk has {left} left"
    else:
        yield from server_facts(store, store.server, facts.as_of_at_ms)
    yield "writing", writing_text(facts)
    yield "readers", readers_text(facts.readers)
    yield "transactions", _transactions(facts.transactions)
    verdicts = [subscription.verdict for subscription in facts.subscriptions]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
    yield "subscriptions", ", ".join(counts) or "none"


def _transactions(transactions: TransactionFacts) -> str:
    oldest = transactions.oldest
    if oldest is None:
        return "none open"
    late = f"; {len(transactions.late)} late" if transactions.late else ""
    return (
        f"{transactions.open} open{late}; the oldest {oldest.txn_id} for {duration(oldest.age_ms)}, "
        f"{users(oldest)} ({process_state(oldest)})"
    )


def _interest(line: _TopicLine) -> tuple[int, ...]:
    topic = line.topic
    return topic.blocked_messages, line.waiting, topic.uncommitted_messages, topic.visible, topic.msg_count


def _section(
    context: Context, rows: Sequence[R], columns: Sequence[Column[R]], limit: int, command: str
) -> Iterator[str]:
    """A table of the first rows, and the command for the rest."""
    if not rows:
        return
    yield ""
    yield from section(context, context.table_of(rows[:limit], columns, indent=2))
    if len(rows) > limit:
        yield f"  and {len(rows) - limit:,} more: {command}"
