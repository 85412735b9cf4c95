"""A transaction explained: facts, the evidence that its owner lives, what it touched, whom it blocks, and advice.

Everything is of one view, but for the evidence of the process table, which is of the moment.
"""

from __future__ import annotations

import os
from typing import Any

from storage.disk.schema import PART_SUBSCRIPTION, PART_TOPIC
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.process.identity import started
from storage.reports import advice, backlog, timeline, transactions
from storage.reports.advice import Situation
from storage.reports.chain import Chain
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics, state as topic_head
from storage.txn import record as records
from storage.txn.coordinator import touches
from storage.txn.record import TransactionRecord
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


def run(engine: Engine, txn: int) -> dict[str, Any]:
    """All that `transactions show` tells of a transaction, with `evidence`, `blocks`, `pending` and `advice`.

    Raises:
        TransactionNotFound
    """
    with engine.connection.view() as view:
        record = records.get(view, txn)
        is_open = record.state is TransactionState.OPEN
        return explained(view, engine, record, held_by(view, engine, record) if is_open else [])


def explained(
    view: ReadView, engine: Engine, record: TransactionRecord, blocks: list[dict[str, Any]]
) -> dict[str, Any]:
    """The same in a view, for one of which it is known what it holds back."""
    row = transactions.described(view, engine, record)
    is_open = record.state is TransactionState.OPEN
    pending = _pending(view, record) if is_open else []
    return {
        **row,
        "evidence": evidence(view, record, row["ownerState"]) if is_open else None,
        "blocks": blocks, "pending": pending,
        **advice.judge(_situation(row, blocks, pending, ReapPolicy(view.superblock.reap_policy))),
    }  # fmt: skip


def held_by(view: ReadView, engine: Engine, record: TransactionRecord) -> list[dict[str, Any]]:
    """What an open transaction holds back, topic by topic: its row in the chain, and who comes first there.

    `freesWhereSkipped` counts what subscriptions with on-open skip hold behind it, which its end alone frees.
    """
    locks, wanted = engine.lock_file, touches(view, record.txn_id, PART_TOPIC)
    found = []
    for topic in topics.every(view) if wanted else ():
        if topic.topic_id not in wanted:
            continue
        head = topic_head.load(view, topic.topic_id)
        chain = Chain(view, topic.topic_id, head)
        (mine,) = timeline.transactions(view, locks, topic, head, chain, only=record.txn_id)
        found.append(held(mine, str(TxnID(chain.links[0].txn))))
    return found


def held(mine: dict[str, Any], first: str) -> dict[str, Any]:
    """What a transaction holds back on one topic: of its row in the chain what concerns others."""
    return {**{name: mine[name] for name in _HELD}, "first": first}


_HELD = (
    "topic", "name", "place", "messages", "holdsFrom", "holdsThrough", "frees", "unblocks",
    "freesWhereSkipped", "ifEnded", "blockedNext",
)  # fmt: skip


def _pending(view: ReadView, record: TransactionRecord) -> list[dict[str, Any]]:
    """Messages that go to nobody on a subscription until the transaction ends."""
    wanted = set(touches(view, record.txn_id, PART_SUBSCRIPTION))
    found = []
    for topic in topics.every(view) if wanted else ():
        head = topic_head.load(view, topic.topic_id)
        for each in subscriptions.every(view, topic.topic_id):
            if each.subscription_id in wanted:
                cursor = cursors.load(view, each.subscription_id)
                count = backlog.pending_in(view, head, each, cursor, record.txn_id)
                found.append({
                    "topic": topic.full_name, "name": topic.name, "subscription": each.name, "messages": count,
                })  # fmt: skip
    return found


def evidence(view: ReadView, record: TransactionRecord, state: str) -> dict[str, Any]:
    """What is proven of the process that began a transaction, and what the process table shows beside it.

    `lockHeld` is the proof, null for a detached one; a pid is evidence for people only: `processRunning` is null
    where it says nothing, on another machine or boot, and `pidReused` that another process has that number now.
    """
    owner = record.owner
    same_host, same_boot = owner.host == os.uname().nodename, owner.boot_id == view.clock.boot_id()
    # A start time of 0 is that of a system which does not tell.
    tells = same_host and same_boot and owner.started > 0
    start = started(owner.pid) if tells else 0
    return {
        "state": state,
        "lockHeld": None if state == "detached" else state in ("alive", "stopped"),
        "sameHost": same_host, "sameBoot": same_boot,
        "processRunning": start == owner.started if tells else None,
        "pidReused": 0 < start != owner.started if tells else None,
    }  # fmt: skip


def _situation(
    row: dict[str, Any], blocks: list[dict[str, Any]], pending: list[dict[str, Any]], policy: ReapPolicy
) -> Situation:
    frees = sum(each["ifEnded"]["frees"] + each["freesWhereSkipped"] for each in blocks)
    waiting = [each for each in blocks if each["place"] > 1 and each["frees"]]
    keys = any(part["kind"] == "table" and part["keys"] for part in row["parts"])
    is_reaped = policy is ReapPolicy.ALL or (policy is ReapPolicy.OVERDUE and bool(row["overdue"]))
    return Situation(
        row["txnId"], row["state"], row["ownerState"], row["ownerDetails"]["pid"], bool(row["overdue"]), is_reaped,
        row["idleMs"] or 0, frees, waiting[0]["first"] if waiting else None,
        bool(frees or pending or keys),
    )  # fmt: skip
