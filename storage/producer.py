"""A producer: appends messages to one topic, each send one durable commit.

What is sent is checked before the writer gate is entered. Inside the store transaction stands all that must be true
of the append: the topic still exists, sequence ids are new, the transaction is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from storage.connection import Connection
from storage.errors import InvalidName, InvalidValue, MessageTooLarge, StoreClosed
from storage.ledger import managed_ledger, sequence_ids, topic_head
from storage.ledger.entry import MESSAGES, Columns
from storage.ledger.topic import Topic
from storage.limits import (
    ENTRY_BYTES_TARGET,
    ENTRY_MESSAGES_MAX,
    MESSAGE_BYTES_MAX,
    PROPERTIES_MAX,
    WRITE_BYTES_TARGET,
)
from storage.names import check_name
from storage.position import MessageId, Position
from storage.transaction import Transaction, txn_number
from storage.txn import buffer, record as records
from storage.txn.coordinator import Coordinator
from storage.txn_id import TxnID
from storage.view import WriteBatch

DUPLICATE = MessageId(-1, -1, -1)
"""What `send` returns for a sequence id that is stored already, as Pulsar does: nothing was stored again."""

_ONE = [(0, [1])]
"""How a single message is stored: one commit, one entry."""

_PLAIN_TYPES = {bytes, type(None)}


class BatchReceipt:
    """Where a batch went: entries in order, with how many messages each.

    Attributes:
        count: messages stored.
        duplicates: messages left out because their sequence ids are stored already.
        last_sequence_id: of the last message stored; -1 if none was.
    """

    __slots__ = ("count", "duplicates", "entries", "last_sequence_id")

    def __init__(self) -> None:
        self.entries: list[tuple[Position, int]] = []
        self.count = self.duplicates = 0
        self.last_sequence_id = -1

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MessageId]:
        for position, count in self.entries:
            if count == 1:
                yield MessageId(*position)
            else:
                for index in range(count):
                    yield MessageId(*position, index)

    @property
    def last_message_id(self) -> MessageId:
        """The id of the last message stored; DUPLICATE if none was."""
        if not self.entries:
            return DUPLICATE
        position, count = self.entries[-1]
        return MessageId(*position, count - 1 if count > 1 else -1)


class Producer:
    """Made by `Store.create_producer`. For one thread at a time.

    A producer without a name is given one that no other ever had, at its first message.
    """

    def __init__(
        self, connection: Connection, coordinator: Coordinator, topic: Topic, producer_name: str | None
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._topic = topic
        self._given_name = producer_name is not None
        self._name = None if producer_name is None else _check_given_name(producer_name)
        self._next_sequence = 0
        self._closed = False
        self.last_sequence_id = -1

    @property
    def topic(self) -> str:
        return self._topic.name

    @property
    def producer_name(self) -> str | None:
        """Its name; None before the first message of a producer that was not given one."""
        return self._name

    def send(
        self,
        value: bytes | None,
        *,
        key: str | bytes | None = None,
        properties: dict[str, str] | None = None,
        event_time: int | None = None,
        sequence_id: int | None = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> MessageId:
        """Store one message durably; its id, or DUPLICATE.

        Args:
            value: at most 5 MiB with key and properties; None is a tombstone.
            event_time: milliseconds since 1970.
            sequence_id: makes the message one that is stored once under this producer name.
            txn: the open transaction it belongs to.

        Raises:
            InvalidValue, MessageTooLarge, TopicNotFound, SequenceConflict, TransactionNotFound, TransactionNotOpen,
            TransactionTimedOut, WriterBusy, StoreFull
        """
        is_bare = key is None and event_time is None and sequence_id is None and not properties
        if is_bare and type(value) is bytes and len(value) <= ENTRY_BYTES_TARGET:
            return self._store(Columns([value]), _ONE, None, txn).last_message_id
        receipt = self.send_batch(
            [value],
            keys=None if key is None else [key],
            properties=None if not properties else [properties],
            event_times=None if event_time is None else [event_time],
            sequence_ids=None if sequence_id is None else [sequence_id],
            txn=txn,
        )
        return receipt.last_message_id

    def send_batch(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[str | bytes | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_times: Sequence[int | None] | None = None,
        sequence_ids: Sequence[int] | None = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> BatchReceipt:
        """Store many messages, in order, in entries of a bounded size.

        Up to 8 MiB is one durable commit. More is several, so a failure in between leaves the first part stored;
        in a transaction that never shows.

        Raises:
            as `send`
        """
        columns = _columns(values, keys, properties, event_times)
        if sequence_ids is not None:
            _check_sequence_ids(sequence_ids, len(values), self._given_name)
        return self._store(columns, _commits(columns), sequence_ids, txn)

    def _store(
        self,
        columns: Columns,
        commits: list[tuple[int, list[int]]],
        sequence_ids: Sequence[int] | None,
        txn: Transaction | TxnID | str | None,
    ) -> BatchReceipt:
        """Store what was checked, as `_commits` says."""
        if self._closed:
            raise StoreClosed(f"this producer on {self._topic.name} is closed")
        number = 0 if txn is None else txn_number(txn)
        receipt = BatchReceipt()
        for start, stops in commits:

            def change(batch: WriteBatch, start: int = start, stops: list[int] = stops) -> tuple[str, int]:
                return self._append(batch, columns, start, stops, sequence_ids, number)

            try:
                self._name, self._next_sequence = self._connection.write(change, naming=number)
            except BaseException:
                # It may have been committed all the same (an interrupt): no sequence id may be used twice.
                if not self._given_name:
                    self._name, self._next_sequence = None, 0
                raise
            receipt.entries += self._written
            receipt.count += sum(count for _, count in self._written)
        receipt.duplicates = len(columns.values) - receipt.count
        if receipt.count:
            self.last_sequence_id = receipt.last_sequence_id = self._last_used
        return receipt

    def _append(
        self,
        batch: WriteBatch,
        columns: Columns,
        start: int,
        stops: list[int],
        sequence_ids: Sequence[int] | None,
        txn: int,
    ) -> tuple[str, int]:
        """Append the messages from `start` to the last of `stops`, an entry up to each of them."""
        topic_id = self._topic.topic_id
        head = topic_head.load(batch, topic_id)
        record = self._coordinator.use(batch, txn, self._connection.owner) if txn else None
        name, sequence = self._name, self._next_sequence
        if name is None:
            batch.head.last_producer += 1
            name = f"producer-{batch.head.last_producer}"
        self._written: list[tuple[Position, int]] = []
        for stop in stops:
            part = columns if stop - start == len(columns.values) else columns.part(start, stop)
            ids = None if sequence_ids is None else sequence_ids[start:stop]
            sequence = self._append_entry(batch, head, part, name, sequence, ids, txn)
            start = stop
        topic_head.save(batch, topic_id, head)
        if record is not None:
            record.messages += sum(count for _, count in self._written)
            records.save(batch, record)
        return name, sequence

    def _append_entry(
        self,
        batch: WriteBatch,
        head: topic_head.TopicHead,
        part: Columns,
        name: str,
        sequence: int,
        ids: Sequence[int] | None,
        txn: int,
    ) -> int:
        topic_id, given = self._topic.topic_id, list(ids) if ids is not None else None
        if given is not None:
            fresh = sequence_ids.claim(batch, topic_id, name, given, txn)
            if not fresh:
                return sequence
            if len(fresh) < len(given):
                part, given = part.pick(fresh), [given[i] for i in fresh]
        elif self._given_name:
            sequence = sequence_ids.assign(batch, topic_id, name, len(part.values), txn)
        count = len(part.values)
        first: int | list[int] = sequence
        if given is not None:
            first = given[0] if given == list(range(given[0], given[0] + count)) else given
        body = part.body(name, first)
        if txn:
            position, topic_part = buffer.append(batch, topic_id, head, txn, count, head.epoch, body)
            for used in given or ():
                topic_part.note_sequence(name, used, used)
            if given is None and self._given_name:
                topic_part.note_sequence(name, sequence, sequence + count - 1)
            buffer.save_part(batch, txn, topic_id, topic_part)
        else:
            position = managed_ledger.append(batch, topic_id, head, MESSAGES, count, 0, head.epoch, body)
        self._written.append((position, count))
        self._last_used = given[-1] if given is not None else sequence + count - 1
        return sequence if given is not None else sequence + count

    def flush(self) -> None:
        """Nothing is held back: every send was durable when it returned."""

    def close(self) -> None:
        self._closed = True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _columns(
    values: Sequence[bytes | None],
    keys: Sequence[str | bytes | None] | None,
    properties: Sequence[dict[str, str] | None] | None,
    event_times: Sequence[int | None] | None,
) -> Columns:
    """Checked columns.

    Raises:
        InvalidValue, MessageTooLarge
    """
    if not values:
        raise InvalidValue("there is no message to send")
    if not set(map(type, values)) <= _PLAIN_TYPES:
        raise InvalidValue("a message's value is bytes, or None for a tombstone")
    for column in (keys, properties, event_times):
        if column is not None and len(column) != len(values):
            raise InvalidValue(f"{len(values)} values came with {len(column)} of another column")
    return Columns(values, _packed_keys(keys), _checked_properties(properties), _checked_times(event_times))


def _checked_times(event_times: Sequence[int | None] | None) -> Sequence[int | None] | None:
    for time in event_times or ():
        if time is not None and (type(time) is not int or not 0 <= time < 1 << 63):
            raise InvalidValue(f"an event time is milliseconds since 1970, not {time!r}")
    return None if event_times is None or all(time is None for time in event_times) else event_times


def _checked_properties(
    properties: Sequence[dict[str, str] | None] | None,
) -> Sequence[dict[str, str] | None] | None:
    for each in properties or ():
        _check_properties(each)
    return properties if properties is not None and any(properties) else None


def _packed_keys(keys: Sequence[str | bytes | None] | None) -> list[bytes | None] | None:
    if keys is None:
        return None
    try:
        packed = [key.encode() if isinstance(key, str) else key for key in keys]
    except UnicodeEncodeError:
        raise InvalidValue("a message's key is not valid Unicode text; give it as bytes") from None
    if not set(map(type, packed)) <= _PLAIN_TYPES:
        raise InvalidValue("a message's key is text, bytes or None")
    return packed if any(key is not None for key in packed) else None


def _check_properties(properties: Any) -> None:
    if properties is None:
        return
    if not isinstance(properties, dict) or len(properties) > PROPERTIES_MAX:
        raise InvalidValue(f"properties are a map of at most {PROPERTIES_MAX} texts")
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue("the names and values of properties are text")
        try:
            (name + value).encode()
        except UnicodeEncodeError:
            raise InvalidValue(f"property {name!r} is not valid Unicode text") from None


def _sizes(columns: Columns) -> list[int]:
    """Bytes of each message: value, key and properties.

    Raises:
        MessageTooLarge
    """
    values = columns.values
    try:
        sizes = list(map(len, values))  # type: ignore[arg-type]
    except TypeError:  # there are tombstones among them
        sizes = [len(value) if value is not None else 0 for value in values]
    if columns.keys is not None:
        sizes = [size + len(key or b"") for size, key in zip(sizes, columns.keys, strict=True)]
    for index, each in enumerate(columns.properties or ()):
        for name, value in (each or {}).items():
            sizes[index] += len(name.encode()) + len(value.encode())
    largest = max(sizes)
    if largest > MESSAGE_BYTES_MAX:
        index = sizes.index(largest)
        raise MessageTooLarge(
            f"message {index + 1} of {len(sizes)} has {largest:,} bytes; the limit is {MESSAGE_BYTES_MAX:,}",
            hint="Split it, or store it elsewhere and send where it is.",
            index=index,
            bytes=largest,
        )
    return sizes


def _check_given_name(name: str) -> str:
    check_name("producer name", name)
    prefix, _, number = name.rpartition("-")
    if prefix == "producer" and number.isdigit():
        raise InvalidName(
            f"{name} is a name that the store gives", hint="Choose another name for the producer."
        )
    return name


def _check_sequence_ids(ids: Sequence[int], count: int, has_name: bool) -> None:
    if not has_name:
        raise InvalidValue(
            "sequence ids are deduplicated per producer name, and this producer has none of its own",
            hint="Give the producer a name.",
        )
    if len(ids) != count:
        raise InvalidValue(f"{count} values came with {len(ids)} sequence ids")
    for each in ids:
        if type(each) is not int or not 0 <= each < 1 << 63:
            raise InvalidValue(f"a sequence id is a whole number of 0 or more, not {each!r}")


def _commits(columns: Columns) -> list[tuple[int, list[int]]]:
    """How to store these messages: for each durable commit its first message, and where each of its entries ends."""
    count = len(columns.values)
    sizes = _sizes(columns)
    if sum(sizes) <= ENTRY_BYTES_TARGET and count <= ENTRY_MESSAGES_MAX:
        return [(0, [count])]
    commits: list[tuple[int, list[int]]] = []
    start, stops, in_entry, in_commit, messages = 0, [], 0, 0, 0
    for index, size in enumerate(sizes):
        if messages and (in_entry + size > ENTRY_BYTES_TARGET or messages >= ENTRY_MESSAGES_MAX):
            stops.append(index)
            in_entry = messages = 0
            if in_commit >= WRITE_BYTES_TARGET:
                commits.append((start, stops))
                start, stops, in_commit = index, [], 0
        in_entry, in_commit, messages = in_entry + size, in_commit + size, messages + 1
    commits.append((start, [*stops, count]))
    return commits
