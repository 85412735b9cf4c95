"""The message bound: a transaction that uses tables consumes only messages that were readable before the begin.

Tables are read as of the transaction's timestamp, and a message may tell of a later change. So after a table operation
a transaction receives only messages committed or plainly published before its begin. The record of the transaction
keeps the newest timestamp among acknowledged messages: if that is later than the transaction's own, the first table
operation is refused.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.errors import NotDeliverable
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.entry import MESSAGES, Entry
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.position import Position
from storage.values.txn_state import TransactionState

RANGE_ENTRIES_MAX = 5000
"""Entries of a cumulative acknowledgement that one store transaction examines."""

NEVER = (1 << 63) - 1


def readable_since(view: ReadView, entry: Entry) -> int:
    """The timestamp at which the messages of an entry were published plainly, or committed; NEVER if neither."""
    if not entry.txn:
        return entry.timestamp
    record = records.find(view, entry.txn)
    if record is None:
        # The outcome is forgotten, long after the commit: only the compacted view has the message still.
        return entry.timestamp
    if record.state is not TransactionState.COMMITTED or record.ended_timestamp is None:
        return NEVER
    return record.ended_timestamp


def note_consumed(
    view: ReadView, subscription: Subscription, record: TransactionRecord, positions: list[Position]
) -> None:
    """Note in an open record that the transaction acknowledges messages of these entries.

    Raises:
        NotDeliverable: the transaction has used a table, and a message was not readable before the begin.
    """
    for at in positions:
        entry = log.read(view, subscription.topic_id, at)
        if entry is not None and entry.kind == MESSAGES:
            _note_entry(view, subscription, record, entry)


def note_consumed_through(
    view: ReadView, subscription: Subscription, record: TransactionRecord, after: Position, through: Position
) -> None:
    """Note in an open record that the transaction acknowledges all messages after one position up to a second.

    If there are more entries than RANGE_ENTRIES_MAX, a transaction that has used a table is refused, and a transaction
    that has not is taken to have consumed the newest message of all, so that no table can be used any more.

    Raises:
        as `note_consumed`
    """
    seen = 0
    while after < through:
        page = log.page(view, subscription.topic_id, after, through)
        if not page:
            return
        for entry in page:
            at = entry.position
            if at > after and entry.kind == MESSAGES:
                _note_entry(view, subscription, record, entry)
            after = max(after, at)
        seen += len(page)
        if seen > RANGE_ENTRIES_MAX and after < through:
            if record.uses_tables:
                raise _too_many(subscription, record)
            record.consumed = NEVER
            return


def _too_many(subscription: Subscription, record: TransactionRecord) -> NotDeliverable:
    return NotDeliverable(
        f"transaction {record.id} has used tables, and more than {RANGE_ENTRIES_MAX:,} entries of {subscription.name} "
        "are to be acknowledged at once: whether all of them were there when it began is not known",
        hint="Acknowledge them in several steps, each with a later message.",
        transaction=str(record.id),
    )


def _note_entry(view: ReadView, subscription: Subscription, record: TransactionRecord, entry: Entry) -> None:
    since = readable_since(view, entry)
    if since == NEVER and subscription.level is IsolationLevel.READ_COMMITTED:
        return  # of an aborted transaction: dispatch passed the entry over, and delivered nothing of it
    if record.uses_tables and since > record.timestamp:
        raise NotDeliverable(
            f"message {entry.position} of {subscription.name} was not there to be read "
            f"when transaction {record.id} began, which has used tables",
            hint="Begin the transaction after receiving.",
            transaction=str(record.id),
        )
    # An uncommitted message was readable at READ_UNCOMMITTED when it was published.
    record.consumed = max(record.consumed, entry.timestamp if since == NEVER else since)
