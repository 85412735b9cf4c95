"""Running a function in a transaction, again and again until no conflict is lost, and groups: the base of `Store`.

def transfer(txn):
    balance = int(accounts.get(b"B1", txn=txn) or 0)
    accounts.put(b"B1", b"%d" % (balance - 100), txn=txn)

store.run_transaction(transfer)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from storage.actions import Hint, Keyword
from storage.errors import Conflict
from storage.limits import RETRIES
from storage.txn.options import CheckMode, Priority, TransactionIsolation, options_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.client.group import EndGroup
    from storage.client.transaction import Transaction
    from storage.disk.connection import Connection

    T = TypeVar("T")
    M = TypeVar("M")

EVERY_TRY_LOST = Hint(
    "Every try lost: give more {}, or a higher {}.", Keyword("retries"), Keyword("priority")
)


class TransactionRunner:
    """A store that runs functions in transactions, and groups what a thread ends."""

    if TYPE_CHECKING:
        connection: Connection
        transaction: Callable[..., Transaction]

    def group(self) -> EndGroup:
        """Write what this thread commits and sends within the block together: many ends in one flush.

            with store.group() as group:
                ...

        Raises:
            GroupRefused: at the end of the block, if some ends were refused; `EndGroup.refused` has them.
            WriterBusy, StoreFull: nothing of the rest was stored, and its transactions are open as before.
            OutcomeUnknown: as a commit; for every end that the store transaction had.
        """
        from storage.client.group import EndGroup

        return EndGroup(self.connection)

    @overload
    def run_transaction(
        self, function: Callable[[Transaction], T], *, retries: int = ...,
        timeout: float | None = ..., labels: dict[str, str] | None = ...,
        isolation: TransactionIsolation | str = ..., check: CheckMode | str | None = ...,
        priority: Priority | str = ...,
    ) -> T: ...  # fmt: skip

    @overload
    def run_transaction(
        self, function: Callable[[Transaction, M], T], *, receive: Callable[[], M], retries: int = ...,
        timeout: float | None = ..., labels: dict[str, str] | None = ...,
        isolation: TransactionIsolation | str = ..., check: CheckMode | str | None = ...,
        priority: Priority | str = ...,
    ) -> T: ...  # fmt: skip

    def run_transaction(
        self, function: Callable[..., T], *, receive: Callable[[], Any] | None = None, retries: int = RETRIES,
        timeout: float | None = None, labels: dict[str, str] | None = None,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None, priority: Priority | str = Priority.MEDIUM,
    ) -> T:  # fmt: skip
        """Call a function with a new transaction, commit, and return the result of the function.

        After a lost conflict over a table the whole is run again, in a new transaction of a higher priority, after a
        wait of random length that grows with each loss. So the function may run several times: effects outside of
        the transaction belong after this call. Within a group the commit is durable at the return all the same, with
        the group's queue before it. Any different exception aborts the transaction, and is raised.

        Args:
            function: called with the transaction of the try.
            receive: called before each try begins; the result is the second argument of `function`. A transaction with
                tables consumes only messages that are older: receive, then begin.
            retries: further tries after the first; 0 for none.
            timeout, labels, isolation, check, priority: as `Store.transaction`, of each try; the priority of the first.

        Raises:
            LostConflict, WriteTooOld: the last try lost a conflict as well.
            InvalidValue, InvalidName: an argument out of bounds.
            what `function`, `receive` and `Transaction.commit` raise.
        """
        from storage.client.tries import Tries

        options = options_of(isolation, check, priority)
        tries = Tries(self.connection, retries, options.priority)
        while True:
            received = () if receive is None else (receive(),)
            tries.begin()
            txn = self.transaction(
                timeout=timeout,
                labels=labels,
                isolation=options.isolation,
                check=check,
                priority=tries.priority,
            )
            txn.commits_at_once = True
            try:
                with txn:
                    return function(txn, *received)
            except Conflict as error:
                if tries.find_lost(txn.known_id) is None:
                    raise
                if not tries.count_loss():
                    if retries:
                        error.hint = EVERY_TRY_LOST
                    raise
            self.connection.clock.sleep(tries.draw_wait_s())
