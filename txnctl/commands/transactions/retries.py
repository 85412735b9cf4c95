"""The tries of `transactions run --retries N`: the command again, in a new transaction, after a lost conflict."""

from __future__ import annotations

import os
import signal
import stat

from storage.client.tries import Tries
from storage.errors import Conflict, InvalidValue
from storage.table.conflict import loss_text
from storage.txn.options import Priority
from txnctl.cli.running_tries import LAST_TRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from storage import Transaction, TxnID
    from storage.table.conflict import Doom
    from txnctl.cli.context import Context
    from txnctl.cli.supervise import Ending

_STDIN = 0
_INTERRUPTS = (128 + signal.SIGINT, 128 + signal.SIGQUIT)


class CommandTry:
    """One try: the priority of the transaction to begin, and once known the transaction and the command's ending.

    Attributes:
        retries_left: further tries that may follow; None without `--retries`.
    """

    __slots__ = ("ending", "priority", "retries_left", "txn")

    def __init__(self, priority: Priority, retries_left: int | None) -> None:
        self.priority = priority
        self.retries_left = retries_left
        self.txn: Transaction | TxnID | None = None
        self.ending: Ending | None = None

    @property
    def was_stopped(self) -> bool:
        """Whether the command was not run, or a user or a supervisor has stopped the run."""
        ending = self.ending
        return ending is None or ending.stopped_by is not None or ending.status in _INTERRUPTS


def run(
    context: Context, retries: int, priority: Priority | None, run_once: Callable[[CommandTry], int]
) -> int:
    """Run a command in a transaction up to `retries` + 1 times; the exit code of the last try.

    Only a conflict that the transaction lost is followed by a further try, and no signal that stopped the command.

    Args:
        priority: of the first try, raised with each loss; medium if None.
        run_once: runs the command once, notes transaction and ending in the try, and returns the exit code.

    Raises:
        InvalidValue: standard input cannot be read again.
        what `run_once` raises in the last try.
    """
    start = _start_of_input() if retries else None
    tries = Tries(context.store.connection, retries, priority or Priority.MEDIUM)
    while True:
        tries.begin()
        this = CommandTry(tries.priority, retries + 1 - tries.number if retries else None)
        error, status = None, 0
        try:
            status = run_once(this)
        except Conflict as conflict:
            error = conflict
        lost = None if not retries or this.was_stopped else _find_lost(tries, this)
        if lost is None or not tries.count_loss():
            if error is not None:
                if lost is not None:
                    error.hint = LAST_TRY
                raise error
            return status
        wait_s = tries.draw_wait_s()
        context.note(
            f"try {tries.number - 1} of {retries + 1} {loss_text(lost)}; the next one begins in {wait_s:.1f} s"
        )
        context.store.connection.clock.sleep(wait_s)
        if start is not None:
            os.lseek(_STDIN, start, os.SEEK_SET)


def _find_lost(tries: Tries, this: CommandTry) -> Doom | None:
    from storage import TxnID

    return tries.find_lost(this.txn if this.txn is None or isinstance(this.txn, TxnID) else this.txn.known_id)


def _start_of_input() -> int | None:
    """The position of standard input at which every try begins; None for an input without content.

    Raises:
        InvalidValue: standard input can be read once only.
    """
    try:
        status = os.fstat(_STDIN)
    except OSError:
        return None  # closed: no try reads anything
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev:
        return None
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISBLK(status.st_mode):
        raise InvalidValue(
            "--retries: standard input can be read once only, so a further try would miss it",
            hint="Give the command its input from a file (< FILE), or none (< /dev/null).",
        )
    return os.lseek(_STDIN, 0, os.SEEK_CUR)
