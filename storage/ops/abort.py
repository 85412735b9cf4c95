"""Aborting a transaction as an operator: what it would do, and doing it.

The dry run is the same code up to the commit, so its numbers are those of the real one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage import audit_trail
from storage.lease import LockFile
from storage.ledger import topic as topics, topic_head
from storage.names import short_topic_name
from storage.ops import backlog, tables
from storage.ops.owner_state import owner_state
from storage.ops.transactions import DELETED
from storage.subscription import cursor as cursors, subscription as subscriptions
from storage.txn import buffer, record as records
from storage.txn.coordinator import check_owner_idle
from storage.txn_state import AbortReason, TransactionState
from storage.view import ReadView, WriteBatch

if TYPE_CHECKING:
    from storage.store import Store


def run(
    store: Store, txn: int, reason: str | None, if_version: int | None, force: bool, dry_run: bool
) -> dict[str, Any]:
    """Abort, or say what aborting would do."""
    connection = store.connection
    locks, by = connection.environment.lock_file, connection.owner

    def change(batch: WriteBatch) -> dict[str, Any]:
        record = records.get(batch, txn)
        state = owner_state(batch, locks, record)
        if record.state is TransactionState.OPEN and not force and record.owner_fields != by.fields():
            check_owner_idle(batch, record, state in ("alive", "stopped"))
        summary = {
            "txnId": str(record.id), "stateBefore": record.state.value, "version": record.version,
            "owner": str(record.owner), "ownerState": state,
            "idleMs": max(0, (batch.now_ns - record.used_ns) // 1_000_000),
            "deadlineInMs": (record.deadline_ns - batch.now_ns) // 1_000_000,
        }  # fmt: skip
        touched = [part["topicId"] for part in store.coordinator.parts(batch, txn) if part["kind"] == "topic"]
        before = {each: _visible(batch, each) for each in touched if record.state is TransactionState.OPEN}
        ended = store.coordinator.abort(batch, txn, by, AbortReason.ASKED, reason, if_version)
        effects = [_effect(batch, locks, effect, before) for effect in ended.effects]
        result = {**summary, "already": ended.already, "dryRun": dry_run, "effects": effects}
        if not ended.already:
            audit_trail.record(batch, by, "transactions abort", str(record.id), reason, result)
        return result

    return connection.write(change, naming=txn, dry_run=dry_run)


def _visible(view: ReadView, topic_id: int) -> dict[str, tuple[int, int]]:
    """Visible and blocked messages of each subscription."""
    head = topic_head.load(view, topic_id)
    found = {}
    for each in subscriptions.every(view, topic_id):
        count = backlog.count(view, head, each, cursors.load(view, each.subscription_id))
        found[each.name] = (count.visible, count.blocked)
    return found


def _effect(
    view: ReadView, locks: LockFile, effect: dict[str, Any], before: dict[int, dict[str, tuple[int, int]]]
) -> dict[str, Any]:
    """One part's effect with names, and for a topic what it unblocks and who blocks next."""
    if effect["kind"] == "table":
        table_id = effect.pop("tableId")
        effect["table"] = tables.table_names(view).get(table_id, "(deleted)")
        return effect
    topic_id = effect.pop("topicId")
    names = {each.topic_id: each.full_name for each in topics.every(view)}
    effect["topic"] = names.get(topic_id, DELETED)
    effect["name"] = short_topic_name(effect["topic"])
    if effect["kind"] != "topic":
        return effect
    after = _visible(view, topic_id)
    effect["unblocks"] = {
        name: {
            "visibleBefore": before[topic_id][name][0], "visibleAfter": visible,
            "blockedBefore": before[topic_id][name][1], "blockedAfter": blocked,
        }
        for name, (visible, blocked) in after.items()
    }  # fmt: skip
    following = buffer.first_open(view, topic_id)
    effect["blockedNext"] = _blocker(view, locks, following[0]) if following else None
    return effect


def _blocker(view: ReadView, locks: LockFile, txn: int) -> dict[str, Any]:
    """Who blocks next, for the last line of the dry run."""
    record = records.get(view, txn)
    return {
        "txnId": str(record.id), "owner": str(record.owner), "ownerState": owner_state(view, locks, record),
        "idleMs": max(0, (view.now_ns - record.used_ns) // 1_000_000), "labels": record.labels,
    }  # fmt: skip
