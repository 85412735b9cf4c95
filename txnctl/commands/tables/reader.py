"""Reading a table on the command line: at READ_COMMITTED, at a time in the past, or in a transaction.

The first two only read: the store is open read-only. A read in a serializable transaction changes the store: the read
is recorded and may push, so the store is opened for writing.
"""

from __future__ import annotations

from contextlib import contextmanager

from storage.errors import InvalidValue
from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import CHECK_MODE, MOMENT, TXN_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from storage import CheckMode, TxnID
    from storage.client.table import Table
    from txnctl.cli.context import Context

    F = TypeVar("F", bound=Callable[..., object])

_SERIALIZABLE = "SERIALIZABLE"


class Reading(OptionValues):
    """How to read a table: in a transaction, at a time, and the handling of write intents."""

    txn: TxnID | None
    at: int | None
    check: CheckMode | None


def reads_table(function: F) -> F:
    """Take --txn, --at and --check as `reading`, for `opened`."""
    for declare in (
        option(
            "--check",
            type=CHECK_MODE,
            help="What a read does on a write intent, if the transaction is not serializable. [default: minimal]",
        ),
        option(
            "--at",
            type=MOMENT,
            metavar="TIME",
            help="Read what was committed at that time, or version, as long as versions are kept.",
        ),
        option(
            "--txn", type=TXN_ID, envvar="TXNCTL_TXN", help="The transaction to read in. [env: TXNCTL_TXN]"
        ),
    ):
        function = declare(function)
    return option_values("reading", Reading)(function)


@contextmanager
def opened(context: Context, name: str, reading: Reading) -> Iterator[Table]:
    """The table, in a store opened for this way of reading.

    Raises:
        InvalidValue: --at in a transaction, --check in a serializable one.
        TableNotFound, TransactionNotFound
    """
    txn = reading.txn
    if reading.at is not None and (txn is not None or reading.check is not None):
        other = "--check" if txn is None else f"transaction {txn} (--txn, TXNCTL_TXN)"
        raise InvalidValue(
            f"--at reads what was committed then, outside any transaction; {other} does not go with it",
            hint="Leave one of them out."
            if txn is None
            else "Leave out --at, or: env -u TXNCTL_TXN txnctl ...",
        )
    if txn is None or context.store.reports.show_transaction(txn).row.isolation != _SERIALIZABLE:
        yield context.store.table(name)
        return
    from txnctl.commands.tables.losers import Losers

    with context.open_store(context.store_path, read_only=False) as store:
        losers = Losers(context, store)
        yield store.table(name)
        losers.told(txn=txn)
