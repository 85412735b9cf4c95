"""Check that every record belongs to an object that exists: a topic or a subscription, with a name. Invariant 6.

A name that damage has hidden would else be an object that never was: its records are still there.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import U64, decoded, key1
from storage.disk.schema import (
    COMPACTIONS,
    CONSUMERS,
    CURSORS,
    HEADS,
    MARK_BOUNDS,
    MARKS,
    OPEN_FIRST,
    PRODUCERS,
    SESSION_INDEX,
    SUBSCRIPTIONS,
    Database,
)
from storage.disk.view import ReadView
from storage.subscription import catalogue as subscriptions, delayed, subscription_purge
from storage.subscription.cursor import Cursor
from storage.topic import catalogue as topics, descent, retention
from storage.verify.problem import Report

_OF_TOPICS = (HEADS, PRODUCERS, SESSION_INDEX, SUBSCRIPTIONS, OPEN_FIRST, COMPACTIONS, MARKS)
_PURGED = topics.PURGED
"""Of a deleted topic, these are removed in steps."""
_OF_SUBSCRIPTIONS = (CURSORS, CONSUMERS, MARK_BOUNDS)
_SUPERBLOCK = 0
_TABLES = 1 << 63
"""States of tables, in the same database as states of topics; `tables.py` checks them."""


def check_ownerless(view: ReadView, report: Report) -> None:
    """Report the records of topics and subscriptions that have no name."""
    topic_ids = {topic.topic_id for topic in topics.every(view)}
    purging = set(topics.purged_ids(view))
    subscription_ids = {
        subscription.subscription_id
        for topic_id in topic_ids
        for subscription in subscriptions.every(view, topic_id)
    }
    for database in _OF_TOPICS:
        _check(view, database, topic_ids | {_SUPERBLOCK}, "topic", report)
    for database in _PURGED:
        _check(view, database, topic_ids | purging, "topic", report)
    for topic_id in retention.topics_with_own(view):
        if topic_id not in topic_ids:
            report(6, f"topic {topic_id}", "has limits, and no name")
    for subscription_id in subscription_purge.ids(view):
        if subscription_id in subscription_ids:
            report(6, f"subscription {subscription_id}", "has a name, and counts as deleted")
    for topic_id in descent.topics_noted(view):
        if topic_id not in topic_ids:
            report(6, f"topic {topic_id}", "has a descent, and no name")
    for database in _OF_SUBSCRIPTIONS:
        _check(view, database, subscription_ids, "subscription", report)
    removed, forgotten = set(subscription_purge.ids(view)), set(subscription_purge.delayed_ids(view))
    own = {delayed.stored_under(known, cursor) for known, cursor in _cursors(view, subscription_ids)}
    for delayed_id in sorted(own & forgotten):
        report(6, f"subscription {delayed_id}", "has delayed messages that count as forgotten")
    for database in subscription_purge.RECORDS:
        is_delayed = database in subscription_purge.DELAYED_RECORDS
        known = own | forgotten | removed if is_delayed else subscription_ids | removed
        _check(view, database, known, "subscription", report)


def _cursors(view: ReadView, subscription_ids: set[int]) -> Iterator[tuple[int, Cursor]]:
    """Yield the cursors that are there; a missing one is a problem of its own."""
    for subscription_id in subscription_ids:
        payload = view.get(CURSORS, key1(subscription_id))
        if payload is not None:
            yield subscription_id, decoded(CURSORS, key1(subscription_id), payload, Cursor.decode)


def _check(view: ReadView, database: Database, known: set[int], kind: str, report: Report) -> None:
    for object_id in _ids(view, database):
        if object_id not in known:
            report(6, f"{kind} {object_id}", f"has records in {database.name}, and no name")


def _ids(view: ReadView, database: Database) -> Iterator[int]:
    """The numbers of objects with records in a database, each found by one look-up."""
    object_id = 0
    while (record := view.first(database, b"", key1(object_id))) is not None:
        object_id = U64.unpack(record[0][:8])[0]
        if object_id >= _TABLES:
            return
        yield object_id
        object_id += 1
