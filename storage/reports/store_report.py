"""The data of the report page, from one view: health, positions, holders, and recent changes.

The report puts together the rows of `overview.py`, `timeline.py`, `explain.py` and their neighbours; nothing is judged
a second time, and no blocked message is read. A report is handed on: no message is read, and keys are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.audit_trail import AuditRecord
from storage.disk.schema import PART_SUBSCRIPTION
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.json_form import Flat
from storage.reports import (
    audit,
    conflict_counts,
    explain,
    overview,
    producers,
    store_info,
    timeline,
    transactions,
)
from storage.reports.conflict_counts import ConflictCount
from storage.reports.explain import BlockedTopic, Explanation
from storage.reports.overview import Overview
from storage.reports.producers import ProducerRow
from storage.reports.store_info import DatabaseRow
from storage.reports.timeline import Timeline
from storage.reports.transactions import TablePartRow, TransactionRow
from storage.subscription import catalogue as subscriptions
from storage.table import conflict
from storage.table.conflict import ConflictRow
from storage.topic import catalogue as topics
from storage.txn import record as records
from storage.txn.coordinator import touches
from storage.values.arguments import check_many
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID

EXPLAINED = 100
"""Open transactions explained one by one: those that free the most, the oldest first among equals."""

HAPPENED = 20
"""Changes, ended transactions and conflicts that are listed, the newest."""


class StoreReport(NamedTuple):
    """The report.

    `timelines`, `open_transactions` and `producer_sessions` are of the chosen topics, or of all; the rest is of the
    whole store. At most `EXPLAINED` of `open_count` transactions are listed.
    """

    overview: Flat[Overview]
    timelines: list[Timeline]
    open_count: int
    open_transactions: list[Explanation]
    producer_sessions: list[ProducerRow]
    space: list[DatabaseRow]
    audit: list[AuditRecord]
    ended: list[TransactionRow]
    conflicts: list[ConflictRow]
    conflict_counts: list[ConflictCount]


def store_report(engine: Engine, names: Sequence[str] | None = None) -> StoreReport:
    """The report of some topics, or of all.

    Raises:
        TopicNotFound, InvalidName
    """
    check_many("topics", names)
    present = overview.present_facts(engine.connection)
    with engine.connection.view() as view:
        locks = engine.locks
        every = timeline.models(view, locks, drawn=True)
        full_names = None if names is None else {topics.get(view, name).full_name for name in names}
        chosen = [
            topic for topic in topics.every(view) if full_names is None or topic.full_name in full_names
        ]
        models = [model for model in every if full_names is None or model.topic in full_names]
        open_txns = transactions.open_txns(view)
        if names is not None:
            open_txns = _concerning(view, open_txns, chosen, models)
        return StoreReport(
            overview=overview.overview_in(view, engine, every, present),
            timelines=models,
            open_count=len(open_txns), open_transactions=_explained(view, engine, open_txns, every),
            producer_sessions=[row for topic in chosen for row in producers.rows_of(view, locks, topic)],
            space=store_info.databases_in(view), audit=audit.records_in(view, HAPPENED),
            ended=transactions.last_ended(view, engine, HAPPENED),
            conflicts=[row._replace(key=None) for row in conflict.list_conflicts(view, HAPPENED)],
            conflict_counts=conflict_counts.count_conflicts(view),
        )  # fmt: skip


def _concerning(
    view: ReadView, open_txns: list[int], chosen: list[topics.Topic], models: list[Timeline]
) -> list[int]:
    """The transactions with messages on these topics, or acknowledgements on their subscriptions."""
    with_messages = {blocking.holder.txn_id for model in models for blocking in model.open_transactions}
    subscription_ids = {
        subscription.subscription_id
        for topic in chosen
        for subscription in subscriptions.every(view, topic.topic_id)
    }
    return [
        txn
        for txn in open_txns
        if TxnID(txn) in with_messages or subscription_ids.intersection(touches(view, txn, PART_SUBSCRIPTION))
    ]


def _explained(
    view: ReadView, engine: Engine, open_txns: list[int], models: list[Timeline]
) -> list[Explanation]:
    """The open transactions one by one, with the topics that each blocks by the timelines."""
    blocks: dict[TxnID, list[BlockedTopic]] = {}
    for model in models:
        chain = model.open_transactions
        for blocking in chain:
            blocked = explain.blocked_topic(blocking, chain[0].holder.txn_id)
            blocks.setdefault(blocking.holder.txn_id, []).append(blocked)

    def weight(txn: int) -> tuple[int, int]:
        return -sum(blocked.frees for blocked in blocks.get(TxnID(txn), [])), txn

    rows = []
    for txn in sorted(open_txns, key=weight)[:EXPLAINED]:
        row = explain.explanation_of(view, engine, records.get(view, txn), blocks.get(TxnID(txn), []))
        parts = [
            part._replace(key_list=[]) if isinstance(part, TablePartRow) else part
            for part in row.details.parts
        ]
        rows.append(row._replace(details=row.details._replace(parts=parts)))
    return rows
