"""An entry: one message, a batch of messages that share producer and transaction, or a transaction marker.

A fixed header stands before the packed columns, so that counting and the aborted filter read no body. The header
carries running counts: messages and bytes of the topic before this entry. The seal of the record covers the header,
which covers the body by a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from struct import Struct, error as struct_error
from typing import Any, Final
from zlib import crc32

from storage.disk.codec import U64X3, corrupt, decoded, pack, unpack
from storage.disk.schema import ENTRIES, ENTRY_HEADER_BYTES
from storage.errors import CorruptStore
from storage.topic.message import Message, MessageOrigin
from storage.values.position import MessageId, Position, as_position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

# body crc, kind, flags, messages, txn (0 none), epoch, publish ms, timestamp, messages before, bytes before
HEADER = Struct(">IBBIQqQQQQ")
assert HEADER.size == ENTRY_HEADER_BYTES

MESSAGES: Final = 0
COMMIT_MARKER: Final = 1
ABORT_MARKER: Final = 2

IN_ORDER: Final = 1
"""A flag: no earlier entry of the ledger has a later publish time. Set only where the timestamp leaves that open."""

NS_PER_MS: Final = 1_000_000

_BODY_BEGUN: Final = ENTRY_HEADER_BYTES + 1
_ARRAY_OF_SIX: Final = b"\x96"
"""The first byte of a body without delivery times: that tells without unpacking."""


class Columns:
    """The messages of one entry as parallel columns, so that a batch costs no work per message.

    Attributes:
        values: bytes or None each, at least one.
        keys, properties, event_times, delivery_times: a list as long as `values`, or None where no message has a value
            there. An entry without delivery times is packed without that column.
        count: the number of messages.
    """

    __slots__ = ("count", "delivery_times", "event_times", "keys", "properties", "values")

    def __init__(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_times: Sequence[int | None] | None = None,
        delivery_times: Sequence[int | None] | None = None,
    ) -> None:
        self.values = values
        self.count = len(values)
        self.keys = keys
        self.properties = properties
        self.event_times = event_times
        self.delivery_times = delivery_times

    def part(self, start: int, stop: int) -> Columns:
        """The messages start to stop, stop excluded."""
        if stop - start == self.count:
            return self
        return Columns(
            self.values[start:stop],
            self.keys[start:stop] if self.keys else None,
            self.properties[start:stop] if self.properties else None,
            self.event_times[start:stop] if self.event_times else None,
            _unless_empty(self.delivery_times[start:stop]) if self.delivery_times else None,
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """Join the messages of all parts, in order."""
        values = list[bytes | None]()
        is_bare = True
        for part in parts:
            values += part.values
            is_bare = is_bare and part.keys is None and part.properties is None
            is_bare = is_bare and part.event_times is None and part.delivery_times is None
        if is_bare:
            return cls(values)
        fields: list[Any] = [values]
        for columns in zip(*map(_further_columns_of, parts), strict=True):
            if not any(columns):
                fields += [None]
                continue
            joined: list[Any] = []
            for part, own in zip(parts, columns, strict=True):
                joined += own if own is not None else [None] * part.count
            fields += [joined]
        return cls(*fields)

    def pick(self, indexes: Sequence[int]) -> Columns:
        """The messages at these indexes."""
        return Columns(
            [self.values[i] for i in indexes],
            [self.keys[i] for i in indexes] if self.keys else None,
            [self.properties[i] for i in indexes] if self.properties else None,
            [self.event_times[i] for i in indexes] if self.event_times else None,
            _unless_empty([self.delivery_times[i] for i in indexes]) if self.delivery_times else None,
        )

    def body(self, producer_name: str, sequence: int | list[int]) -> bytes:
        """Pack the body; `sequence` is the first id, or every id where the ids have gaps."""
        fields = [producer_name, sequence, self.values, self.keys, self.properties, self.event_times]
        if self.delivery_times is not None:
            fields += [self.delivery_times]
        return pack(fields)

    def packed(self) -> PackedColumns:
        """Pack the columns alone, as in a body behind the producer's name and the sequence ids."""
        fields: list[Any] = [self.values, self.keys, self.properties, self.event_times]
        if self.delivery_times is not None:
            fields += [self.delivery_times]
        return PackedColumns(self.count, pack(fields))


_further_columns_of = attrgetter("keys", "properties", "event_times", "delivery_times")


def _unless_empty(times: Sequence[int | None]) -> Sequence[int | None] | None:
    return None if all(time is None for time in times) else times


class PackedColumns:
    """The columns of one entry, packed before the producer is known, perhaps in a different process.

    Attributes:
        count: messages.
        data: the four columns, or five with delivery times, packed by `Columns.packed`.
    """

    __slots__ = ("count", "data")

    def __init__(self, count: int, data: bytes) -> None:
        self.count = count
        self.data = data

    def body(self, producer_name: str, sequence: int | list[int]) -> bytes:
        """Make the packed body, equal to that of the columns: the packed columns are copied, not packed again."""
        # An array of fewer than 16 elements begins with one byte, which counts the elements.
        return bytes([self.data[0] + 2]) + pack([producer_name, sequence])[1:] + self.data[1:]

    def columns(self) -> Any:
        """Unpack the columns, unchecked: four or five fields if `Columns.packed` has packed them.

        Raises:
            ValueError: the data do not unpack.
        """
        try:
            return unpack(self.data)
        except CorruptStore as error:
            raise ValueError(f"it does not unpack: {error}") from None


class PackedEntries:
    """Packed entries in a row, taken apart where an entry ends and the next begins."""

    __slots__ = ("_starts", "count")

    def __init__(self, entries: Sequence[PackedColumns]) -> None:
        self._starts: dict[int, PackedColumns] = {}
        self.count = 0
        for entry in entries:
            self._starts[self.count] = entry
            self.count += entry.count

    def part(self, start: int, stop: int) -> PackedColumns:
        """The entry of the messages start to stop, stop excluded."""
        entry = self._starts[start]
        assert entry.count == stop - start, "packed entries are not cut"
        return entry


def times_in(body: bytes) -> list[int | None] | None:
    """The delivery times in a packed body; None where no message has one."""
    return None if body[:1] == _ARRAY_OF_SIX else unpack(body, 7)[6]


_COLUMNS: Final[Callable[[memoryview], list[Any]]] = partial(unpack, least=6)


class Entry:
    """An entry read from a ledger. The body is checked and unpacked at the first use.

    Attributes:
        txn_state: the state of the entry's transaction when a reader of an isolation level took the entry, and set so
            by that reader.
    """

    __slots__ = (
        "_body", "_body_crc", "_columns", "bytes_before", "count", "entry_id", "epoch", "first_index", "flags", "key",
        "kind", "ledger_id", "messages_before", "position", "publish_time", "size", "timestamp", "txn", "txn_state",
    )  # fmt: skip

    bytes_before: int
    count: int
    entry_id: int
    epoch: int
    flags: int
    kind: int
    ledger_id: int
    messages_before: int
    position: Position
    publish_time: int
    timestamp: int
    txn: int

    def __init__(self, key: bytes, payload: memoryview) -> None:
        self.key = key
        _, self.ledger_id, self.entry_id = U64X3.unpack(key)
        self.position = as_position((self.ledger_id, self.entry_id))
        try:
            (
                self._body_crc, self.kind, self.flags, self.count, self.txn, self.epoch, self.publish_time,
                self.timestamp, self.messages_before, self.bytes_before,
            ) = HEADER.unpack_from(payload)  # fmt: skip
        except struct_error:
            raise corrupt(ENTRIES, key, "it is shorter than its header") from None
        self.size = len(payload)
        self.txn_state: TransactionState | None = None
        self.first_index = 0
        self._body = payload
        self._columns: list[Any] | None = None

    @property
    def txn_id(self) -> TxnID | None:
        return TxnID(self.txn) if self.txn else None

    @property
    def messages_through(self) -> int:
        """The number of messages of the topic up to and including this entry."""
        return self.messages_before + self.count

    @property
    def is_in_order(self) -> bool:
        """Whether the header proves that no earlier entry of the ledger has a later publish time.

        Timestamps grow, and no publish time is later than its entry's timestamp. So the proof is a publish time in the
        millisecond of the timestamp, or the flag where the wall clock is behind the timestamps.
        """
        return bool(self.flags & IN_ORDER) or self.timestamp // NS_PER_MS <= self.publish_time

    def _unpacked(self) -> list[Any]:
        columns = self._columns
        if columns is None:
            body = self._body[ENTRY_HEADER_BYTES:]
            if crc32(body) != self._body_crc:
                raise corrupt(ENTRIES, self.key, "the checksum of its messages does not agree")
            columns = decoded(ENTRIES, self.key, body, _COLUMNS)
            if len(columns[2]) != self.count:
                raise corrupt(ENTRIES, self.key, "it holds another number of messages than it says")
            self._columns = columns
        return columns

    def check_body(self) -> None:
        """Raise CorruptStore unless the body agrees with the header."""
        if self.kind == MESSAGES:
            self._unpacked()

    @property
    def producer_name(self) -> str:
        name: str = self._unpacked()[0]
        return name

    @property
    def sequence_ids(self) -> Sequence[int]:
        sequence = self._unpacked()[1]
        return range(sequence, sequence + self.count) if isinstance(sequence, int) else list(sequence)

    @property
    def values(self) -> list[bytes | None]:
        values: list[bytes | None] = self._unpacked()[2]
        return values

    @property
    def keys(self) -> list[bytes | None] | None:
        keys: list[bytes | None] | None = self._unpacked()[3]
        return keys

    @property
    def properties(self) -> list[dict[str, str] | None] | None:
        properties: list[dict[str, str] | None] | None = self._unpacked()[4]
        return properties

    @property
    def event_times(self) -> list[int | None] | None:
        times: list[int | None] | None = self._unpacked()[5]
        return times

    @property
    def delivery_times(self) -> list[int | None] | None:
        """Milliseconds since 1970 before which Shared and Key_Shared do not deliver a message; None if none has one."""
        if self.kind != MESSAGES or bytes(self._body[ENTRY_HEADER_BYTES:_BODY_BEGUN]) == _ARRAY_OF_SIX:
            return None
        columns = self._unpacked()
        times: list[int | None] | None = columns[6] if len(columns) > 6 else None
        return times

    def message_id(self, index: int) -> MessageId:
        """The id of the message at `index` of the batch."""
        return MessageId(self.ledger_id, self.entry_id, index if self.count > 1 else -1)

    def batch_indexes_of(self, start: int, stop: int) -> Sequence[int]:
        """The batch indexes of messages `start` to `stop`, stop excluded; -1 for the one message of an entry."""
        return range(start, stop) if self.count > 1 else (-1,)

    def index_of(self, batch_index: int) -> int:
        """The index of the first message at or behind a batch index."""
        return min(batch_index, self.count)

    def message(self, index: int, origin: MessageOrigin, redelivery_count: int = 0) -> Message:
        """The message at `index` of the batch."""
        return Message(self, index, origin, redelivery_count)


def encode(
    kind: int, count: int, txn: int, epoch: int, publish_ms: int, timestamp: int,
    messages_before: int, bytes_before: int, body: bytes, flags: int = 0,
) -> bytes:  # fmt: skip
    """Make the payload of an entry record: one parameter for each field of the header, then the body."""
    header = HEADER.pack(
        crc32(body), kind, flags, count, txn, epoch, publish_ms, timestamp, messages_before, bytes_before
    )  # fmt: skip
    return header + body
