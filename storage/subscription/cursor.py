"""The cursor of a subscription: markDeletePosition and what is acknowledged ahead of it.

Invariant 1: markDeletePosition never moves back (but for seek). Acknowledged messages ahead of it are ranges of
whole entries within a ledger, joined with their neighbours, or single entries of which some messages are
acknowledged (ACKS). What follows markDeletePosition without a gap is taken into it.
"""

from __future__ import annotations

from typing import Any

from storage.codec import U64, corrupt, key1, key3, key_through, pack, unpack
from storage.ledger import managed_ledger
from storage.position import MessageId, Position
from storage.schema import ACKS, CURSORS, ENTRIES
from storage.subscription import message_set
from storage.view import ReadView, WriteBatch


class Cursor:
    """The record of one subscription's cursor.

    Attributes:
        mark_delete: everything up to here is acknowledged.
        read: dispatch has looked at everything up to here.
        generation: raised when what was handed out is withdrawn, so that consumers drop what they hold.
        released: entries of which something was handed out or held back, and is nobody's now.
        pending_cumulative: transaction, ledger, entry, batch index (-1: whole entry) of a cumulative acknowledgement
            that waits for its transaction.
        awaited: open transactions that dispatch has passed over (`awaited.py`).
        held: messages held behind them.
        passes: raised when more is passed over, so that consumers look which keys that holds.
        reached_undecided: messages of undecided transactions may be acknowledged or pending: by a reader of
            READ_UNCOMMITTED, before the level changed, because the subscription began inside their entry, or by `skip`
            of an aborted transaction that is still awaited.
        withdrawn: an aborted cumulative acknowledgement reached to here, beyond what was handed out; until dispatch
            has come there, nothing up to it may be acknowledged cumulatively.
    """

    __slots__ = (
        "awaited",
        "delivered",
        "generation",
        "held",
        "mark_delete",
        "passes",
        "pending_cumulative",
        "reached_undecided",
        "read",
        "redelivered",
        "released",
        "withdrawn",
    )  # fmt: skip

    def __init__(self, start: tuple[int, int]) -> None:
        self.mark_delete = start
        self.read = start
        self.generation = 0
        self.released = 0
        self.pending_cumulative: tuple[int, int, int, int] | None = None
        self.withdrawn: tuple[int, int] | None = None
        self.delivered = self.redelivered = 0
        self.awaited = self.held = self.passes = 0
        self.reached_undecided = False

    def encode(self) -> bytes:
        fields: list[Any] = [
            self.mark_delete,
            self.read,
            self.generation,
            self.released,
            self.pending_cumulative,
        ]
        fields += [self.delivered, self.redelivered, self.withdrawn]
        return pack([*fields, self.awaited, self.held, self.passes, self.reached_undecided])

    @classmethod
    def decode(cls, payload: memoryview) -> Cursor:
        fields = unpack(payload)
        cursor = cls(tuple(fields[0]))
        cursor.read = tuple(fields[1])
        cursor.generation, cursor.released = fields[2:4]
        cursor.pending_cumulative = tuple(fields[4]) if fields[4] else None
        cursor.delivered, cursor.redelivered = fields[5:7]
        cursor.withdrawn = tuple(fields[7]) if fields[7] else None
        cursor.awaited, cursor.held, cursor.passes, cursor.reached_undecided = fields[8:12]
        return cursor


def load(view: ReadView, subscription_id: int) -> Cursor:
    """The cursor of a subscription that exists."""
    payload = view.get(CURSORS, key1(subscription_id))
    assert payload is not None, "a subscription has a cursor"
    return Cursor.decode(payload)


def save(batch: WriteBatch, subscription_id: int, cursor: Cursor) -> None:
    """Write the cursor of a subscription."""
    batch.put(CURSORS, key1(subscription_id), cursor.encode())


def acknowledged(
    view: ReadView, subscription_id: int, cursor: Cursor, at: tuple[int, int], count: int
) -> int:
    """Which messages of the entry at a position are acknowledged."""
    if at <= cursor.mark_delete:
        return message_set.everything(count)
    found = _range_at(view, subscription_id, at)
    if found is None:
        return 0
    first, _, messages = found
    return message_set.decode(messages, count) if first == at[1] else message_set.everything(count)


def _range_at(view: ReadView, subscription_id: int, at: tuple[int, int]) -> tuple[int, int, bytes] | None:
    """The range that holds a position: first and last entry, and which messages."""
    prefix = key1(subscription_id) + U64.pack(at[0])
    found = view.last(ACKS, prefix, prefix + U64.pack(at[1]))
    if found is None:
        return None
    last = U64.unpack_from(found[1])[0]
    if last < at[1]:
        return None
    return int.from_bytes(found[0][16:], "big"), last, bytes(found[1][8:])


def acknowledged_through(view: ReadView, subscription_id: int, at: tuple[int, int]) -> tuple[int, int]:
    """The end of the range of whole acknowledged entries in which a position lies; the position if it lies in none."""
    found = _range_at(view, subscription_id, at) if at[1] >= 0 else None
    return at if found is None or found[2] else (at[0], found[1])


def acknowledge(
    batch: WriteBatch,
    topic_id: int,
    subscription_id: int,
    cursor: Cursor,
    at: tuple[int, int],
    count: int,
    messages: int,
) -> int:
    """Acknowledge messages of one entry; those that were not before. The caller runs `advance` and saves."""
    before = acknowledged(batch, subscription_id, cursor, at, count)
    new = messages & ~before
    if not new:
        return 0
    both = before | new
    if both != message_set.everything(count):
        key = key3(subscription_id, *at)
        batch.put(ACKS, key, U64.pack(at[1]) + message_set.encode(both, count))
        return new
    if before:
        batch.delete(ACKS, key3(subscription_id, *at))
    if is_next(batch, topic_id, cursor.mark_delete, at):
        cursor.mark_delete = at
    else:
        acknowledge_entries(batch, subscription_id, at[0], at[1], at[1])
    return new


def acknowledge_entries(
    batch: WriteBatch, subscription_id: int, ledger_id: int, first: int, last: int
) -> None:
    """Acknowledge whole entries ahead of markDeletePosition, joined with what touches them."""
    prefix = key1(subscription_id) + U64.pack(ledger_id)
    after = batch.get(ACKS, prefix + U64.pack(last + 1))
    if after is not None and len(after) == 8:
        batch.delete(ACKS, prefix + U64.pack(last + 1))
        (last,) = U64.unpack(after)
    while (found := batch.last(ACKS, prefix, prefix + U64.pack(last))) is not None:
        start, (end,) = int.from_bytes(found[0][16:], "big"), U64.unpack_from(found[1])
        if start < first and (len(found[1]) > 8 or end + 1 < first):
            break
        batch.delete(ACKS, found[0])
        first, last = min(first, start), max(last, end)
    batch.put(ACKS, prefix + U64.pack(first), U64.pack(last))


def acknowledge_through(
    batch: WriteBatch, subscription_id: int, cursor: Cursor, through: tuple[int, int]
) -> None:
    """Acknowledge everything up to and including an entry."""
    if through <= cursor.mark_delete:
        return
    cursor.mark_delete = through
    cursor.read = max(cursor.read, through)
    straddling = _range_at(batch, subscription_id, through) if through[1] >= 0 else None
    batch.delete_prefix(ACKS, key1(subscription_id), stop=key_through(subscription_id, through))
    if straddling is not None and straddling[1] > through[1]:
        cursor.mark_delete = (through[0], straddling[1])
        cursor.read = max(cursor.read, cursor.mark_delete)


def advance(batch: WriteBatch, topic_id: int, subscription_id: int, cursor: Cursor) -> None:
    """Take into markDeletePosition whatever acknowledged entries follow it without a gap."""
    while True:
        found = batch.first(ACKS, key1(subscription_id))
        if found is None:
            break
        at = (int.from_bytes(found[0][8:16], "big"), int.from_bytes(found[0][16:], "big"))
        if len(found[1]) > 8 or not is_next(batch, topic_id, cursor.mark_delete, at):
            break
        batch.delete(ACKS, found[0])
        cursor.mark_delete = (at[0], U64.unpack_from(found[1])[0])
    cursor.read = max(cursor.read, cursor.mark_delete)


def begin_inside(
    batch: WriteBatch, topic_id: int, subscription_id: int, cursor: Cursor, start: MessageId
) -> None:
    """The subscription starts at a message inside a batch: those before it are taken as acknowledged."""
    at = (start.ledger_id, start.entry_id)
    entry = managed_ledger.read(batch, topic_id, at)
    if entry is not None and start.batch_index > 0 and entry.count:
        before = message_set.through(min(start.batch_index, entry.count) - 1)
        cursor.reached_undecided = True
        acknowledge(batch, topic_id, subscription_id, cursor, at, entry.count, before)


def is_next(view: ReadView, topic_id: int, mark: tuple[int, int], at: tuple[int, int]) -> bool:
    """Whether the entry at a position is the first one after another position."""
    if at[0] == mark[0]:
        return at[1] == mark[1] + 1
    if at[1] != 0 or at < mark:
        return False
    for key in view.keys(ENTRIES, key1(topic_id), key3(topic_id, mark[0], mark[1] + 1)):
        return key == key3(topic_id, *at)
    return False


def ranges(view: ReadView, subscription_id: int) -> list[tuple[Position, int, bytes]]:
    """What is acknowledged ahead of markDeletePosition: first entry, last entry id, which messages."""
    return [
        (
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:], "big")),
            U64.unpack_from(payload)[0],
            bytes(payload[8:]),
        )
        for key, payload in view.scan(ACKS, key1(subscription_id))
    ]


def acknowledged_count(view: ReadView, topic_id: int, subscription_id: int) -> int:
    """Messages acknowledged ahead of markDeletePosition, without a scan of the log."""
    total = 0
    for first, last, messages in ranges(view, subscription_id):
        if messages:
            total += int.from_bytes(messages, "big").bit_count()
            continue
        low = managed_ledger.read(view, topic_id, first)
        high = managed_ledger.read(view, topic_id, (first.ledger_id, last))
        if low is None or high is None:
            raise corrupt(ENTRIES, key3(topic_id, first.ledger_id, last), "an acknowledged entry is missing")
        total += high.messages_through - low.messages_before
    return total
