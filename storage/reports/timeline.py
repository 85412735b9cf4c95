"""The model of a topic's positions: ledgers, open transactions, maxReadPosition, cursors, and who waits for whom.

`transactions blocked`, `explain` and `timeline`, and the report draw from this one model. It is plain data under the
names of the JSON, from one view; nothing that is blocked is read for it (`storage/reports/chain.py`).
"""

from __future__ import annotations

from typing import Any

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.process.locks import LockFile
from storage.reports import stats
from storage.reports.chain import Chain, Link, oldest_blocked_ms
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics, log, state as topic_head
from storage.topic.catalogue import Topic
from storage.topic.state import TopicState
from storage.txn import record as records, runs
from storage.txn.buffer import TopicPart
from storage.txn.liveness import GONE, owner_state
from storage.txn.record import TransactionRecord
from storage.values.position import Position
from storage.values.timestamps import both
from storage.values.txn_id import TxnID

RUNS_SHOWN = 100
"""Stretches of neighbouring entries that are listed of one transaction."""


def topic(connection: Connection, name: str) -> dict[str, Any]:
    """The model of one topic.

    Raises:
        TopicNotFound
    """
    with connection.view() as view:
        return model(view, connection.environment.lock_file, topics.get(view, name))


def every(connection: Connection) -> list[dict[str, Any]]:
    """The models of all topics, from one view."""
    with connection.view() as view:
        return every_in(view, connection.environment.lock_file)


def every_in(view: ReadView, locks: LockFile) -> list[dict[str, Any]]:
    """The models of all topics, in a view."""
    return [model(view, locks, each) for each in topics.every(view)]


def chains(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """The open transactions of one topic, or of all, in the order in which they hold it; from one view.

    Each row carries what its topic has blocked, and since when: `blockedMessages`, `oldestBlockedAt` and `-Ms`.

    Raises:
        TopicNotFound
    """
    rows = []
    with connection.view() as view:
        locks, now_ms = connection.environment.lock_file, view.clock.wall_ms()
        for found in [topics.get(view, name)] if name is not None else list(topics.every(view)):
            head = topic_head.load(view, found.topic_id)
            chain = Chain(view, found.topic_id, head)
            shared = {**both("asOf", now_ms), **_blocked(view, found, head, chain)}
            rows += [{**each, **shared} for each in transactions(view, locks, found, head, chain)]
    return rows


def _blocked(view: ReadView, found: Topic, head: TopicState, chain: Chain) -> dict[str, Any]:
    """How many committed messages wait behind open transactions, and since when the first of them does."""
    blocked = sum(link.frees for link in chain.links)
    oldest = oldest_blocked_ms(view, found.topic_id, head) if blocked else None
    return {"blockedMessages": blocked, **both("oldestBlocked", oldest)}


def model(view: ReadView, locks: LockFile, found: Topic) -> dict[str, Any]:
    """One topic as a view shows it.

    `ledgers`, `openTransactions` and `subscriptions` are in order; `blockedMessages` is what the open transactions
    free in all. Ledgers carry `entriesBefore`, so that a position is a place on an axis of entries.
    """
    head = topic_head.load(view, found.topic_id)
    chain = Chain(view, found.topic_id, head)
    first = log.first_entry(view, found.topic_id)
    return {
        "topic": found.full_name, "name": found.name, **both("asOf", view.clock.wall_ms()),
        "firstPosition": str(first.position) if first else None,
        "maxReadPosition": str(head.max_read_position), "lastConfirmedEntry": str(head.last_confirmed_position),
        "topicEpoch": head.epoch if head.epoch >= 0 else None,
        "msgCount": head.messages - head.messages_trimmed, "markerCount": head.markers,
        "ongoingTxnCount": head.open_txns, "abortedTxnCount": head.aborted_txns,
        "uncommittedMessages": head.uncommitted, "abortedMessages": head.aborted_messages,
        **stats.readable(view, found, head),
        "ledgers": _ledgers(view, found, head),
        "openTransactions": transactions(view, locks, found, head, chain),
        "subscriptions": {
            each.name: stats.subscription_row(view, locks, found, head, each)
            for each in subscriptions.every(view, found.topic_id)
        },
    }  # fmt: skip


def _ledgers(view: ReadView, found: Topic, head: TopicState) -> list[dict[str, Any]]:
    rows, before = [], 0
    for each in log.ledgers(view, found.topic_id, head):
        rows.append({**stats.ledger_row(each), "entriesBefore": before})
        before += each.entries
    return rows


def transactions(
    view: ReadView, locks: LockFile, found: Topic, head: TopicState, chain: Chain, only: int | None = None
) -> list[dict[str, Any]]:
    """The open transactions of a topic, the one that holds maxReadPosition first; who they are, and what they hold.

    Args:
        only: the row of this one alone.
    """
    there = list(subscriptions.every(view, found.topic_id))
    skipping = [each.name for each in there if each.skips]
    waiting = {each.name: chain.unblocks(each, cursors.load(view, each.subscription_id)) for each in there}
    total = sum(link.frees for link in chain.links)
    rows = []
    for index, link in enumerate(chain.links):
        if only not in (None, link.txn):
            continue
        following = chain.links[index + 1 : index + 2]
        rows.append({
            **holder(view, locks, records.get(view, link.txn)),
            "topic": found.full_name, "name": found.name, "place": index + 1,
            **_entries(view, found, link),
            "holdsFrom": str(link.first), "holdsThrough": str(link.through), "frees": link.frees,
            "unblocks": {name: counts[index] for name, counts in waiting.items()},
            "freesWhereSkipped": sum(waiting[name][index] for name in skipping),
            "ifEnded": _if_ended(view, head, chain, index, total),
            "blockedNext": str(TxnID(following[0].txn)) if following else None,
        })  # fmt: skip
    return rows


def _entries(view: ReadView, found: Topic, link: Link) -> dict[str, Any]:
    """What it wrote to the topic, and where that is."""
    part = link.part
    where = runs.ranges(view, found.topic_id, link.txn, RUNS_SHOWN)
    return {
        "messages": part.messages, "bytes": part.bytes,
        "firstPosition": str(link.first), "lastPosition": str(Position(*part.last)),
        "positions": [f"{a}" if a == b else f"{a}..{b}" for a, b in where],
        "producers": producers_of(view, found.topic_id, part),
    }  # fmt: skip


def producers_of(view: ReadView, topic_id: int, part: TopicPart) -> list[str]:
    """The producers of a transaction's messages on a topic: those whose sequence ids it keeps, and of its two ends."""
    names = {name for name, _, _ in part.sequences}
    for at in (part.first, part.last):
        entry = log.read(view, topic_id, at)
        assert entry is not None, "an open transaction's messages are not trimmed"
        names.add(entry.producer_name)
    return sorted(names)


def _if_ended(view: ReadView, head: TopicState, chain: Chain, index: int, total: int) -> dict[str, Any]:
    """Where maxReadPosition goes, and how many messages that frees, if this one ended now and no other did.

    If another comes before it, nothing moves. If it is the only one, its own marker becomes the end of the topic.
    """
    now, links = head.max_read_position, chain.links
    if index:
        after, frees = now, 0
    elif len(links) > 1:
        after, frees = links[0].through, links[0].frees
    else:
        after, frees = log.next_position(head, view.clock.wall_ms()), links[0].frees
    return {
        "maxReadPositionBefore": str(now), "maxReadPositionAfter": str(after), "frees": frees,
        "staysBlocked": total - frees,
    }  # fmt: skip


def holder(view: ReadView, locks: LockFile, record: TransactionRecord) -> dict[str, Any]:
    """Who has an open transaction, whether that process lives, and since when."""
    state, now_ms = owner_state(view, locks, record), view.clock.wall_ms()
    return {
        "txnId": str(record.id), "version": record.version, "labels": record.labels,
        "owner": str(record.owner), "ownerState": state, "orphaned": state in GONE,
        **both("begin", record.begun_ms), "ageMs": max(0, now_ms - record.begun_ms),
        "idleMs": record.idle_ms(view.now_ns),
        "deadlineInMs": record.left_ms(view.now_ns), "overdue": record.is_overdue(view.now_ns),
    }  # fmt: skip
