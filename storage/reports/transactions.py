"""Transactions for people: list, show, wait."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from storage.disk.schema import PART_TABLE, PART_TOPIC, TXN_DEADLINES, TXNS
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.errors import WaitTimeout
from storage.limits import DEATH_CHECK_S
from storage.process.clock import nanoseconds
from storage.table import conflict, report
from storage.topic import catalogue as topics
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches
from storage.txn.liveness import GONE, owner_state
from storage.txn.record import TransactionRecord
from storage.values.names import short_topic_name
from storage.values.timestamps import both
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

DELETED = "(deleted)"
"""What stands for the name of a topic that is no more."""


def rows(
    engine: Engine, *, ended: bool, topic: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """Open transactions, oldest first; or those that ended, newest first."""
    with engine.connection.view() as view:
        names = topic_names(view)
        wanted = topics.get(view, topic).topic_id if topic is not None else None
        found = _ended_ones(view) if ended else iter(open_ones(view))
        chosen = (txn for txn in found if wanted is None or wanted in touches(view, txn, PART_TOPIC))
        return [row(view, engine, records.get(view, txn), names) for txn in islice(chosen, limit)]


def open_ones(view: ReadView) -> list[int]:
    """Open transactions, the oldest first: an attached one may have been given its number long after it began."""
    found = [int.from_bytes(key[8:], "big") for key in view.keys(TXN_DEADLINES)]
    return sorted(found, key=lambda txn: (records.get(view, txn).begun_ms, txn))


def _ended_ones(view: ReadView) -> Iterator[int]:
    """Committed and aborted transactions whose outcome is still kept, the one begun last first."""
    for key, _ in view.scan_back(TXNS, b"", b"\xff" * 9):
        txn = int.from_bytes(key, "big")
        if records.state_of(view, txn) is not TransactionState.OPEN:
            yield txn


def history(
    engine: Engine, *, topic: str | None, reason: AbortReason | None, since_ms: int | None, limit: int | None
) -> list[dict[str, Any]]:
    """Transactions that have ended, the one that ended last first.

    Args:
        topic: only those that produced to it.
        reason: only those aborted for it.
        since_ms: only those that ended then or later.
        limit: at most so many, the newest.
    """
    with engine.connection.view() as view:
        names = topic_names(view)
        wanted = topics.get(view, topic).topic_id if topic is not None else None
        found = [
            record
            for record in (records.get(view, txn) for txn in _ended_ones(view))
            if (reason is None or record.reason is reason)
            and (since_ms is None or (record.ended_ms or 0) >= since_ms)
            and (wanted is None or wanted in touches(view, record.txn_id, PART_TOPIC))
        ]
        found.sort(key=lambda record: record.ended_timestamp or 0, reverse=True)
        return [row(view, engine, record, names) for record in found[:limit]]


def last_ended(view: ReadView, engine: Engine, limit: int) -> list[dict[str, Any]]:
    """Of the transactions that have ended those begun last, in a view."""
    names = topic_names(view)
    return [row(view, engine, records.get(view, txn), names) for txn in islice(_ended_ones(view), limit)]


def topic_names(view: ReadView) -> dict[int, str]:
    """Full names of all topics by id."""
    return {each.topic_id: each.full_name for each in topics.every(view)}


def row(view: ReadView, engine: Engine, record: TransactionRecord, names: dict[int, str]) -> dict[str, Any]:
    """A transaction in a list."""
    now_ms, is_open = view.clock.wall_ms(), record.state is TransactionState.OPEN
    locks = engine.lock_file
    state = owner_state(view, locks, record) if is_open else None
    return {
        **both("asOf", now_ms),
        "txnId": str(record.id), "state": record.state.value, "version": record.version,
        "labels": record.labels, "owner": str(record.owner),
        "ownerState": state, "orphaned": state in GONE if is_open else None,
        "attached": bool(record.lease),
        **both("begin", record.begun_ms), "ageMs": max(0, (record.ended_ms or now_ms) - record.begun_ms),
        "idleMs": record.idle_ms(view.now_ns) if is_open else None, "timeoutMs": record.timeout_ms,
        "deadlineInMs": record.left_ms(view.now_ns) if is_open else None,
        "overdue": record.is_overdue(view.now_ns) if is_open else None,
        "topics": [names.get(each, DELETED) for each in touches(view, record.txn_id, PART_TOPIC)],
        "tables": _table_names(view, record), "isolation": record.isolation, "priority": record.priority,
        "messages": record.messages, "acknowledgements": record.acknowledgements,
        **both("ended", record.ended_ms), "reason": record.reason_code, "reasonText": record.reason_text,
        "endedBy": str(record.ended_by) if record.ended_by else None,
    }  # fmt: skip


def _table_names(view: ReadView, record: TransactionRecord) -> list[str]:
    """The tables that a transaction wrote."""
    written = {table_id for table_id, _, _ in record.written}
    written.update(touches(view, record.txn_id, PART_TABLE))
    if not written:
        return []
    names = report.table_names(view)
    return sorted(names.get(each, f"(deleted, {each})") for each in written)


def show(engine: Engine, txn: int) -> dict[str, Any]:
    """All that is known of a transaction."""
    with engine.connection.view() as view:
        return described(view, engine, records.get(view, txn))


def described(view: ReadView, engine: Engine, record: TransactionRecord) -> dict[str, Any]:
    """All that is known of a transaction, in a view."""
    names = topic_names(view)
    parts = engine.coordinator.parts(view, record.txn_id)
    for part in parts:
        if "topicId" in part:
            part["topic"] = names.get(part.pop("topicId"), DELETED)
            part["name"] = short_topic_name(part["topic"])
    _add_tables(view, record, parts)
    return {
        **row(view, engine, record, names),
        "check": record.check, "timestamp": str(record.timestamp), "conflict": conflict.described(record),
        "ownerDetails": record.owner.row(), **both("lastUsed", record.used_ms),
        "parts": parts,
    }  # fmt: skip


def _add_tables(view: ReadView, record: TransactionRecord, parts: list[dict[str, Any]]) -> None:
    """Names of tables, and the keys that a commit wrote without intents."""
    names = report.table_names(view)
    by_id = {part["tableId"]: part for part in parts if part["kind"] == "table"}
    for table_id, count, keys in record.written:
        part = by_id.get(table_id)
        if part is None:
            part = {"kind": "table", "tableId": table_id, "keys": 0, "keyList": [], "finalized": True}
            by_id[table_id] = part
            parts.append(part)
        part["keys"] += count
        part["keyList"] = [*part["keyList"], *keys][:100]
    for part in by_id.values():
        part["table"] = names.get(part.pop("tableId"), "(deleted)")


def wait(engine: Engine, txn: int, timeout: float | None) -> dict[str, Any]:
    """Wait until a transaction has ended; if it is overdue or its owner dies, end it, as any writer does."""
    connection = engine.connection
    clock = connection.clock
    until_ns = clock.boot_ns() + nanoseconds(timeout, "a timeout")
    while True:
        with connection.view() as view:
            seen = view.commit
            record = records.get(view, txn)
            if record.state is not TransactionState.OPEN:
                return described(view, engine, record)
            deadline_ns = reaper.next_deadline_ns(view)
            left_ns = deadline_ns - view.now_ns if deadline_ns is not None else 0
            is_due = reaper.is_due(view, connection.environment.lock_file)
        if is_due and not connection.read_only:
            # Every write ends a few on its way. This one names nobody: what is waited for is among them.
            connection.write(lambda _: None)
        now_ns = clock.boot_ns()
        if now_ns >= until_ns:
            raise WaitTimeout(
                f"transaction {TxnID(txn)} did not end within {timeout:g} s",
                hint=f"`txnctl transactions show {TxnID(txn)}` tells who holds it.",
                transaction=str(TxnID(txn)),
            )
        pause_ns = int(DEATH_CHECK_S * 1e9)
        connection.wait_for_commit(
            seen, min(until_ns, now_ns + (min(left_ns, pause_ns) if left_ns > 0 else pause_ns))
        )
