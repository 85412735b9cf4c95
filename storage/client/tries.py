"""The tries of one piece of work in transactions: whether a lost one is worth a further try, and the wait before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import InvalidValue
from storage.process import chance
from storage.txn.back_off import BackOff
from storage.txn.options import Priority

if TYPE_CHECKING:
    from storage.disk.connection import Connection
    from storage.table.conflict import Doom
    from storage.values.txn_id import TxnID

_NS_PER_S = 1_000_000_000


class Tries:
    """See the module.

    Attributes:
        retries: the most further tries.
    """

    __slots__ = ("_back_off", "_begun_ns", "_connection", "_priority", "retries")

    def __init__(self, connection: Connection, retries: int, priority: Priority = Priority.MEDIUM) -> None:
        """Args:
        priority: of the first try.

        Raises:
            InvalidValue: the number of retries is no whole number, or negative.
        """
        if type(retries) is not int or retries < 0:
            raise InvalidValue(f"retries is a whole number from 0 on, not {retries!r}")
        self.retries = retries
        self._connection = connection
        self._priority = priority
        self._back_off = BackOff()
        self._begun_ns = 0

    @property
    def number(self) -> int:
        """The number of the present try, from 1 on; of the next one once a loss is counted."""
        return self._back_off.losses + 1

    @property
    def priority(self) -> Priority:
        """The priority of the present try, or of the next one once a loss is counted."""
        return self._back_off.raised(self._priority)

    def begin(self) -> None:
        """Begin a try: from now on its time is taken."""
        self._begun_ns = self._connection.clock.boot_ns()

    def find_lost(self, txn: TxnID | None) -> Doom | None:
        """Find the conflict over which the store aborted a transaction; None for a different end, or none.

        Args:
            txn: None for a transaction without a number, which was in no conflict.
        """
        from storage.table.conflict import find_lost

        if txn is None:
            return None
        with self._connection.view() as view:
            return find_lost(view, txn.least)

    def count_loss(self) -> bool:
        """Count the present try as lost; whether a further one is allowed."""
        self._back_off.note_loss((self._connection.clock.boot_ns() - self._begun_ns) / _NS_PER_S)
        return self._back_off.losses <= self.retries

    def draw_wait_s(self) -> float:
        """Draw the seconds to wait before the next try. No view and no gate is held during a wait."""
        return self._back_off.wait_s(chance.share())
