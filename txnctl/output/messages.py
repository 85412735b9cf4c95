"""Messages as NDJSON: the format of `consume -o ndjson`, read back by `produce --input ndjson`.

One object a line. `value` and `key` are text; `valueBase64` and `keyBase64` stand for bytes that are not UTF-8; null
is not "". An entry of a thousand messages is written at a time: the common part of the messages is written once, and
values are checked, decoded and quoted in one go (a tenth of the time of a JSON encoder for each).
"""

from __future__ import annotations

from binascii import b2a_base64
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from storage.values.timestamps import rfc3339
from txnctl.output import json_text
from txnctl.output.field import Field, Fields, Help, fields_of

try:
    from _json import encode_basestring
except ImportError:  # no CPython
    from json.encoder import encode_basestring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from storage.topic.entry import Entry
    from storage.topic.message import Message
    from storage.values.position import MessageId
    from storage.values.txn_id import TxnID
    from storage.values.txn_state import TransactionState

    Quote = Callable[[str], str]

T = TypeVar("T")


class MessageRow(NamedTuple):
    """A message for `-o json` and tables."""

    message_id: MessageId
    value: bytes | None
    key: bytes | None
    properties: dict[str, str]
    event_time_ms: int | None
    delivery_time_ms: int | None
    sequence_id: int
    publish_time_at_ms: int
    producer_name: str
    epoch: int | None
    txn_id: TxnID | None
    txn_state: TransactionState | None


MESSAGE_FIELDS = fields_of(
    MessageRow,
    {
        "message_id": Help("ledger:entry, or ledger:entry:batchIndex inside a batch.", kind="id"),
        "value": Help(
            "The value as text; null is a tombstone; absent where it is not UTF-8.",
            base64="The value where it is not UTF-8; absent elsewhere.",
        ),
        "key": Help(
            "The key as text, or null; absent where it is not UTF-8.",
            base64="The key where it is not UTF-8; absent elsewhere.",
        ),
        "properties": "Names and values, both text.",
        "event_time_ms": Help("The event time that the producer gave, or null.", kind="timeMs"),
        "delivery_time_ms": Help(
            "The time before which Shared and Key_Shared do not deliver it, or null.", kind="timeMs"
        ),
        "sequence_id": "The sequence id, given by the producer or assigned.",
        "publish_time_at_ms": "When it was stored.",
        "producer_name": "The name of its producer.",
        "epoch": "The topic epoch that its producer carried; null if there was none.",
        "txn_id": "The transaction it was sent in, or null.",
        "txn_state": Help("That transaction's state when the message was read, or null.", kind="text"),
    },
)

DELIVERED_FIELDS = Fields(
    lambda: (
        *MESSAGE_FIELDS,
        Field("redeliveryCount", "integer", "How often the subscription has handed it out before."),
    )
)
"""The fields of a message handed out by a subscription."""

# DEL is neither escaped by JSON nor common in text: the byte separates the values of a batch handled as one text.
_SEPARATOR = b"\x7f"
_SEPARATOR_TEXT = "\x7f"


def entry_lines(entry: Entry, *, start: int = 0, terminal: bool = False) -> bytes:
    """The lines of an entry's messages from index `start` on, as UTF-8.

    On a terminal, characters that could drive the terminal are escaped in addition (JSON escapes only the ASCII
    controls).
    """
    quote = json_text.text if terminal else encode_basestring
    count = entry.count
    head = f'{{"messageId":"{entry.ledger_id}:{entry.entry_id}'
    ids: Iterable[str] = ("",) if count == 1 else [f":{index}" for index in range(start, count)]
    values, keys, properties, event_times = entry.values, entry.keys, entry.properties, entry.event_times
    sequence_ids, delivery_times = entry.sequence_ids, entry.delivery_times
    if start:
        values, sequence_ids = values[start:], sequence_ids[start:]
        keys, properties, event_times, delivery_times = (
            _from(keys, start),
            _from(properties, start),
            _from(event_times, start),
            _from(delivery_times, start),
        )
    tail = f"{_shared(entry, quote)}}}\n"
    return "".join(
        [
            f'{head}{at}",{value},{key},"properties":{named},"eventTimeMs":{time},"deliveryTimeMs":{due}'
            f',"sequenceId":{sequence}{tail}'
            for at, value, key, named, time, due, sequence in zip(
                ids,
                _quoted("value", values, quote),
                repeat('"key":null') if keys is None else _quoted("key", keys, quote),
                repeat("{}")
                if properties is None
                else [_properties(message_properties, quote) for message_properties in properties],
                _integers(event_times),
                _integers(delivery_times),
                sequence_ids,
                strict=False,
            )
        ]
    ).encode()


def message_lines(messages: Iterable[Message], *, terminal: bool = False) -> bytes:
    """The lines of messages that a subscription handed out, as UTF-8."""
    quote = json_text.text if terminal else encode_basestring
    lines: list[str] = []
    entry: Entry | None = None
    for message in messages:
        if message.entry is not entry:
            # Messages come in runs of one entry: the common part is looked up and quoted once a run.
            entry = message.entry
            values, keys, properties, event_times = (
                entry.values,
                entry.keys,
                entry.properties,
                entry.event_times,
            )
            sequence_ids, shared = entry.sequence_ids, _shared(entry, quote)
            delivery_times = entry.delivery_times
        index = message.index
        lines.append(
            f'{{"messageId":"{message.message_id}",{_one("value", values[index], quote)}'
            f",{_one('key', keys[index] if keys else None, quote)}"
            f',"properties":{_properties(properties[index] if properties else None, quote)}'
            f',"eventTimeMs":{_integer(event_times[index] if event_times else None)}'
            f',"deliveryTimeMs":{_integer(delivery_times[index] if delivery_times else None)}'
            f',"sequenceId":{sequence_ids[index]}{shared},"redeliveryCount":{message.redelivery_count}}}\n'
        )
    return "".join(lines).encode()


def message_row(message: Message) -> MessageRow:
    """The facts of `entry_lines`, as a row."""
    return MessageRow(
        message_id=message.message_id,
        value=message.value,
        key=message.key,
        properties=message.properties,
        event_time_ms=message.event_time,
        delivery_time_ms=message.deliver_at,
        sequence_id=message.sequence_id,
        publish_time_at_ms=message.publish_time,
        producer_name=message.producer_name,
        epoch=None if message.epoch < 0 else message.epoch,
        txn_id=message.txn_id,
        txn_state=message.txn_state,
    )


def _shared(entry: Entry, quote: Quote) -> str:
    """The common fields of the messages of an entry."""
    published = entry.publish_time
    at = rfc3339(published)
    state = entry.txn_state
    return (
        f',"publishTimeAt":{"null" if at is None else quote(at)},"publishTimeMs":{published}'
        f',"producerName":{quote(entry.producer_name)},"epoch":{"null" if entry.epoch < 0 else entry.epoch}'
        f',"txnId":{"null" if entry.txn_id is None else quote(str(entry.txn_id))}'
        f',"txnState":{"null" if state is None else quote(state.value)}'
    )


def _quoted(name: str, values: Sequence[bytes | None], quote: Quote) -> list[str]:
    """`"value":"..."` for each. All at once if every value is text; one by one with a null or bytes among the
    values.
    """
    if quote is not encode_basestring:
        return [_one(name, value, quote) for value in values]
    try:
        joined = _SEPARATOR.join(values).decode()  # type: ignore[arg-type]
    except (TypeError, UnicodeDecodeError):
        return [_one(name, value, quote) for value in values]
    parts = quote(joined)[1:-1].split(_SEPARATOR_TEXT)
    if len(parts) != len(values):
        # A value holds the separator itself.
        return [_one(name, value, quote) for value in values]
    return [f'"{name}":"{part}"' for part in parts]


def _one(name: str, value: bytes | None, quote: Quote) -> str:
    if value is None:
        return f'"{name}":null'
    try:
        return f'"{name}":{quote(value.decode())}'
    except UnicodeDecodeError:
        return f'"{name}Base64":"{b2a_base64(value, newline=False).decode()}"'


def _properties(properties: dict[str, str] | None, quote: Quote) -> str:
    if not properties:
        return "{}"
    return f"{{{','.join([f'{quote(name)}:{quote(value)}' for name, value in properties.items()])}}}"


def _integer(value: int | None) -> str:
    return "null" if value is None else str(value)


def _integers(column: list[int | None] | None) -> Iterable[str]:
    return repeat("null") if column is None else [_integer(value) for value in column]


def _from(column: list[T] | None, start: int) -> list[T] | None:
    return None if column is None else column[start:]
