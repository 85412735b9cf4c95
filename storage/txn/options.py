"""How a transaction may be begun: its isolation, its check mode, its priority. Pure.

Serializable transactions read and write tables, topics and subscriptions. Read-committed ones only read tables, and
disturb nobody (K2-3SI with read-committed reads).
"""

from __future__ import annotations

from enum import Enum

from storage.errors import InvalidValue
from storage.values.names import named


class TransactionIsolation(Enum):
    """What a transaction is promised over tables."""

    SERIALIZABLE = "SERIALIZABLE"
    READ_COMMITTED = "READ_COMMITTED"


class CheckMode(Enum):
    """What a read-committed read does when it meets a write intent."""

    MINIMAL = "minimal"
    """Looks the transaction up if it began before the reader."""
    FULL = "full"
    """Always looks it up."""
    NONE = "none"
    """Never: returns the version before the intent, even if that transaction has committed."""


class Priority(Enum):
    """Who survives when two transactions meet; if equal, the one that began later."""

    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    LOWEST = "lowest"


class TransactionOptions:
    """The three together, as a caller asked for them, by value or name.

    Raises:
        InvalidValue: no such constant; a check mode on a serializable transaction, which has none.
    """

    __slots__ = ("check", "isolation", "priority")

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
                hint="Leave --check out, or begin with --isolation read-committed.",
            )
        self.isolation = isolation
        self.check = check
        if isolation is TransactionIsolation.READ_COMMITTED and check is None:
            self.check = CheckMode.MINIMAL


SERIALIZABLE = TransactionOptions()
"""What a transaction is if nothing is asked for."""
