"""Messages of a compacted view: the record of one message, and an entry of the messages that are left of it.

A record holds all that the original entry said of its message. So the view is read without the log, and stays when
the originals are trimmed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from storage.disk.codec import decoded, pack, unpack
from storage.disk.schema import COMPACTED
from storage.topic.entry import MESSAGES, Entry
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position, as_position
from storage.values.txn_state import TransactionState

KEY: Final = Struct(">QQQQI")
# topic, generation, ledger, entry, batch index
PLACE: Final = Struct(">QQI")
# flags, ms of entering the view, messages of the entry, txn (0 none), epoch, publish ms, timestamp, sequence id
_HEADER: Final = Struct(">BQIQqQQQ")
_TOMBSTONE: Final = 1
_DIGEST_BYTES: Final = 20

Place = tuple[int, int, int]
"""Ledger, entry and batch index of a message; index 0 where the entry has one message."""


class Standing(NamedTuple):
    """The facts by which a record is counted: its place in the queue of tombstones, and its bytes."""

    is_tombstone: bool
    entered_ms: int
    bytes: int


def key_digest(key: bytes) -> bytes:
    """The digest by which a view finds the message of a key: keys are longer than LMDB's."""
    from hashlib import blake2b  # loads OpenSSL: 2 ms of a start

    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


def encode(entry: Entry, index: int, entered_ms: int) -> bytes:
    """Make the record of a message of an entry."""
    key = entry.keys[index] if entry.keys else None
    value = entry.values[index]
    flags = _TOMBSTONE if value is None and key is not None else 0
    header = _HEADER.pack(
        flags, entered_ms, entry.count, entry.txn, entry.epoch, entry.publish_time, entry.timestamp,
        entry.sequence_ids[index],
    )  # fmt: skip
    properties = entry.properties[index] if entry.properties else None
    event_time = entry.event_times[index] if entry.event_times else None
    return header + pack([entry.producer_name, value, key, properties, event_time])


def standing(payload: bytes | memoryview) -> Standing:
    """The facts by which a record is counted."""
    flags, entered_ms = _HEADER.unpack_from(payload)[:2]
    return Standing(bool(flags & _TOMBSTONE), entered_ms, len(payload))


def message_key(key: bytes, payload: memoryview) -> bytes | None:
    """The key of the message in a record.

    Raises:
        CorruptStore: the record does not decode.
    """
    of_message: bytes | None = decoded(COMPACTED, key, payload[_HEADER.size :], _unpacked_body)[2]
    return of_message


class CompactedEntry(Entry):
    """The messages that a view has of one entry, in columns. Indexes count the messages that are left.

    Attributes:
        batch_count: messages of the original entry.
        batch_indexes: the batch index of each message that is left.
    """

    __slots__ = ("batch_count", "batch_indexes")

    def __init__(
        self, position: Position, indexes: Sequence[int], header: tuple[int, ...], columns: list[Any]
    ) -> None:
        self.position = position
        self.ledger_id, self.entry_id = position
        self.kind, self.flags = MESSAGES, 0
        self.batch_count, self.txn, self.epoch, self.publish_time, self.timestamp = header[2:7]
        self.batch_indexes = indexes
        self.count = len(indexes)
        self.messages_before = self.bytes_before = self.first_index = 0
        self.size = 0
        self.txn_state = TransactionState.COMMITTED if self.txn else None
        self.key, self._body = b"", memoryview(b"")
        self._columns = columns

    def message_id(self, index: int) -> MessageId:
        """The original id of the message at `index`."""
        return MessageId(
            self.ledger_id, self.entry_id, self.batch_indexes[index] if self.batch_count > 1 else -1
        )

    def batch_indexes_of(self, start: int, stop: int) -> Sequence[int]:
        """The original batch indexes of messages `start` to `stop`, stop excluded; -1 for an entry of one message."""
        return self.batch_indexes[start:stop] if self.batch_count > 1 else (-1,)

    def index_of(self, batch_index: int) -> int:
        """The index of the first message left at or behind a batch index."""
        return bisect_left(self.batch_indexes, batch_index)

    @property
    def kept(self) -> int:
        """The messages that are left, as a set of batch indexes."""
        kept = 0
        for index in self.batch_indexes:
            kept |= 1 << index
        return kept

    def expanded(self) -> CompactedEntry:
        """The entry with its original number of messages; those that were compacted away have no value."""
        if self.count == self.batch_count:
            return self
        producer, *columns = self._unpacked()
        wide: list[Any] = [producer]
        for column in columns:
            spread: list[Any] | None = None
            if column is not None:
                spread = [None] * self.batch_count
                for index, value in zip(self.batch_indexes, column, strict=True):
                    spread[index] = value
            wide.append(spread)
        wide[1] = [0 if sequence is None else sequence for sequence in wide[1]]
        header = (0, 0, self.batch_count, self.txn, self.epoch, self.publish_time, self.timestamp)
        entry = CompactedEntry(self.position, range(self.batch_count), header, wide)
        entry.size = self.size
        return entry


class Gathering:
    """Messages of one entry, gathered record by record in the order of their batch indexes."""

    __slots__ = ("_header", "_indexes", "_producer", "_rows", "_size", "position")

    def __init__(self, position: Position) -> None:
        self.position = position
        self._indexes: list[int] = []
        self._header: tuple[int, ...] = ()
        self._producer = ""
        self._rows: list[tuple[Any, ...]] = []
        self._size = 0

    def gather(self, key: bytes, payload: memoryview) -> None:
        """Add the record of a message.

        Raises:
            CorruptStore: the record does not decode.
        """
        self._header = decoded(COMPACTED, key, payload, _HEADER.unpack_from)
        fields = decoded(COMPACTED, key, payload[_HEADER.size :], _unpacked_body)
        self._producer = fields[0]
        self._indexes.append(KEY.unpack(key)[4])
        self._rows.append((self._header[7], *fields[1:5]))
        self._size += len(payload)

    def entry(self) -> CompactedEntry:
        """The entry of the messages gathered."""
        sequences, values, *rest = map(list, zip(*self._rows, strict=True))
        columns = [None if all(field is None for field in column) else column for column in rest]
        body = [self._producer, sequences, values, *columns]
        entry = CompactedEntry(self.position, self._indexes, self._header, body)
        entry.size = self._size
        return entry


def _unpacked_body(body: memoryview) -> list[Any]:
    fields: list[Any] = unpack(body, 5)
    return fields


def position_of(key: bytes) -> Position:
    """The position in the key of a record."""
    return as_position(KEY.unpack(key)[2:4])
