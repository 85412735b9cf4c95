"""What a subscription with `--on-open skip` has passed over: transactions that it awaits (AWAITED, HELD).

A transaction is awaited from when dispatch passes its first entry until it has passed its marker, and has looked at
everything in between: at the transaction's own entries, and on Key_Shared at the messages held behind it, which are
committed and come after one of its messages of the same key. Neither is acknowledged or in any part of a delivery; so
markDeletePosition waits below them. A message is held behind one transaction, the one whose message of the key comes
first; when that has ended, dispatch looks whether another holds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1, key2, key4, pack, unpack
from storage.disk.schema import AWAITED, HELD
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import message_set
from storage.subscription.cursor import Cursor
from storage.topic.entry import Entry
from storage.txn import record as records
from storage.values.txn_state import TransactionState


class Awaited:
    """One transaction that a subscription awaits.

    Attributes:
        taken: after its end, dispatch has looked at what was passed over up to here; `0:-1` before.
        held: messages held behind it.
    """

    __slots__ = ("held", "taken", "txn")

    def __init__(self, txn: int) -> None:
        self.txn = txn
        self.taken: tuple[int, int] = (0, -1)
        self.held = 0


def find(view: ReadView, subscription_id: int, txn: int) -> Awaited | None:
    """The transaction as this subscription awaits it, or None if it does not."""
    payload = view.get(AWAITED, key2(subscription_id, txn))
    return None if payload is None else _decode(txn, payload)


def every(view: ReadView, subscription_id: int) -> Iterator[Awaited]:
    """All that a subscription awaits, in the order in which they were begun."""
    for key, payload in view.scan(AWAITED, key1(subscription_id)):
        yield _decode(int.from_bytes(key[8:], "big"), payload)


def _decode(txn: int, payload: memoryview) -> Awaited:
    found = Awaited(txn)
    taken, found.held = unpack(payload)
    found.taken = tuple(taken)
    return found


def save(batch: WriteBatch, subscription_id: int, cursor: Cursor, awaited: Awaited) -> None:
    """Write what is awaited. The caller saves the cursor."""
    key = key2(subscription_id, awaited.txn)
    cursor.awaited += not batch.has(AWAITED, key)
    batch.put(AWAITED, key, pack([awaited.taken, awaited.held]))


def remove(batch: WriteBatch, subscription_id: int, cursor: Cursor, awaited: Awaited) -> None:
    """Remove a transaction after its last entry was looked at. The caller saves the cursor.

    Dispatch starts after markDeletePosition. A message that was held behind the ended transaction and that `skip` or an
    operator acknowledged in the meantime can lie before that position: its record goes here.
    """
    if awaited.held:
        for at, _ in held_behind(batch, subscription_id, awaited.txn, (0, -1)):
            assert at <= cursor.mark_delete, "a held message after markDeletePosition was looked at"
        batch.delete_prefix(HELD, key2(subscription_id, awaited.txn))
        cursor.held -= awaited.held
    batch.delete(AWAITED, key2(subscription_id, awaited.txn))
    cursor.awaited -= 1


def clear(batch: WriteBatch, subscription_id: int, cursor: Cursor) -> None:
    """Forget all that was passed over; dispatch must look at it again. The caller saves the cursor."""
    for database in (AWAITED, HELD):
        batch.delete_prefix(database, key1(subscription_id))
    cursor.awaited = cursor.held = 0
    cursor.passes += 1


def hold(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    awaited: Awaited,
    at: tuple[int, int],
    count: int,
    messages: int,
) -> None:
    """These messages of an entry, which has `count`, wait behind a transaction. The caller saves it and the cursor."""
    key = key4(subscription_id, awaited.txn, *at)
    payload = batch.get(HELD, key)
    before = 0 if payload is None else message_set.decode(payload, count)
    batch.put(HELD, key, message_set.encode(before | messages, count))
    new = (messages & ~before).bit_count()
    awaited.held += new
    cursor.held += new


def let_go(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    awaited: Awaited,
    at: tuple[int, int],
    messages: int,
) -> None:
    """What was held of an entry is looked at. The caller saves the awaited transaction and the cursor."""
    batch.delete(HELD, key4(subscription_id, awaited.txn, *at))
    awaited.held -= messages.bit_count()
    cursor.held -= messages.bit_count()


def held_behind(
    view: ReadView, subscription_id: int, txn: int, after: tuple[int, int]
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """What is held behind a transaction after a position, in order: position and messages as stored."""
    start = key4(subscription_id, txn, after[0], after[1] + 1)
    for key, payload in view.scan(HELD, key2(subscription_id, txn), start):
        yield (int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big")), bytes(payload)


def holder_of(view: ReadView, subscription_id: int, entry: Entry, messages: int) -> int:
    """The open transaction behind which any of these messages of an entry is held; 0 if there is none."""
    for each in every(view, subscription_id):
        key = key4(subscription_id, each.txn, entry.ledger_id, entry.entry_id)
        payload = view.get(HELD, key) if each.held else None
        if payload is None or not message_set.decode(payload, entry.count) & messages:
            continue
        if records.state_of(view, each.txn) is TransactionState.OPEN:
            return each.txn
    return 0
