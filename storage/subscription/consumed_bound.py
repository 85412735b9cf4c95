"""What a transaction that uses tables may consume: what was there to be read before it began.

Its reads of tables are those of its timestamp, and a message may tell of something later. So once it has used a table
it is handed only messages committed or plainly published before it began; and what it acknowledges is remembered with
it, so that having consumed a newer one, its first table operation is refused.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.errors import NotDeliverable
from storage.subscription.catalogue import Subscription
from storage.subscription.isolation import IsolationLevel
from storage.topic import log
from storage.topic.entry import MESSAGES, Entry
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.position import Position
from storage.values.txn_state import TransactionState

RANGE_ENTRIES_MAX = 5000
"""Entries of a cumulative acknowledgement that are looked at in one store transaction."""

NEVER = (1 << 63) - 1


def readable_since(view: ReadView, entry: Entry) -> int:
    """The timestamp at which the messages of an entry were published plainly, or committed; NEVER if they are not."""
    if not entry.txn:
        return entry.timestamp
    record = records.get(view, entry.txn)
    if record.state is not TransactionState.COMMITTED or record.ended_timestamp is None:
        return NEVER
    return record.ended_timestamp


def note(
    view: ReadView, subscription: Subscription, record: TransactionRecord, positions: list[tuple[int, int]]
) -> None:
    """Messages are acknowledged in a transaction. The caller saves its record.

    Raises:
        NotDeliverable: it has used a table, and one of them was not there to be read before it began.
    """
    for at in positions:
        entry = log.read(view, subscription.topic_id, at)
        if entry is not None and entry.kind == MESSAGES:
            _note_entry(view, subscription, record, entry)


def note_through(
    view: ReadView,
    subscription: Subscription,
    record: TransactionRecord,
    after: tuple[int, int],
    through: tuple[int, int],
) -> None:
    """All messages after one position and up to another are acknowledged in a transaction; see `note`.

    Where there are more than can be looked at, a transaction that has used a table is refused; another one is taken to
    have consumed what is newer than all, and cannot use one any more.
    """
    seen = 0
    while after < through:
        page = log.page(view, subscription.topic_id, after, through)
        if not page:
            return
        for entry in page:
            at = (entry.ledger_id, entry.entry_id)
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
        return  # of an aborted transaction: it is passed over, and was handed to nobody
    if record.uses_tables and since > record.timestamp:
        raise NotDeliverable(
            f"message {Position(entry.ledger_id, entry.entry_id)} of {subscription.name} was not there to be read "
            f"when transaction {record.id} began, which has used tables",
            hint="Begin the transaction after receiving.",
            transaction=str(record.id),
        )
    # What is not committed yet was there to be read uncommitted when it was published.
    record.consumed = max(record.consumed, entry.timestamp if since == NEVER else since)
