"""Records of acknowledgements pending one by one, by subscription and by transaction (PENDING, TXN_PENDING).

A record is of one entry, or of a span of entries with few messages each (`span.py`). A message is pending in at most
one transaction, and messages of such entries are added to spans only; earlier releases wrote a record for each entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1, key2, key3, key_through, missing
from storage.disk.schema import PENDING, TXN_PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import message_set, span
from storage.values.position import Position


class PendingRecord:
    """Messages of an entry, or of a span, that are pending in one transaction.

    Attributes:
        at: the entry, or the first entry of the span.
        stored: the messages as stored; of a single entry empty for all.
    """

    __slots__ = ("at", "is_span", "stored", "txn")

    def __init__(self, at: Position, is_span: bool, txn: int, stored: bytes) -> None:
        self.at = at
        self.is_span = is_span
        self.txn = txn
        self.stored = stored

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> PendingRecord:
        """Decode a record of PENDING."""
        return cls(*span.unpack(key[8:24]), int.from_bytes(key[24:], "big"), bytes(payload))

    def messages(self, count: int) -> int:
        """The messages; of a single entry, which has `count` messages."""
        return span.decode(self.stored) if self.is_span else message_set.decode(self.stored, count)

    @property
    def entries(self) -> int:
        """The number of entries."""
        return span.present(self.messages(0)).bit_count() if self.is_span else 1

    def positions(self) -> list[Position]:
        """The entries, in order."""
        return span.entries(self.at, self.messages(0)) if self.is_span else [self.at]


def of_subscription(view: ReadView, subscription_id: int) -> Iterator[PendingRecord]:
    """Yield the records of a subscription: of entries, then of spans, each in position order."""
    for key, payload in view.scan(PENDING, key1(subscription_id)):
        yield PendingRecord.decode(key, payload)


def first_position(view: ReadView, subscription_id: int) -> Position | None:
    """The first entry with messages pending one by one, or None."""
    first, positions = next(of_subscription(view, subscription_id), None), list[Position]()
    if first is not None and not first.is_span:
        positions.append(first.at)
    of_first_span: Position | None = None
    for key, payload in view.scan(PENDING, key1(subscription_id), span.first_key(subscription_id)):
        record = PendingRecord.decode(key, payload)
        if record.at != (of_first_span or record.at):
            break
        of_first_span = record.at
        positions += record.positions()[:1]
    return min(positions, default=None)


def through(view: ReadView, subscription_id: int, last: Position) -> Iterator[PendingRecord]:
    """Yield the records that begin at or before an entry: of entries, then of spans, each in position order."""
    prefix, every_txn = key1(subscription_id), b"\xff" * 8
    for key, payload in view.scan(PENDING, prefix, stop=key_through(subscription_id, last) + every_txn):
        yield PendingRecord.decode(key, payload)
    first = span.first_of(Position(last[0], max(last[1], 0)))
    start, stop = span.first_key(subscription_id), span.key(subscription_id, first) + every_txn
    for key, payload in view.scan(PENDING, prefix, start, stop):
        yield PendingRecord.decode(key, payload)


def first_of_transaction(view: ReadView, txn: int, subscription_id: int) -> Iterator[PendingRecord]:
    """Yield the first record of a transaction on a subscription, of entries and of spans."""
    prefix, spans = key2(txn, subscription_id), key1(txn) + span.first_key(subscription_id)
    for start in (prefix, spans):
        record = view.first(TXN_PENDING, prefix, start)
        if record is not None:
            by_position = record[0][8:] + record[0][:8]
            payload = view.get(PENDING, by_position)
            if payload is None:
                raise missing(PENDING, by_position)
            yield PendingRecord.decode(by_position, payload)


def of_transaction(view: ReadView, txn: int, subscription_id: int) -> list[PendingRecord]:
    """The records of a transaction on one subscription.

    Raises:
        CorruptStore: a record is found by transaction, and not by position.
    """
    pending = []
    for key in view.keys(TXN_PENDING, key2(txn, subscription_id)):
        by_position = key[8:] + key[:8]
        payload = view.get(PENDING, by_position)
        if payload is None:
            raise missing(PENDING, by_position)
        pending.append(PendingRecord.decode(by_position, payload))
    return pending


def of_entry(view: ReadView, subscription_id: int, at: Position) -> list[tuple[int, bytes]]:
    """The messages of an entry pending one by one: transaction, and messages as stored."""
    own = view.scan(PENDING, key3(subscription_id, *at))
    pending = [(int.from_bytes(key[24:], "big"), bytes(payload)) for key, payload in own]
    for key, payload in view.scan(PENDING, span.key(subscription_id, span.first_of(at))):
        record = PendingRecord.decode(key, payload)
        messages = span.of_entry(at, record.messages(0))
        if messages:
            pending.append((record.txn, span.as_stored(messages)))
    return pending


def one_by_one(view: ReadView, subscription_id: int) -> list[tuple[Position, int, bytes]]:
    """All messages pending one by one, in position order: entry, transaction, messages as stored."""
    pending: list[tuple[Position, int, bytes]] = []
    for record in of_subscription(view, subscription_id):
        if not record.is_span:
            pending.append((record.at, record.txn, record.stored))
            continue
        pending += [(at, record.txn, stored) for at, stored in span.entries_of(record.at, record.messages(0))]
    return sorted(pending)


def add(batch: WriteBatch, subscription_id: int, txn: int, at: Position, count: int, messages: int) -> bool:
    """Add messages of an entry that has too many for a span; whether the entry is new to the transaction."""
    key = key3(subscription_id, *at) + key1(txn)
    before = batch.get(PENDING, key)
    both = messages | (message_set.decode(before, count) if before is not None else 0)
    batch.put(PENDING, key, message_set.encode(both, count))
    batch.put(TXN_PENDING, key1(txn) + key3(subscription_id, *at), b"")
    return before is None


def add_to_span(batch: WriteBatch, subscription_id: int, txn: int, first: Position, messages: int) -> int:
    """Add messages to the span that begins at `first`; return the number of entries new to the transaction there."""
    position = span.key(subscription_id, first)
    before, known = batch.get(PENDING, position + key1(txn)), 0
    if before is None:
        batch.put(TXN_PENDING, key1(txn) + position, b"")
    else:
        known = span.decode(before)
    batch.put(PENDING, position + key1(txn), span.encode(known | messages))
    return (span.present(messages) & ~span.present(known)).bit_count()


def remove(batch: WriteBatch, subscription_id: int, record: PendingRecord, messages: int = -1) -> int:
    """Remove a record; of a span only these messages. Return the number of entries removed."""
    position = span.key(subscription_id, record.at) if record.is_span else key3(subscription_id, *record.at)
    key, known = position + key1(record.txn), record.messages(0) if record.is_span else 1
    kept = known & ~messages
    if kept:
        batch.put(PENDING, key, span.encode(kept))
    else:
        batch.delete(PENDING, key)
        batch.delete(TXN_PENDING, key1(record.txn) + position)
    return (span.present(known) & ~span.present(kept)).bit_count()
