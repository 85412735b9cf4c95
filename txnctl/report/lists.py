"""Subscriptions, producers, tables, and the last changes: one table each."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from txnctl.fields.producer import EPOCH, MODE, PRODUCER, alive, last_publish
from txnctl.fields.subscription import backlog_columns
from txnctl.output.column import Column
from txnctl.output.human import count, duration, plural
from txnctl.output.screen import VERDICTS
from txnctl.output.shell import line
from txnctl.report import tables, transactions
from txnctl.report.markup import Markup, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.audit_trail import AuditRecord
    from storage.reports.facts import TableFacts
    from storage.reports.producers import ProducerRow
    from storage.reports.stats import SubscriptionStats
    from storage.reports.store_report import StoreReport


class _Listed(NamedTuple):
    """A subscription of a topic on the page."""

    topic: str
    subscription: str
    stats: SubscriptionStats


_SUBSCRIPTIONS: tuple[Column[_Listed], ...] = (
    Column("SUBSCRIPTION", "id", lambda row: row.subscription),
    Column("TOPIC", "id", lambda row: row.topic),
    Column("VERDICT", "text", lambda row: row.stats.verdict),
    Column("TYPE", "text", lambda row: row.stats.type),
    Column("ISOLATION LEVEL", "text", lambda row: row.stats.subscription_isolation_level),
    Column("ON OPEN", "text", lambda row: row.stats.on_open),
    Column("MARK-DELETE", "position", lambda row: row.stats.mark_delete_position),
    *backlog_columns(lambda row: row.stats),
)
_TABLES: tuple[Column[TableFacts], ...] = (
    Column("TABLE", "id", lambda row: row.table),
    Column("KEYS", "integer", lambda row: row.keys),
    Column("INTENTS", "integer", lambda row: row.intents),
    Column("VERSIONS", "integer", lambda row: row.versions),
    Column("HELD BY", "text", lambda row: [holder.holder.txn_id for holder in row.held_by]),
)
_CHANGES: tuple[Column[AuditRecord], ...] = (
    Column("NO", "integer", lambda record: record.number),
    Column("CHANGED", "time", lambda record: record.changed_at_ms),
    Column("ACTION", "text", lambda record: record.action),
    Column("TARGET", "text", lambda record: record.target),
    Column("REASON", "text", lambda record: record.reason),
    Column("BY", "text", lambda record: record.by),
)


def subscriptions(report: StoreReport) -> Markup | None:
    """List the subscriptions of the topics on the page, blocked subscriptions first; None without one."""
    rows = [
        _Listed(model.name, name, stats)
        for model in report.timelines
        for name, stats in model.subscriptions.items()
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: (VERDICTS.index(row.stats.verdict), -row.stats.blocked, -row.stats.visible))
    listed = tables.table("Subscriptions", rows, _SUBSCRIPTIONS, more=line("subscriptions list"))
    verdicts = Counter(row.stats.verdict for row in rows)
    counted = ", ".join([f"{count(number)} {verdict}" for verdict, number in verdicts.items()])
    return tables.folded("subscriptions", "Subscriptions", f"{count(len(rows))}: {counted}", listed)


def producers(report: StoreReport) -> Markup | None:
    """List the connected and the waiting producers; None without one."""
    rows = report.producer_sessions
    if not rows:
        return None
    columns: tuple[Column[ProducerRow], ...] = (
        PRODUCER,
        Column("TOPIC", "id", lambda row: row.name),
        MODE,
        EPOCH,
        Column("OWNER", "text", lambda row: row.owner),
        Column("ALIVE", "text", alive),
        last_publish(report.overview.facts.as_of_at_ms),
        Column("WAITS", "text", lambda row: f"number {row.place}" if row.place else None),
    )
    listed = tables.table("Producers", rows, columns, more=line("producers list"))
    return tables.folded("producers", "Producers", count(len(rows)), listed)


def key_values(report: StoreReport) -> Markup | None:
    """List the tables of the store, tables with held keys first; None without one."""
    facts = report.overview.facts
    if not facts.tables:
        return None
    rows = sorted(facts.tables, key=lambda row: (-row.intents, -row.keys))
    window = duration(facts.store.info.table_retention_ms)
    retention_note = tag(
        "p", f"Superseded versions are kept for {window}, the window in which the past can be read."
    )
    listed = tables.table("Tables", rows, _TABLES, more=line("tables list"))
    keys = tables.keys_elsewhere(line("tables intents", "TABLE"))
    held = sum(row.intents for row in rows)
    gist = count(len(rows)) + (f", {plural(held, 'key')} held" if held else "")
    return tables.folded("tables", "Tables", gist, listed, keys, retention_note)


def happened(report: StoreReport) -> Markup | None:
    """List the last changes by operators, and the ended transactions; None without either."""
    changes = (
        tables.table("Last changes", report.audit, _CHANGES, more=line("audit list"), layout=tables.TITLED)
        if report.audit
        else None
    )
    parts = [changes, transactions.ended(report.ended)]
    if not any(parts):
        return None
    gist = f"{plural(len(report.audit), 'change')}, {plural(len(report.ended), 'ended transaction')}"
    return tables.folded("happened", "What happened last", gist, *parts)
