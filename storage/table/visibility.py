"""Visibility: the version of a key that a reader sees. Pure.

A row has its newest finalised version and at most one write intent, which is newer (invariant 18); superseded versions
are stored elsewhere. An intent of a committed transaction counts as a version, an intent of an aborted transaction is
ignored, and an intent in progress is visible only to its own transaction (invariant 14).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from storage.errors import CorruptStore
from storage.txn.options import CheckMode
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import STATE_CODES, TransactionState

OPEN, COMMITTED, ABORTED = (
    STATE_CODES.index(state)
    for state in (TransactionState.OPEN, TransactionState.COMMITTED, TransactionState.ABORTED)
)

StateOf = Callable[[int], int]
"""The state code of a transaction, from the view that the row came from."""


class Version:
    """A value of a key: version (the timestamp of the writing transaction), the transaction's number, and the bytes.

    The value is None where the key was deleted.
    """

    __slots__ = ("txn", "value", "version")

    def __init__(self, version: int, txn: int, value: bytes | None) -> None:
        self.version = version
        self.txn = txn
        self.value = value

    def __repr__(self) -> str:
        return f"Version({self.version}, {self.txn}, {self.value!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return (self.version, self.txn, self.value) == (other.version, other.txn, other.value)

    __hash__ = None  # type: ignore[assignment]


class Row(NamedTuple):
    """A key with the value that was seen, the version of the value, and the number of the writing transaction.

    The number is 0 for a write of the reading transaction itself, as long as that has no number.
    """

    key: bytes
    value: bytes
    version: int
    txn: int


class StoredRow:
    """The newest finalised version and the write intent of one key; at least one of the two is not None."""

    __slots__ = ("committed", "intent")

    def __init__(self, committed: Version | None, intent: Version | None) -> None:
        if committed is not None and intent is not None and intent.version <= committed.version:
            raise CorruptStore("an intent is not newer than the committed version of its key (invariant 18)")
        self.committed = committed
        self.intent = intent


class Look(Enum):
    """The result of a snapshot read where the version is not in the row itself."""

    OLDER = "among the superseded versions"
    PUSH = "an intent in progress stands in the way"


def snapshot(row: StoredRow, at: int, me: int, state_of: StateOf) -> Version | Look | None:
    """Find the newest version at or below a timestamp, or the reader's own intent.

    Args:
        at: the reader's timestamp.
        me: the reader's transaction; 0 if the reader has written no intents.
    """
    intent = row.intent
    if intent is not None and intent.version <= at:
        if intent.txn == me:
            return intent
        state = state_of(intent.txn)
        if state == OPEN:
            return Look.PUSH
        if state == COMMITTED:
            return intent
    committed = row.committed
    if committed is None or committed.version <= at:
        return committed
    return Look.OLDER


def latest(row: StoredRow, check: CheckMode, start: int, state_of: StateOf) -> Version | None:
    """Find the version that a read-committed read returns.

    Args:
        start: the last timestamp issued when the reader began.
    """
    intent = row.intent
    if intent is None or check is CheckMode.NONE or (check is CheckMode.MINIMAL and intent.version > start):
        return row.committed
    return intent if state_of(intent.txn) == COMMITTED else row.committed


def newest(row: StoredRow, me: int, state_of: StateOf) -> Version | None:
    """Find the newest committed version, for the check of a write; the writer's own intent does not count."""
    intent = row.intent
    if intent is not None and intent.txn != me and state_of(intent.txn) == COMMITTED:
        return intent
    return row.committed
