"""Explain a transaction: facts, the evidence that its process lives, the parts, the blocked messages, and advice.

All facts come from one view, except the evidence of the process table, which the kernel gives at the time of the call.
"""

from __future__ import annotations

import os

from storage.disk.schema import PART_SUBSCRIPTION, PART_TOPIC
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.json_form import Flat
from storage.process.identity import started
from storage.reports import advice, backlog, timeline, transactions
from storage.reports.advice import Advice, Situation
from storage.reports.blocking_chain import Chain
from storage.reports.quiet_consumers import QuietConsumer, quiet_consumers
from storage.reports.quiet_findings import too_quiet
from storage.reports.timeline import Blocking, IfEnded
from storage.reports.transactions import TablePartRow, TransactionDetails
from storage.reports.ways_out import WayOut, ways_out_of
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics, state as topic_states
from storage.txn import record as records
from storage.txn.coordinator import touches
from storage.txn.owner_state import living_process
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


class Evidence(NamedTuple):
    """The state of the process that began a transaction, and the facts that prove the state.

    `lock_held` is the proof, None for a detached transaction. The pid is evidence for people only: `process_running`
    is None on a different machine or boot, and `pid_reused` tells that the kernel gave the pid to a later process.
    """

    state: str
    lock_held: bool | None
    same_host: bool
    same_boot: bool
    process_running: bool | None
    pid_reused: bool | None


class BlockedTopic(NamedTuple):
    """The messages that a transaction blocks on one topic; `first` is the first open transaction of the topic."""

    topic: str
    name: str
    place: int
    messages: int
    holds_from: Position
    holds_through: Position
    frees: int
    unblocks: dict[str, int]
    frees_where_skipped: int
    if_ended: IfEnded
    blocked_next: TxnID | None
    first: TxnID


class PendingOn(NamedTuple):
    """Messages of a subscription acknowledged in the transaction: delivered to no consumer until its end."""

    topic: str
    name: str
    subscription: str
    messages: int


class Explanation(NamedTuple):
    """The explanation of a transaction.

    Attributes:
        quiet_consumers: of the subscriptions that wait for the transaction: these will not go on with its end alone.
    """

    details: Flat[TransactionDetails]
    evidence: Evidence | None
    blocks: list[BlockedTopic]
    pending: list[PendingOn]
    quiet_consumers: list[QuietConsumer]
    advice: Flat[Advice]
    choices: list[WayOut]


def explain_transaction(engine: Engine, txn: int) -> Explanation:
    """Explain one transaction.

    Raises:
        TransactionNotFound
    """
    with engine.connection.view() as view:
        record = records.get(view, txn)
        is_open = record.state is TransactionState.OPEN
        return explanation_of(view, engine, record, _blocked_topics(view, engine, record) if is_open else [])


def explanation_of(
    view: ReadView, engine: Engine, record: TransactionRecord, blocks: list[BlockedTopic]
) -> Explanation:
    """Explain a transaction in a view, given the topics that it blocks."""
    details = transactions.details_of(view, engine, record)
    is_open = record.state is TransactionState.OPEN
    pending = _pending(view, record) if is_open else []
    policy = ReapPolicy(view.superblock.reap_policy)
    return Explanation(
        details, evidence(view, record, details.row.owner_state or "") if is_open else None, blocks, pending,
        _quiet(view, engine, blocks), advice.judge(_situation(details, blocks, pending, policy)),
        ways_out_of(details.row, policy.name.lower()),
    )  # fmt: skip


def _quiet(view: ReadView, engine: Engine, blocks: list[BlockedTopic]) -> list[QuietConsumer]:
    """The quiet consumers of the subscriptions that wait for a transaction."""
    waiting = {
        (block.topic, name) for block in blocks for name, messages in block.unblocks.items() if messages
    }
    named = [topics.get(view, topic) for topic in dict.fromkeys(topic for topic, _ in waiting)]
    rows = quiet_consumers(view, engine.connection.environment, named)
    return [row for row in too_quiet(rows) if (row.topic, row.subscription) in waiting]


def _blocked_topics(view: ReadView, engine: Engine, record: TransactionRecord) -> list[BlockedTopic]:
    """Every topic with messages of an open transaction."""
    touched, blocked = touches(view, record.txn_id, PART_TOPIC), []
    for topic in topics.every(view) if touched else ():
        if topic.topic_id not in touched:
            continue
        chain = Chain(view, topic.topic_id, topic_states.load(view, topic.topic_id))
        (blocking,) = timeline.blocking_in(view, engine.locks, topic, chain, only=record.txn_id)
        blocked.append(blocked_topic(blocking, TxnID(chain.links[0].txn)))
    return blocked


def blocked_topic(blocking: Blocking, first: TxnID) -> BlockedTopic:
    """Return a row of a topic's timeline as a row of the transaction."""
    return BlockedTopic(
        topic=blocking.topic, name=blocking.name, place=blocking.place, messages=blocking.written.messages,
        holds_from=blocking.holds_from, holds_through=blocking.holds_through, frees=blocking.frees,
        unblocks=blocking.unblocks, frees_where_skipped=blocking.frees_where_skipped,
        if_ended=blocking.if_ended, blocked_next=blocking.blocked_next, first=first,
    )  # fmt: skip


def _pending(view: ReadView, record: TransactionRecord) -> list[PendingOn]:
    touched = set(touches(view, record.txn_id, PART_SUBSCRIPTION))
    pending = []
    for topic in topics.every(view) if touched else ():
        topic_state = topic_states.load(view, topic.topic_id)
        for subscription in subscriptions.every(view, topic.topic_id):
            if subscription.subscription_id in touched:
                cursor = cursors.load(view, subscription.subscription_id)
                count = backlog.pending_in(view, topic_state, subscription, cursor, record.txn_id)
                pending.append(PendingOn(topic.full_name, topic.name, subscription.name, count))
    return pending


def evidence(view: ReadView, record: TransactionRecord, state: str) -> Evidence:
    """The evidence for a process state."""
    owner = record.owner
    same_host, same_boot = owner.host == os.uname().nodename, owner.boot_id == view.clock.boot_id()
    # A start time of 0 comes from a system without /proc.
    is_known = same_host and same_boot and owner.started > 0
    start = started(owner.pid) if is_known else 0
    return Evidence(
        state=state, lock_held=None if state == "detached" else state in ("alive", "stopped"),
        same_host=same_host, same_boot=same_boot,
        process_running=start == owner.started if is_known else None,
        pid_reused=0 < start != owner.started if is_known else None,
    )  # fmt: skip


def _situation(
    details: TransactionDetails, blocks: list[BlockedTopic], pending: list[PendingOn], policy: ReapPolicy
) -> Situation:
    row = details.row
    frees = sum(block.if_ended.frees + block.frees_where_skipped for block in blocks)
    # A transaction that frees nothing itself may stand before one that does.
    leads = [block for block in blocks if block.blocked_next is not None and block.if_ended.stays_blocked]
    waiting = [block for block in blocks if block.place > 1 and (block.frees or block in leads)]
    keys = any(isinstance(part, TablePartRow) and part.keys for part in details.parts)
    return Situation(
        id=str(row.txn_id), state=row.state.value, owner_state=row.owner_state,
        last_user_state=row.last_user_state, living=living_process(row),
        overdue=bool(row.overdue), reap_policy=policy.name.lower(), idle_ms=row.idle_ms or 0, frees=frees,
        before=str(waiting[0].first) if waiting else None, holds=bool(frees or pending or keys or leads),
    )  # fmt: skip
