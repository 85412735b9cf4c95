"""Batching: check messages before the writer gate is entered, and cut the messages into entries and commits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from storage.errors import InvalidValue, MessageTooLarge
from storage.limits import (
    ENTRY_BYTES_TARGET,
    ENTRY_MESSAGES_MAX,
    MESSAGE_BYTES_MAX,
    PROPERTIES_MAX,
    WRITE_BYTES_TARGET,
)
from storage.topic.entry import Columns, PackedColumns
from storage.values.arguments import check_many

Commits = list[tuple[int, list[int]]]
"""For each durable commit the first message, and the end of each entry in the commit."""

_PLAIN_TYPES = {bytes, type(None)}


def columns_of(
    values: Sequence[bytes | None],
    keys: Sequence[str | bytes | None] | None,
    properties: Sequence[dict[str, str] | None] | None,
    event_times: Sequence[int | None] | None,
    delivery_times: Sequence[int | None] | None = None,
) -> Columns:
    """Check messages, and return their columns.

    Raises:
        InvalidValue, MessageTooLarge
    """
    if not values:
        raise InvalidValue("there is no message to send")
    for noun, given in (("values", values), ("keys", keys)):
        if given is not None and type(given) is not list:
            check_many(noun, given)
    if not _PLAIN_TYPES.issuperset(map(type, values)):
        raise InvalidValue("a message's value is bytes, or None for a tombstone")
    for column in (keys, properties, event_times, delivery_times):
        if column is not None and len(column) != len(values):
            raise InvalidValue(f"{len(values)} values came with {len(column)} of another column")
    return Columns(
        values,
        None if keys is None else _packed_keys(keys),
        None if properties is None else _checked_properties(properties),
        None if event_times is None else _checked_times(event_times, "an event time"),
        None if delivery_times is None else _checked_times(delivery_times, "a delivery time"),
    )


def _checked_times(times: Sequence[int | None], what: str) -> Sequence[int | None] | None:
    for time in times:
        if time is not None and (type(time) is not int or not 0 <= time < 1 << 63):
            raise InvalidValue(f"{what} is milliseconds since 1970, not {time!r}")
    return None if all(time is None for time in times) else times


def _checked_properties(
    properties: Sequence[dict[str, str] | None],
) -> Sequence[dict[str, str] | None] | None:
    for pairs in properties:
        _check_properties(pairs)
    return properties if any(properties) else None


def _packed_keys(keys: Sequence[str | bytes | None]) -> list[bytes | None] | None:
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


def sizes_of(columns: Columns) -> list[int]:
    """Return the bytes of each message: value, key and properties.

    Raises:
        MessageTooLarge
    """
    values = columns.values
    try:
        sizes = list(map(len, values))  # type: ignore[arg-type]
    except TypeError:  # a tombstone has no length
        sizes = [len(value) if value is not None else 0 for value in values]
    if columns.keys is not None:
        sizes = [size + len(key or b"") for size, key in zip(sizes, columns.keys, strict=True)]
    if columns.properties is not None:
        for index, pairs in enumerate(columns.properties):
            for name, value in (pairs or {}).items():
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


def check_sequence_ids(ids: Sequence[int], count: int, has_name: bool) -> None:
    """Raises:
    InvalidValue: a value is no sequence id, the number of ids is wrong, or the application gave the producer no name.
    """
    if not has_name:
        raise InvalidValue(
            "sequence ids are deduplicated per producer name, and this producer has none of its own",
            hint="Give the producer a name.",
        )
    check_many("sequence ids", ids)
    if len(ids) != count:
        raise InvalidValue(f"{count} values came with {len(ids)} sequence ids")
    for sequence_id in ids:
        if type(sequence_id) is not int or not 0 <= sequence_id < 1 << 63:
            raise InvalidValue(f"a sequence id is a whole number of 0 or more, not {sequence_id!r}")


def commits_of(sizes: Sequence[int]) -> Commits:
    """Divide messages of given sizes into durable commits, and each commit into entries."""
    count = len(sizes)
    if sum(sizes) <= ENTRY_BYTES_TARGET and count <= ENTRY_MESSAGES_MAX:
        return [(0, [count])]
    through = list(accumulate(sizes))
    commits: Commits = []
    stops: list[int] = []
    start = at = 0
    while at < count:
        full = bisect_right(through, (through[at - 1] if at else 0) + ENTRY_BYTES_TARGET, at)
        at = min(max(full, at + 1), at + ENTRY_MESSAGES_MAX)
        stops.append(at)
        if through[at - 1] - (through[start - 1] if start else 0) >= WRITE_BYTES_TARGET or at == count:
            commits.append((start, stops))
            start, stops = at, []
    return commits


def entries_of(columns: Columns) -> list[PackedColumns]:
    """Pack messages into the entries that will hold the messages, for `Producer.send_packed`.

    Raises:
        MessageTooLarge
    """
    packed, start = [], 0
    for _, stops in commits_of(sizes_of(columns)):
        for stop in stops:
            packed.append(columns.part(start, stop).packed())
            start = stop
    return packed


def unpacked(entry: PackedColumns) -> Columns:
    """Unpack the columns of an entry that a different process packed, and check all messages.

    Raises:
        InvalidValue: the entry is none that `entries_of` makes.
        MessageTooLarge
    """
    try:
        fields = entry.columns()
    except ValueError as error:
        raise _not_packed(str(error)) from None
    are_columns = isinstance(fields, list) and len(fields) in (4, 5) and isinstance(fields[0], list)
    if not are_columns or not all(isinstance(field, list | None) for field in fields):
        raise _not_packed("it is not made of four or five columns")
    columns = columns_of(*fields)
    if columns.count != entry.count:
        raise _not_packed(f"it holds {columns.count} messages, not {entry.count}")
    if len(commits_of(sizes_of(columns))[0][1]) > 1:
        raise _not_packed("it is larger than an entry may be")
    return columns


def _not_packed(why: str) -> InvalidValue:
    return InvalidValue(f"this is no packed entry: {why}", hint="Pack messages with `entries_of`.")


def packed_commits_of(entries: Sequence[PackedColumns]) -> Commits:
    """Divide packed entries into durable commits, as `commits_of` divides messages."""
    commits: Commits = []
    stops: list[int] = []
    start = stop = in_commit = 0
    for entry in entries:
        if in_commit >= WRITE_BYTES_TARGET:
            commits.append((start, stops))
            start, stops, in_commit = stop, [], 0
        stop += entry.count
        stops.append(stop)
        in_commit += len(entry.data)
    commits.append((start, stops))
    return commits
