"""Options of a transaction: isolation, check mode, priority. Pure.

Serializable transactions read and write tables, topics and subscriptions. Read-committed ones only read tables, and
abort no transaction (K2-3SI with read-committed reads).
"""

from __future__ import annotations

from enum import Enum

from storage.actions import Hint, Keyword
from storage.errors import InvalidValue
from storage.values.names import named


class TransactionIsolation(Enum):
    """The guarantee of a transaction over tables."""

    SERIALIZABLE = "SERIALIZABLE"
    READ_COMMITTED = "READ_COMMITTED"


class CheckMode(Enum):
    """The action of a read-committed read at a write intent."""

    MINIMAL = "minimal"
    """Look the transaction up if it began before the reader."""
    FULL = "full"
    """Always look the transaction up."""
    NONE = "none"
    """Never look: return the version before the intent, even if that transaction has committed."""


class Priority(Enum):
    """The rank of a transaction in a conflict: the higher survives; if equal, the transaction that began later."""

    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    LOWEST = "lowest"


class TransactionOptions:
    """Isolation, check mode and priority, given by value or name.

    Attributes:
        stored: isolation, check mode and priority as a transaction's record has them.

    Raises:
        InvalidValue: no such constant; a check mode on a serializable transaction, which has none.
    """

    __slots__ = ("check", "isolation", "priority", "stored")

    def __init__(
        self,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None,
        priority: Priority | str = Priority.MEDIUM,
    ) -> None:
        isolation = (
            named(TransactionIsolation, isolation, "transaction isolation")
            or TransactionIsolation.SERIALIZABLE
        )
        check = named(CheckMode, check, "check mode")
        self.priority = named(Priority, priority, "priority") or Priority.MEDIUM
        if check is not None and isolation is TransactionIsolation.SERIALIZABLE:
            raise InvalidValue(
                "a serializable transaction has no check mode: it pushes what it meets",
                hint=Hint(
                    "Leave {} out, or begin with {}.",
                    Keyword("check"),
                    Keyword("isolation", "read-committed"),
                ),
            )
        self.isolation = isolation
        self.check = check
        if isolation is TransactionIsolation.READ_COMMITTED and check is None:
            self.check = CheckMode.MINIMAL
        self.stored = (isolation.value, None if self.check is None else self.check.value, self.priority.value)


SERIALIZABLE = TransactionOptions()
"""The default options."""


def options_of(
    isolation: TransactionIsolation | str, check: CheckMode | str | None, priority: Priority | str
) -> TransactionOptions:
    """The options of a new transaction; mostly the default ones, made once.

    Raises:
        InvalidValue: as `TransactionOptions`
    """
    if isolation is SERIALIZABLE.isolation and check is None and priority is SERIALIZABLE.priority:
        return SERIALIZABLE
    return TransactionOptions(isolation, check, priority)
