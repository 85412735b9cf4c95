"""READ_COMMITTED and READ_UNCOMMITTED: how far a subscription reads, and what it leaves out (PIP-298). Pure.

    level              bound                 left out
    READ_COMMITTED     maxReadPosition       messages of aborted transactions
    READ_UNCOMMITTED   lastConfirmedEntry    nothing: open, committed and aborted messages are all delivered

Markers are delivered at neither level. At or below maxReadPosition every transaction is decided, so at
READ_COMMITTED "not aborted" is "plain or committed" (invariant 2).
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum

from storage.ledger.entry import MESSAGES


class IsolationLevel(Enum):
    """`subscriptionIsolationLevel` of PIP-298."""

    READ_COMMITTED = "READ_COMMITTED"
    READ_UNCOMMITTED = "READ_UNCOMMITTED"


class SubscriptionType(Enum):
    """How the consumers of a subscription share its messages."""

    EXCLUSIVE = "Exclusive"
    FAILOVER = "Failover"
    SHARED = "Shared"
    KEY_SHARED = "Key_Shared"

    @property
    def is_ordered(self) -> bool:
        """Exclusive and Failover: one consumer at a time, cumulative acknowledgement allowed."""
        return self in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


def bound(
    level: IsolationLevel, max_read: tuple[int, int], last_confirmed: tuple[int, int]
) -> tuple[int, int]:
    """The last position that a reader of this level may be handed."""
    return last_confirmed if level is IsolationLevel.READ_UNCOMMITTED else max_read


def delivers(level: IsolationLevel, kind: int, txn: int, aborted: Container[int]) -> bool:
    """Whether an entry at or below the bound is handed out at this level.

    Args:
        kind, txn: of the entry's header.
        aborted: ids of the aborted transactions around it.
    """
    return kind == MESSAGES and (level is IsolationLevel.READ_UNCOMMITTED or txn not in aborted)
