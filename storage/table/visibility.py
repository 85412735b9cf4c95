"""Which version of a key a reader sees. Pure.

A row has its newest finalised version and at most one write intent, which is newer (invariant 18); what was superseded
is looked up elsewhere. An intent of a committed transaction counts as a version, one of an aborted transaction as
nothing, and one that is in progress is never shown (invariant 14) but to its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from storage.txn.options import CheckMode
from storage.values.txn_state import STATE_CODES, TransactionState

OPEN, COMMITTED, ABORTED = (
    STATE_CODES.index(each)
    for each in (TransactionState.OPEN, TransactionState.COMMITTED, TransactionState.ABORTED)
)

StateOf = Callable[[int], int]
"""The state code of a transaction, from the view that the row came from."""


class Version:
    """A value under a key: its version (the timestamp of the transaction that wrote it), that one's number, the bytes.

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


class Row:
    """What stands under one key. At least one of the two is there."""

    __slots__ = ("committed", "intent")

    def __init__(self, committed: Version | None, intent: Version | None) -> None:
        assert committed is None or intent is None or intent.version > committed.version, (
            "invariant 18: an intent is newer than all committed versions of its key"
        )
        self.committed = committed
        self.intent = intent


class Look(Enum):
    """What a snapshot read finds where the answer is not in the row itself."""

    OLDER = "among the superseded versions"
    PUSH = "an intent in progress stands in the way"


def snapshot(row: Row, at: int, me: int, state_of: StateOf) -> Version | Look | None:
    """The newest version at or below a timestamp, or the reader's own intent.

    Args:
        at: the reader's timestamp.
        me: the reader's transaction; 0 if it has written no intents.
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


def latest(row: Row, check: CheckMode, start: int, state_of: StateOf) -> Version | None:
    """The version that a read-committed read returns.

    Args:
        start: the last timestamp issued when the reader began.
    """
    intent = row.intent
    if intent is None or check is CheckMode.NONE or (check is CheckMode.MINIMAL and intent.version > start):
        return row.committed
    return intent if state_of(intent.txn) == COMMITTED else row.committed


def newest(row: Row, me: int, state_of: StateOf) -> Version | None:
    """The newest committed version, for a writer to be compared with; its own intent is none."""
    intent = row.intent
    if intent is not None and intent.txn != me and state_of(intent.txn) == COMMITTED:
        return intent
    return row.committed
