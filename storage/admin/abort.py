"""Aborting a transaction as an operator: what it would do, and doing it.

The dry run is the same code up to the commit, so its numbers are those of the real one.
"""

from __future__ import annotations

from typing import Any

from storage import audit_trail
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.process.identity import ProcessIdentity
from storage.reports import backlog
from storage.reports.backlog import Backlog
from storage.reports.timeline import holder, producers_of
from storage.reports.transactions import DELETED
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.table import report
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import departure, errors, session as sessions
from storage.topic.producers.admission import ProducerRegistry
from storage.topic.producers.session import ProducerSession
from storage.txn import buffer, record as records
from storage.txn.coordinator import Ended
from storage.txn.errors import owner_at_work, too_late_to_fence
from storage.txn.fence import Fence
from storage.txn.liveness import owner_state
from storage.txn.record import TransactionRecord
from storage.values.names import short_topic_name
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

Counts = dict[str, Backlog]
"""The backlog of each subscription of a topic, by name."""


def abort_transaction(
    engine: Engine,
    txn: int,
    reason: str | None,
    if_version: int | None,
    force: bool,
    dry_run: bool,
    fence: bool,
) -> dict[str, Any]:
    """Abort, or say what aborting would do.

    Args:
        fence: end the sessions of the producers of its messages as well.
    """
    audit_trail.check_reason(reason)
    connection = engine.connection
    by = connection.owner

    def change(batch: WriteBatch) -> dict[str, Any]:
        record = records.get(batch, txn)
        summary = _summary(batch, record)
        is_open, refusal = record.state is TransactionState.OPEN, None
        if fence and not is_open:
            raise too_late_to_fence(record)
        if is_open and not force and record.owner_fields != by.fields():
            refusal = owner_at_work(batch, record, summary["ownerState"])
        if refusal is not None and not dry_run:
            raise refusal
        parts = engine.coordinator.parts(batch, txn) if is_open else []
        touched = {part["topicId"] for part in parts if "topicId" in part}
        before = {each: counts(batch, each) for each in touched}
        producers = _producers(batch, txn, touched) if fence else []
        if if_version is not None and record.state is not TransactionState.COMMITTED:
            engine.coordinator.check_version(batch, txn, if_version)
        ended = engine.coordinator.abort(batch, txn, by, AbortReason.ASKED, reason)
        fenced = [_fence(engine, batch, by, *each) for each in producers]
        effects = _effects(batch, ended, before) + fenced
        result = {
            **summary, "already": ended.already, "dryRun": dry_run, "fence": fence,
            "refused": refusal.message if refusal is not None else None, "effects": effects,
        }  # fmt: skip
        if not ended.already:
            audit_trail.record(batch, by, "transactions abort", str(record.id), reason, result)
        return result

    return connection.write(change, naming=txn, dry_run=dry_run)


def _summary(batch: WriteBatch, record: TransactionRecord) -> dict[str, Any]:
    """The transaction as it was looked at."""
    return {
        "txnId": str(record.id), "stateBefore": record.state.value, "version": record.version,
        "owner": str(record.owner), "ownerState": owner_state(batch, batch.lock_file, record),
        "idleMs": record.idle_ms(batch.now_ns), "deadlineInMs": record.left_ms(batch.now_ns),
    }  # fmt: skip


def counts(view: ReadView, topic_id: int) -> Counts:
    """The backlogs of a topic's subscriptions."""
    head = state.load(view, topic_id)
    return {
        each.name: backlog.count(view, head, each, cursors.load(view, each.subscription_id))
        for each in subscriptions.every(view, topic_id)
    }


def _producers(view: ReadView, txn: int, touched: set[int]) -> list[tuple[Topic, ProducerSession]]:
    """The sessions by which the transaction's messages were sent, as far as they are still connected."""
    found = []
    for topic in topics.every(view):
        part = buffer.part_of(view, txn, topic.topic_id) if topic.topic_id in touched else None
        names = producers_of(view, topic.topic_id, part) if part is not None else []
        there = list(sessions.every(view, topic.topic_id)) if names else []
        found += [(topic, each) for each in there if each.name in names and not each.is_waiting]
    return found


def _fence(
    engine: Engine, batch: WriteBatch, by: ProcessIdentity, topic: Topic, session: ProducerSession
) -> dict[str, Any]:
    """End a producer's session. An owner's takes the epoch with it: who waits for the topic is next."""
    before, aborted = state.load(batch, topic.topic_id).epoch, list[int]()
    if session.is_owner:
        opened = OpenTopic(batch, topic.topic_id, topic.name)
        registry = ProducerRegistry(opened, Fence(engine.coordinator, by))
        _, aborted = registry.fence(by, "fence", spares_waiting=True)
    else:
        departure.leave(batch, session)
    after = state.load(batch, topic.topic_id).epoch
    return {
        "kind": "producer", "topic": topic.full_name, "name": topic.name, "producerName": session.name,
        "accessMode": session.mode.value, "owner": str(session.owner),
        "topicEpochBefore": errors.shown_epoch(before), "topicEpochAfter": errors.shown_epoch(after),
        "transactionsAborted": [str(TxnID(each)) for each in aborted],
    }  # fmt: skip


def _effects(batch: WriteBatch, ended: Ended, before: dict[int, Counts]) -> list[dict[str, Any]]:
    """What it changed, part by part, with names; counted when all of it is done."""
    after = {topic_id: counts(batch, topic_id) for topic_id in before}
    names = {each.topic_id: each.full_name for each in topics.every(batch)}
    found = []
    for effect in ended.effects:
        if effect["kind"] == "table":
            table_id = effect.pop("tableId")
            found.append({**effect, "table": report.table_names(batch).get(table_id, "(deleted)")})
            continue
        topic_id = effect.pop("topicId")
        effect["topic"] = names.get(topic_id, DELETED)
        effect["name"] = short_topic_name(effect["topic"])
        if effect["kind"] == "subscription":
            mine = effect["subscription"]
            effect["messages"] = before[topic_id][mine].pending - after[topic_id][mine].pending
        else:
            _add_released(batch, topic_id, effect, before[topic_id], after[topic_id])
        found.append(effect)
    return found


def _add_released(
    batch: WriteBatch, topic_id: int, effect: dict[str, Any], before: Counts, after: Counts
) -> None:
    """What a topic's subscriptions may be handed now, and who blocks next."""
    effect["maxReadPositionAfter"] = str(state.load(batch, topic_id).max_read_position)
    effect["unblocks"] = unblocked(before, after)
    following = buffer.first_open(batch, topic_id)
    effect["blockedNext"] = _following(batch, records.get(batch, following[0])) if following else None


def unblocked(before: Counts, after: Counts) -> dict[str, Any]:
    """By subscription what can be handed out, and what is blocked, before and after."""
    return {
        name: {
            "visibleBefore": before[name].visible, "visibleAfter": now.visible,
            "blockedBefore": before[name].blocked, "blockedAfter": now.blocked,
        }
        for name, now in after.items()
    }  # fmt: skip


def _following(batch: WriteBatch, record: TransactionRecord) -> dict[str, Any]:
    """Who blocks next, for the last line of the dry run."""
    row = holder(batch, batch.lock_file, record)
    return {name: row[name] for name in ("txnId", "owner", "ownerState", "idleMs", "labels")}
