"""Messages as NDJSON: the format of `consume -o ndjson`, read back by `produce --input ndjson`.

One object a line. `value` and `key` are text; `valueBase64` and `keyBase64` stand for bytes that are not UTF-8; null
is not "". An entry of a thousand messages is written at a time: the common part of the messages is written once, and
values are checked, decoded and quoted in one go (a tenth of the time of a JSON encoder for each).
"""

from __future__ import annotations

from binascii import b2a_base64
from itertools import repeat
from typing import TYPE_CHECKING

from storage.json_form import bytes_field
from storage.values.timestamps import rfc3339
from txnctl.output import json_text
from txnctl.output.field import Field

try:
    from _json import encode_basestring
except ImportError:  # no CPython
    from json.encoder import encode_basestring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from storage.topic.entry import Entry
    from storage.topic.message import Message
    from txnctl.output.row import Row

    Quote = Callable[[str], str]

MESSAGE_FIELDS = (
    Field("messageId", "id", "ledger:entry, or ledger:entry:batchIndex inside a batch."),
    Field("value", "text", "The value as text; null is a tombstone; absent where it is not UTF-8."),
    Field("valueBase64", "text", "The value where it is not UTF-8; absent elsewhere.", heading=""),
    Field("key", "text", "The key as text, or null; absent where it is not UTF-8."),
    Field("keyBase64", "text", "The key where it is not UTF-8; absent elsewhere.", heading=""),
    Field("properties", "map", "Names and values, both text."),
    Field("eventTimeMs", "timeMs", "The event time that the producer gave, or null."),
    Field("sequenceId", "integer", "The sequence id, given by the producer or assigned."),
    Field("publishTimeAt", "time", "When it was stored."),
    Field("publishTimeMs", "timeMs", "The same as an integer.", heading=""),
    Field("producerName", "text", "The name of its producer."),
    Field("epoch", "integer", "The topic epoch that its producer carried; null if there was none."),
    Field("txnId", "id", "The transaction it was sent in, or null."),
    Field("txnState", "text", "That transaction's state when the message was read, or null."),
)

DELIVERED_FIELDS = (
    *MESSAGE_FIELDS,
    Field("redeliveryCount", "integer", "How often the subscription has handed it out before."),
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
    sequence_ids = entry.sequence_ids
    if start:
        values, sequence_ids = values[start:], sequence_ids[start:]
        keys, properties, event_times = (
            _from(keys, start),
            _from(properties, start),
            _from(event_times, start),
        )
    tail = f"{_shared(entry, quote)}}}\n"
    return "".join(
        [
            f'{head}{at}",{value},{key},"properties":{named},"eventTimeMs":{time},"sequenceId":{sequence}{tail}'
            for at, value, key, named, time, sequence in zip(
                ids,
                _quoted("value", values, quote),
                repeat('"key":null') if keys is None else _quoted("key", keys, quote),
                repeat("{}")
                if properties is None
                else [_properties(message_properties, quote) for message_properties in properties],
                repeat("null")
                if event_times is None
                else [_integer(event_time) for event_time in event_times],
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
        index = message.index
        lines.append(
            f'{{"messageId":"{message.message_id}",{_one("value", values[index], quote)}'
            f",{_one('key', keys[index] if keys else None, quote)}"
            f',"properties":{_properties(properties[index] if properties else None, quote)}'
            f',"eventTimeMs":{_integer(event_times[index] if event_times else None)}'
            f',"sequenceId":{sequence_ids[index]}{shared},"redeliveryCount":{message.redelivery_count}}}\n'
        )
    return "".join(lines).encode()


def message_row(message: Message, *, delivered: bool = False) -> Row:
    """The same as a row, for `-o json` and tables; `delivered` adds the fields of a subscription."""
    row = {"messageId": str(message.message_id), **bytes_field("value", message.value)}
    row |= bytes_field("key", message.key)
    row |= {
        "properties": message.properties,
        "eventTimeMs": message.event_time,
        "sequenceId": message.sequence_id,
        "publishTimeAt": rfc3339(message.publish_time),
        "publishTimeMs": message.publish_time,
        "producerName": message.producer_name,
        "epoch": None if message.epoch < 0 else message.epoch,
        "txnId": None if message.txn_id is None else str(message.txn_id),
        "txnState": None if message.txn_state is None else message.txn_state.value,
    }
    if delivered:
        row["redeliveryCount"] = message.redelivery_count
    return row


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


def _from(column: list[Any] | None, start: int) -> list[Any] | None:
    return None if column is None else column[start:]
