"""Statistics of topics and subscriptions. Each report comes from one view and says as of when.

Names are Apache Pulsar's wherever it has one, so that jq scripts written for `pulsar-admin topics stats` and
`stats-internal` carry over. Unknown is None, never 0.
"""

from __future__ import annotations

from typing import Any

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.process.locks import LockFile
from storage.reports import backlog as backlogs, chain, producers, skipped as passed_over
from storage.subscription import catalogue as subscriptions, cursor as cursors, delivery as deliveries
from storage.subscription.cursor import Cursor
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, log, state as topic_head
from storage.topic.catalogue import Topic
from storage.topic.state import TopicState
from storage.txn import aborted, buffer, record as records
from storage.txn.liveness import owner_state
from storage.values.position import Position
from storage.values.timestamps import both
from storage.values.txn_id import TxnID


def topic_rows(connection: Connection) -> list[dict[str, Any]]:
    """Every topic: positions and counts."""
    with connection.view() as view:
        return [
            {
                "topic": each.full_name,
                "name": each.name,
                **_counts(view, each, topic_head.load(view, each.topic_id)),
            }
            for each in topics.every(view)
        ]


def topic(connection: Connection, name: str) -> dict[str, Any]:
    """One topic with its subscriptions, open transactions and what blocks it."""
    with connection.view() as view:
        found = topics.get(view, name)
        head = topic_head.load(view, found.topic_id)
        locks = connection.environment.lock_file
        rows = {
            each.name: subscription_row(view, locks, found, head, each)
            for each in subscriptions.every(view, found.topic_id)
        }
        return {
            "topic": found.full_name, "name": found.name,
            **both("asOf", connection.clock.wall_ms()),
            **both("created", found.created_ms),
            **_counts(view, found, head),
            **readable(view, found, head),
            "ledgerEntriesMax": head.ledger_entries_max, "ledgerBytesMax": head.ledger_bytes_max,
            "ledgerAgeMaxMs": head.ledger_age_max_ms,
            "blockedBy": _blocker(view, locks, found),
            **producers.publishers(view, locks, found, head),
            "subscriptions": rows,
        }  # fmt: skip


def _counts(view: ReadView, found: Topic, head: TopicState) -> dict[str, Any]:
    first = log.first_entry(view, found.topic_id)
    return {
        "msgInCounter": head.messages, "bytesInCounter": head.bytes,
        "msgCount": head.messages - head.messages_trimmed, "markerCount": head.markers,
        "storageSize": head.bytes - head.bytes_trimmed,
        "firstPosition": str(first.position) if first else None,
        "maxReadPosition": str(head.max_read_position),
        "lastConfirmedEntry": str(head.last_confirmed_position),
        "topicEpoch": head.epoch if head.epoch >= 0 else None,
        "ongoingTxnCount": head.open_txns, "abortedTxnCount": head.aborted_txns,
        "uncommittedMessages": head.uncommitted, "abortedMessages": head.aborted_messages,
        **both("lastPublish", head.last_publish_ms or None),
    }  # fmt: skip


def readable(view: ReadView, found: Topic, head: TopicState) -> dict[str, Any]:
    """What a READ_COMMITTED reader from the beginning sees, and what waits behind maxReadPosition."""
    topic_id, last = found.topic_id, head.last_confirmed
    below = log.messages_through(view, topic_id, head, head.max_read)
    skipped = aborted.messages_between(view, topic_id, head, Position(0, -1), head.max_read)
    beyond = head.messages - below - head.uncommitted
    beyond -= aborted.messages_between(view, topic_id, head, head.max_read, last)
    oldest = chain.oldest_blocked_ms(view, topic_id, head) if beyond else None
    return {
        "readableMessages": below - head.messages_trimmed - skipped,
        "skippedMessages": skipped,
        "blockedMessages": beyond,
        **both("oldestBlocked", oldest),
    }


def _blocker(view: ReadView, locks: LockFile, found: Topic) -> dict[str, Any] | None:
    """The open transaction that holds maxReadPosition."""
    first = buffer.first_open(view, found.topic_id)
    if first is None:
        return None
    record = records.get(view, first[0])
    return {
        "txnId": str(record.id), "firstPosition": str(first[1]), **both("begin", record.begun_ms),
        "ageMs": max(0, view.clock.wall_ms() - record.begun_ms), "owner": str(record.owner),
        "ownerState": owner_state(view, locks, record),
    }  # fmt: skip


def subscription(connection: Connection, name: str, subscription_name: str) -> dict[str, Any]:
    """One subscription of a topic."""
    with connection.view() as view:
        found = topics.get(view, name)
        head = topic_head.load(view, found.topic_id)
        mine = subscriptions.get(view, found, subscription_name)
        locks = connection.environment.lock_file
        return {
            **_named(found, mine, connection.clock.wall_ms()),
            **subscription_row(view, locks, found, head, mine),
            "maxReadPosition": str(head.max_read_position),
            "lastConfirmedEntry": str(head.last_confirmed_position),
            "blockedBy": _blocker(view, locks, found),
        }


def subscription_rows(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """The subscriptions of one topic, or of all."""
    rows: list[dict[str, Any]] = []
    locks = connection.environment.lock_file
    with connection.view() as view:
        for found in [topics.get(view, name)] if name is not None else list(topics.every(view)):
            head = topic_head.load(view, found.topic_id)
            rows += [
                {
                    **_named(found, mine, connection.clock.wall_ms()),
                    **subscription_row(view, locks, found, head, mine),
                }
                for mine in subscriptions.every(view, found.topic_id)
            ]
    return rows


def _named(found: Topic, mine: Subscription, now_ms: int) -> dict[str, Any]:
    return {"topic": found.full_name, "subscription": mine.name, **both("asOf", now_ms)}


def subscription_row(
    view: ReadView, locks: LockFile, found: Topic, head: TopicState, mine: Subscription
) -> dict[str, Any]:
    """Level, cursor, backlog by class, verdict and consumers of a subscription."""
    cursor = cursors.load(view, mine.subscription_id)
    backlog = backlogs.count(view, head, mine, cursor)
    attached = subscriptions.consumers(view, mine.subscription_id)
    living = [each for each in attached if locks.leases.is_held(each.lease)]
    _, acknowledged_bytes = log.counts_through(view, found.topic_id, head, cursor.mark_delete)
    return {
        "type": mine.type.value, "subscriptionIsolationLevel": mine.level.value, "onOpen": mine.on_open.value,
        "markDeletePosition": str(Position(*cursor.mark_delete)), "readPosition": str(Position(*cursor.read)),
        "msgBacklog": backlog.visible + backlog.blocked + backlog.uncommitted,
        "visible": backlog.visible, "blocked": backlog.blocked, "uncommitted": backlog.uncommitted,
        "pending": backlog.pending, "pendingIn": _pending_in(view, head, mine, cursor) if backlog.pending else [],
        "unackedMessages": backlog.in_flight,
        "acknowledgedAhead": backlog.acknowledged, "abortedAhead": backlog.aborted,
        "backlogSize": head.bytes - acknowledged_bytes,
        "msgOutCounter": cursor.delivered, "msgRedeliverCounter": cursor.redelivered,
        "deadLetterTopic": mine.dead_letter_topic, "maxRedeliverCount": mine.max_redeliver_count,
        "heldBy": passed_over.held_by(view, mine, cursor),
        "verdict": backlog.verdict(len(living)),
        **both("created", mine.created_ms),
        "consumers": [
            _consumer(view, locks, each, _held_by(view, mine, each, len(attached), backlog.in_flight))
            for each in attached
        ],
    }  # fmt: skip


def _pending_in(view: ReadView, head: TopicState, mine: Subscription, cursor: Cursor) -> list[dict[str, Any]]:
    found = backlogs.pending_by_transaction(view, head, mine, cursor)
    return [{"txnId": str(TxnID(txn)), "messages": messages} for txn, messages in found.items() if messages]


def _held_by(
    view: ReadView, mine: Subscription, each: subscriptions.AttachedConsumer, attached: int, in_flight: int
) -> int:
    """Messages in flight at a consumer; those of one that is alone are known."""
    if attached == 1 or not in_flight:
        return in_flight
    held = deliveries.every(view, mine.subscription_id)
    return sum(found.of(each.consumer_id).bit_count() for found in held)


def _consumer(
    view: ReadView, locks: LockFile, each: subscriptions.AttachedConsumer, unacked: int
) -> dict[str, Any]:
    owner = each.owner
    state = locks.leases.state_of(each.lease, owner, view.clock.boot_id())
    return {
        "consumerName": each.name, "owner": str(owner), "pid": owner.pid, "state": state,
        "unackedMessages": unacked, **both("connectedSince", each.connected_ms)
    }  # fmt: skip


def internal(connection: Connection, name: str) -> dict[str, Any]:
    """Ledgers, cursors and the aborted set's segments of a topic."""
    with connection.view() as view:
        found = topics.get(view, name)
        head = topic_head.load(view, found.topic_id)
        return {
            "topic": found.full_name, "name": found.name, "topicId": found.topic_id,
            **both("asOf", connection.clock.wall_ms()),
            "entriesAddedCounter": head.entries, "numberOfEntries": head.entries,
            "totalSize": head.bytes - head.bytes_trimmed,
            "currentLedgerEntries": head.next_entry, "currentLedgerSize": head.bytes - head.ledger_bytes_before,
            "lastConfirmedEntry": str(head.last_confirmed_position), "maxReadPosition": str(head.max_read_position),
            "ledgers": [ledger_row(each) for each in log.ledgers(view, found.topic_id, head)],
            "cursors": {
                each.name: _cursor(view, each.subscription_id) for each in subscriptions.every(view, found.topic_id)
            },
            "openTransactions": [
                {"txnId": str(TxnID(txn)), "firstPosition": str(first)}
                for txn, first in buffer.open_transactions(view, found.topic_id)
            ],
            "abortedSegments": aborted.segments(view, found.topic_id),
        }  # fmt: skip


def ledger_row(each: log.LedgerInfo) -> dict[str, Any]:
    """A ledger: what it holds, and when it was open."""
    return {
        "ledgerId": each.ledger_id, "entries": each.entries, "messages": each.messages, "size": each.bytes,
        **both("opened", each.opened_ms), **both("closed", each.closed_ms),
    }  # fmt: skip


def _range(first: Position, last: int, messages: bytes) -> str:
    """An acknowledged range as text: `1:60`, `1:60..1:75`, or `1:60 (part)` of a batch."""
    if messages:
        return f"{first} (part)"
    return f"{first}" if last == first.entry_id else f"{first}..{Position(first.ledger_id, last)}"


def _cursor(view: ReadView, subscription_id: int) -> dict[str, Any]:
    cursor: Cursor = cursors.load(view, subscription_id)
    ahead = [_range(*each) for each in cursors.ranges(view, subscription_id)]
    return {
        "markDeletePosition": str(Position(*cursor.mark_delete)), "readPosition": str(Position(*cursor.read)),
        "individuallyDeletedMessages": ahead, "generation": cursor.generation, "releasedEntries": cursor.released,
        "pendingCumulative": str(TxnID(cursor.pending_cumulative[0])) if cursor.pending_cumulative else None,
    }  # fmt: skip
