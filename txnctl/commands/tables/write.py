"""One write to a table: the options, the transaction and the result of `put` and `rm`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from storage.errors import InvalidValue
from storage.values.txn_id import TxnID
from txnctl.cli.decorators import option
from txnctl.cli.value_types import PRIORITY, TXN_ID
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.tables.losers import ABORTED
from txnctl.fields.table import KEY, NAME, VERSION_TIME, version_ms
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import Priority, Transaction
    from txnctl.cli.context import Context
    from txnctl.commands.tables.losers import Losers


class WrittenKey(NamedTuple):
    """A write of a key: the version, and the transactions aborted on the way."""

    table: str
    key: bytes
    version_ns: int
    version_at_ms: int
    txn_id: TxnID | None
    transactions_aborted: list[TxnID]


WRITTEN = fields_of(
    WrittenKey,
    {
        **NAME,
        **KEY,
        "version_ns": "The version that was written: when its transaction began, in nanoseconds.",
        **VERSION_TIME,
        "txn_id": Help(
            "The transaction that it waits for; null where it was committed at once.", heading="TXN"
        ),
        **ABORTED,
    },
)

in_transaction = option(
    "--txn", type=TXN_ID, envvar="TXNCTL_TXN", help="The transaction to write in. [env: TXNCTL_TXN]"
)
with_priority = option(
    "--priority",
    type=PRIORITY,
    help="Without --txn: of the write, where an open transaction holds the key. [default: medium]",
)
with_if_version = option(
    "--if-version",
    type=WholeNumber(1),
    metavar="VERSION",
    help="Only if the value still has this version: the one that was looked at.",
)


@contextmanager
def write_transaction(
    context: Context, txn: TxnID | None, priority: Priority | None, *, reads: bool = False
) -> Iterator[TxnID | Transaction | None]:
    """The transaction to write in: the named transaction; a new transaction for a priority or a read before the write;
    else None, for a single write.

    Raises:
        InvalidValue: a priority for a transaction that has one.
    """
    if txn is not None and priority is not None:
        raise InvalidValue(
            f"--priority is that of the write's own transaction; {txn} (--txn, TXNCTL_TXN) was begun with one",
            hint="Leave one of them out: env -u TXNCTL_TXN txnctl ...",
        )
    if txn is not None or (priority is None and not reads):
        yield txn
        return
    from storage import Priority

    with context.store.transaction(priority=priority or Priority.MEDIUM) as own:
        yield own


def written_row(table: str, key: bytes, version: int, txn: TxnID | None, losers: Losers) -> WrittenKey:
    """The result of a write."""
    return WrittenKey(table, key, version, version_ms(version), txn, losers.told(version=version))


def show_written(context: Context, row: WrittenKey, what: str) -> None:
    """Print the result; `what` is the beginning of the sentence for people."""
    waits = "" if row.txn_id is None else f", visible when transaction {row.txn_id} commits"
    context.show(row, table=lambda _: f"{what} {row.table}: version {row.version_ns}{waits}.")
