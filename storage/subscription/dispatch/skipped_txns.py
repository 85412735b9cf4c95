"""Skipped transactions of a subscription with `--on-open skip`, and the messages blocked behind them (AWAITED, HELD).

A transaction is skipped from the first of its entries that dispatch passes, until dispatch has passed the marker and
has examined everything in between: the transaction's own entries, and on Key_Shared the messages blocked behind the
transaction, which are committed and come after a message of the same key in the transaction. Such messages are neither
acknowledged nor in any part of a delivery; so markDeletePosition stays below them. A message is blocked behind one
transaction, the transaction whose message of the key comes first; after its end, dispatch checks for the next. Entries
of few messages are kept by span (`span.py`); earlier releases wrote a record for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter

from storage.disk.codec import corrupt, decoded, key1, key2, key4, pack, unpack_first
from storage.disk.schema import AWAITED, HELD
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import message_set, span
from storage.subscription.open_subscription import OpenSubscription
from storage.values.position import Position, as_position


class SkippedTxn:
    """A transaction that a subscription skips.

    Attributes:
        examined: the position up to which dispatch has examined skipped messages after the end; `0:-1` before the end.
        blocked: number of messages blocked behind the transaction.
    """

    __slots__ = ("blocked", "examined", "txn")

    def __init__(self, txn: int) -> None:
        self.txn = txn
        self.examined = Position(0, -1)
        self.blocked = 0

    def encode(self) -> bytes:
        return pack([self.examined, self.blocked])

    @classmethod
    def decode(cls, txn: int, payload: memoryview) -> SkippedTxn:
        skipped = cls(txn)
        examined, skipped.blocked = unpack_first(payload, 2)
        skipped.examined = as_position(examined)
        return skipped


def find(view: ReadView, subscription_id: int, txn: int) -> SkippedTxn | None:
    """Find a skipped transaction of a subscription, or None."""
    key = key2(subscription_id, txn)
    payload = view.get(AWAITED, key)
    return None if payload is None else decoded(AWAITED, key, payload, partial(SkippedTxn.decode, txn))


def every(view: ReadView, subscription_id: int) -> Iterator[SkippedTxn]:
    """Yield the skipped transactions of a subscription, in the order of their begin."""
    for key, payload in view.scan(AWAITED, key1(subscription_id)):
        yield SkippedTxn.decode(int.from_bytes(key[8:], "big"), payload)


def skip(opened: OpenSubscription[WriteBatch], txn: int) -> SkippedTxn:
    """Open the record of a skipped transaction, or begin to skip the transaction."""
    key = key2(opened.subscription_id, txn)
    skipped = opened.view.open(AWAITED, key, partial(SkippedTxn.decode, txn))
    if skipped is None:
        skipped = SkippedTxn(txn)
        opened.view.add(AWAITED, key, skipped)
        opened.cursor.skipped_txns += 1
    return skipped


def remove(opened: OpenSubscription[WriteBatch], skipped: SkippedTxn) -> None:
    """Forget a transaction of which dispatch has examined everything.

    Dispatch starts after markDeletePosition. A message that was blocked behind the ended transaction and acknowledged
    meanwhile, by `skip` or an operator, can lie before that position: its record goes here.
    """
    view, subscription_id = opened.view, opened.subscription_id
    if skipped.blocked:
        for at, _ in blocked_behind(view, subscription_id, skipped.txn, Position(0, -1)):
            if at > opened.cursor.mark_delete:
                why = f"the message is held behind transaction {skipped.txn}, and was not examined at its end"
                raise corrupt(HELD, key4(subscription_id, skipped.txn, *at), why)
        view.delete_prefix(HELD, key2(subscription_id, skipped.txn))
        opened.cursor.blocked -= skipped.blocked
    view.remove(AWAITED, key2(subscription_id, skipped.txn))
    opened.cursor.skipped_txns -= 1


def clear(opened: OpenSubscription[WriteBatch]) -> None:
    """Forget all skipped transactions; dispatch must examine their messages again."""
    for database in (AWAITED, HELD):
        opened.view.delete_prefix(database, key1(opened.subscription_id))
    opened.cursor.skipped_txns = opened.cursor.blocked = 0
    opened.cursor.passes += 1


def block(
    opened: OpenSubscription[WriteBatch], skipped: SkippedTxn, at: Position, count: int, messages: int
) -> None:
    """Note that messages of an entry, which has `count` messages, wait behind a skipped transaction."""
    key = key4(opened.subscription_id, skipped.txn, *at)
    payload = opened.view.get(HELD, key)
    if payload is None and span.fits(count):
        block_in_span(opened, skipped, span.first_of(at), span.place(at, messages))
        return
    before = 0 if payload is None else message_set.decode(payload, count)
    opened.view.put(HELD, key, message_set.encode(before | messages, count))
    _count(opened, skipped, (messages & ~before).bit_count())


def block_in_span(
    opened: OpenSubscription[WriteBatch], skipped: SkippedTxn, first: Position, messages: int
) -> None:
    """Note that messages of a span wait behind a skipped transaction; none of them has a record of its entry."""
    key, before = _span_key(opened.subscription_id, skipped.txn, first), 0
    payload = opened.view.get(HELD, key)
    if payload is not None:
        before = span.decode(payload)
    opened.view.put(HELD, key, span.encode(before | messages))
    _count(opened, skipped, (messages & ~before).bit_count())


def unblock(opened: OpenSubscription[WriteBatch], skipped: SkippedTxn, messages: dict[Position, int]) -> None:
    """Note that the blocked messages of entries were examined."""
    for at in messages:
        opened.view.delete(HELD, key4(opened.subscription_id, skipped.txn, *at))
    for first, examined in span.by_span(messages.items()).items():
        key = _span_key(opened.subscription_id, skipped.txn, first)
        payload = opened.view.get(HELD, key)
        left = span.decode(payload) & ~examined if payload is not None else 0
        if left:
            opened.view.put(HELD, key, span.encode(left))
        elif payload is not None:
            opened.view.delete(HELD, key)
    _count(opened, skipped, -sum(inside.bit_count() for inside in messages.values()))


def _count(opened: OpenSubscription[WriteBatch], skipped: SkippedTxn, new: int) -> None:
    skipped.blocked += new
    opened.cursor.blocked += new


def _span_key(subscription_id: int, txn: int, first: Position) -> bytes:
    return key1(subscription_id) + span.key(txn, first)


def blocked_behind(
    view: ReadView, subscription_id: int, txn: int, after: Position
) -> Iterator[tuple[Position, bytes]]:
    """Yield the messages blocked behind a transaction after a position, in order.

    Each item has the position of an entry, and its messages as a record of the entry has them.
    """
    entries = _blocked_entries(view, subscription_id, txn, after)
    both = merge(entries, _blocked_in_spans(view, subscription_id, txn, after))
    for at, stored in groupby(both, key=itemgetter(0)):
        sets = [messages for _, messages in stored]
        # An entry with a record of its own, which an earlier release wrote, may have further messages in the span.
        yield at, sets[0] if len(sets) == 1 else _union(sets)


def _union(sets: list[bytes]) -> bytes:
    if message_set.ALL in sets:
        return message_set.ALL
    union = 0
    for messages in sets:
        union |= int.from_bytes(messages, "big")
    return span.as_stored(union)


def _blocked_entries(
    view: ReadView, subscription_id: int, txn: int, after: Position
) -> Iterator[tuple[Position, bytes]]:
    start = key4(subscription_id, txn, after[0], after[1] + 1)
    end = key1(subscription_id) + span.first_key(txn)
    for key, payload in view.scan(HELD, key2(subscription_id, txn), start, end):
        if key != end:
            yield span.unpack(key[16:])[0], bytes(payload)


def _blocked_in_spans(
    view: ReadView, subscription_id: int, txn: int, after: Position
) -> Iterator[tuple[Position, bytes]]:
    start = _span_key(subscription_id, txn, span.first_of(Position(after[0], max(after[1], 0))))
    for key, payload in view.scan(HELD, key2(subscription_id, txn), start):
        first = span.unpack(key[16:])[0]
        yield from span.entries_of(first, span.decode(payload) & ~span.through(first, after))
