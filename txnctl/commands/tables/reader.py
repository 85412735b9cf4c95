"""Reading a table on the command line: at READ_COMMITTED, at a time in the past, or in a transaction.

The first two only read: the store is open read-only. A read in a serializable transaction changes the store: the read
is recorded and may push, so the store is opened for writing.
"""

from __future__ import annotations

from contextlib import contextmanager

from storage.errors import InvalidValue
from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.time_values import MOMENT
from txnctl.cli.value_types import CHECK_MODE, TXN_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from storage import CheckMode, TxnID
    from storage.client.final_version import FinalVersion
    from storage.client.table import Table
    from txnctl.cli.context import Context

    F = TypeVar("F", bound=Callable[..., object])

_SERIALIZABLE = "SERIALIZABLE"


class Reading(OptionValues):
    """How to read a table: in a transaction, at a time, and the handling of write intents."""

    txn: TxnID | None
    at: int | FinalVersion | None
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
            help="Read what was committed at that time, or version, as long as versions are kept; `now` is the newest.",
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
        table = context.store.table(name)
        if isinstance(reading.at, int):
            reading.at = final_version(context, table, reading.at)
        yield table
        return
    from txnctl.commands.tables.losers import Losers

    with context.open_store(context.store_path, read_only=False) as store:
        losers = Losers(context, store)
        yield store.table(name)
        losers.told(txn=txn)


def final_version(context: Context, table: Table, at: int) -> FinalVersion:
    """The version to read at; one that is not the version asked for is named on standard error."""
    from txnctl.output.timestamp import NOW

    final = table.version_at(None if at == NOW else at)
    if final.version != at:
        from storage.client.final_version import blocker_text
        from storage.values.timestamps import rfc3339

        why = "no later one has been issued"
        if final.waits_for is not None:
            why = f"{blocker_text(final)} can still write later ones"
        time = rfc3339(final.version // 1_000_000)
        context.note(f"table {table.name} is read at version {final.version} ({time}): {why}")
    return final
