"""READ_COMMITTED and READ_UNCOMMITTED: the bound of a subscription, and the messages left out (PIP-298). Pure.

    level              bound                 left out
    READ_COMMITTED     maxReadPosition       messages of aborted transactions
      on-open skip     lastConfirmedEntry    the same, and messages of open transactions until they are decided
    READ_UNCOMMITTED   lastConfirmedEntry    nothing: open, committed and aborted messages are all delivered

Markers are delivered at neither level. At or below maxReadPosition every transaction is decided, so at
READ_COMMITTED "not aborted" is "plain or committed" (invariant 2).
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum

from storage.errors import InvalidValue
from storage.topic.entry import MESSAGES
from storage.values.names import named
from storage.values.position import Position


class IsolationLevel(Enum):
    """`subscriptionIsolationLevel` of PIP-298."""

    READ_COMMITTED = "READ_COMMITTED"
    READ_UNCOMMITTED = "READ_UNCOMMITTED"


class OnOpen(Enum):
    """The effect of an open transaction on READ_COMMITTED: block all later messages, or skip only its own."""

    BLOCK = "block"
    SKIP = "skip"


class SubscriptionType(Enum):
    """The rule by which the consumers of a subscription share the messages."""

    EXCLUSIVE = "Exclusive"
    FAILOVER = "Failover"
    SHARED = "Shared"
    KEY_SHARED = "Key_Shared"

    @property
    def is_ordered(self) -> bool:
        """Exclusive and Failover: one consumer at a time, cumulative acknowledgement allowed."""
        return self in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class SubscriptionMode:
    """Type, isolation level and on-open that are asked of a subscription; None leaves a value as it is.

    Each is given as the constant, or by name.

    Raises:
        InvalidValue: no such constant.
    """

    __slots__ = ("level", "on_open", "type")

    def __init__(
        self,
        type_: SubscriptionType | str | None = None,
        level: IsolationLevel | str | None = None,
        on_open: OnOpen | str | None = None,
    ) -> None:
        self.type = named(SubscriptionType, type_, "subscription type")
        self.level = named(IsolationLevel, level, "isolation level")
        self.on_open = named(OnOpen, on_open, "on-open")


def bound(
    level: IsolationLevel, max_read: Position, last_confirmed: Position, on_open: OnOpen = OnOpen.BLOCK
) -> Position:
    """The last position that a reader of this level may read."""
    reads_on = level is IsolationLevel.READ_UNCOMMITTED or on_open is OnOpen.SKIP
    return last_confirmed if reads_on else max_read


def check_on_open(type_: SubscriptionType, level: IsolationLevel, on_open: OnOpen) -> None:
    """Check that a subscription of this type and level may skip open transactions.

    Raises:
        InvalidValue: Exclusive and Failover deliver in order of position; READ_UNCOMMITTED waits for nothing.
    """
    if on_open is OnOpen.BLOCK:
        return
    if type_.is_ordered:
        raise InvalidValue(
            f"on-open skip is for Shared and Key_Shared: {type_.value} delivers in the order of the log",
            hint="Take on-open block with it, or one of those types.",
        )
    if level is IsolationLevel.READ_UNCOMMITTED:
        raise InvalidValue(
            "on-open skip belongs to READ_COMMITTED: READ_UNCOMMITTED waits for no transaction",
            hint="Take on-open block with it, or READ_COMMITTED.",
        )


def delivers(level: IsolationLevel, kind: int, txn: int, aborted: Container[int]) -> bool:
    """Whether an entry at or below the bound is delivered at this level.

    Args:
        kind, txn: of the entry's header.
        aborted: ids of the aborted transactions around it.
    """
    return kind == MESSAGES and (level is IsolationLevel.READ_UNCOMMITTED or txn not in aborted)


def check_compacted(level: IsolationLevel, type_: SubscriptionType | None = None) -> None:
    """Check that a reader of this level, or a subscription of this type, may read a compacted view.

    Raises:
        InvalidValue: the view has committed messages alone, and each key once, in the order of positions.
    """
    if level is not IsolationLevel.READ_COMMITTED:
        raise InvalidValue(
            "a compacted view is read at READ_COMMITTED: open and aborted messages are not in it",
            hint="Leave the isolation level out, or read the log.",
        )
    if type_ is not None and not type_.is_ordered:
        raise InvalidValue(
            f"a compacted view is for readers, Exclusive and Failover: {type_.value} shares messages out",
            hint="Take one of those types, or read the log.",
        )
