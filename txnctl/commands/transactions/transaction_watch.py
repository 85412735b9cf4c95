"""`transactions run` checks its transaction while the command runs, and ends the command after an operator's abort."""

from __future__ import annotations

from signal import SIGTERM

from storage.errors import TxnctlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import Signals

    from storage import TxnID
    from storage.reports.transaction_end import TransactionEnd
    from txnctl.cli.context import Context


class TransactionWatch:
    """Looks, and says so once when an operator has aborted the transaction.

    An end by the command itself, a lost conflict or a passed deadline is the command's own affair: the next txnctl in
    the command is told, and the command may clean up as it likes.
    """

    def __init__(self, context: Context, txn: TxnID, command: str, *, ends: bool) -> None:
        """Args:
        ends: have the command ended.
        """
        self._context = context
        self._txn = txn
        self._command = command
        self._ends = ends
        self._is_over = False

    def look(self) -> Signals | None:
        """The signal for the command: SIGTERM, once, when an operator has aborted the transaction."""
        if self._is_over:
            return None
        try:
            end = self._context.store.reports.transaction_end(self._txn)
        except TxnctlError as error:
            self._is_over = True
            self._context.warn(f"transaction {self._txn} cannot be checked any more: {error.message}")
            return None
        if end is None:
            return None
        self._is_over = True
        if not end.by_operator:
            return None
        goes = "is told to end" if self._ends else "goes on (--on-abort continue)"
        self._context.warn(f"transaction {self._txn} was {end}; {self._command} {goes}")
        return SIGTERM if self._ends else None

    def end(self) -> TransactionEnd | None:
        """How the transaction ended; None while it is open, or where that cannot be read."""
        try:
            return self._context.store.reports.transaction_end(self._txn)
        except TxnctlError:
            return None
