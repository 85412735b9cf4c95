"""Acknowledged entries of one message, by span: each a bit, so that single acknowledgements do not become a range each.

A span with every entry acknowledged becomes a range of `cursor.py`, and an entry next to a range joins the range. No
entry is in both. All of them lie ahead of markDeletePosition.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1
from storage.disk.schema import ACKS
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import message_set, span
from storage.values.position import Position


def of_span(view: ReadView, subscription_id: int, first: Position) -> int:
    """The acknowledged entries of the span that begins at an entry."""
    payload = view.get(ACKS, span.key(subscription_id, first))
    return 0 if payload is None else message_set.decode(payload, span.SPAN_ENTRIES)


def every(
    view: ReadView, subscription_id: int, start: Position | None = None, stop: Position | None = None
) -> Iterator[tuple[Position, int]]:
    """Yield the spans in order, those of two entries included: first entry, acknowledged entries."""
    first = span.first_key(subscription_id) if start is None else _key_of(subscription_id, start)
    last = None if stop is None else _key_of(subscription_id, stop)
    for key, payload in view.scan(ACKS, key1(subscription_id), first, last):
        yield span.unpack(key[8:])[0], message_set.decode(payload, span.SPAN_ENTRIES)


def _key_of(subscription_id: int, at: Position) -> bytes:
    return span.key(subscription_id, span.first_of(Position(at[0], max(at[1], 0))))


def run_at(view: ReadView, subscription_id: int, at: Position) -> tuple[int, int] | None:
    """The first and the last entry of the run of acknowledged entries in a span around an entry, or None."""
    first = span.first_of(at)
    messages = of_span(view, subscription_id, first)
    if not messages & span.bit_of(at):
        return None
    index = at[1] - first[1]
    before = ~messages & ((1 << index) - 1)
    return first[1] + before.bit_length(), first[1] + end_of_run(messages, index)


def end_of_run(messages: int, index: int) -> int:
    """The index of the last entry of a run of entries in a set.

    >>> end_of_run(0b01101, 2)
    3
    """
    rest = ~messages >> index
    return index + (rest & -rest).bit_length() - 2


def put(batch: WriteBatch, subscription_id: int, first: Position, messages: int) -> None:
    """Write the acknowledged entries of a span, or remove the record."""
    if messages:
        key = span.key(subscription_id, first)
        batch.put(ACKS, key, message_set.encode(messages, span.SPAN_ENTRIES))
    else:
        batch.delete(ACKS, span.key(subscription_id, first))


def remove(batch: WriteBatch, subscription_id: int, after: Position, through: Position) -> None:
    """Remove the entries after one position, up to and including a second."""
    for first, messages in list(every(batch, subscription_id, after, through)):
        kept = messages & ~(span.through(first, through) & ~span.through(first, after))
        if kept != messages:
            put(batch, subscription_id, first, kept)


def first_run(view: ReadView, subscription_id: int) -> tuple[Position, int] | None:
    """The first run: first entry, id of the last one."""
    for first, messages in every(view, subscription_id):
        index = (messages & -messages).bit_length() - 1
        return Position(first[0], first[1] + index), first[1] + end_of_run(messages, index)
    return None


def runs(view: ReadView, subscription_id: int) -> list[tuple[Position, int]]:
    """All runs in order: first entry, id of the last one."""
    return [run for first, messages in every(view, subscription_id) for run in span.runs(first, messages)]


class AcknowledgedRuns:
    """The acknowledged runs in spans, for a walk that asks for entries in order and writes nothing."""

    __slots__ = ("_known", "_subscription_id", "_view")

    def __init__(self, view: ReadView, subscription_id: int) -> None:
        self._view = view
        self._subscription_id = subscription_id
        self._known: tuple[Position, int] | None = None

    def end_of_run(self, at: Position) -> Position | None:
        """The end of the run that an entry is in, or None."""
        first = span.first_of(at)
        if self._known is None or self._known[0] != first:
            self._known = first, of_span(self._view, self._subscription_id, first)
        messages = self._known[1]
        if not messages & span.bit_of(at):
            return None
        return Position(at[0], first[1] + end_of_run(messages, at[1] - first[1]))
