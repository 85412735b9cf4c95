"""`txnctl tables import`: rows of a file into a table, in one transaction."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import click

from storage.errors import (
    AlreadyExists,
    Conflict,
    InvalidValue,
    TransactionNotOpen,
    TransactionTimedOut,
    TxnctlError,
)
from storage.values.txn_id import TxnID
from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.exit_cleanup import leave_soon
from txnctl.cli.value_types import DURATION, TABLE, TXN_ID, NamedConstant
from txnctl.commands.tables.losers import ABORTED, Losers
from txnctl.fields.table import NAME
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import Store, Transaction
    from storage.client.table import Table
    from txnctl.cli.context import Context
    from txnctl.input.source import Source


class Imported(NamedTuple):
    """An import into a table: the number of rows, and the transactions aborted on the way."""

    table: str
    rows: int
    txn_id: TxnID | None
    transactions_aborted: list[TxnID]


IMPORTED = fields_of(
    Imported,
    {
        **NAME,
        "rows": "Rows read; where a key comes twice, the last one counts.",
        "txn_id": Help("The transaction they wait for; null where they are committed.", heading="TXN"),
        **ABORTED,
    },
)


@argument("table", type=TABLE, help="The table.")
@argument("file", required=False, type=click.Path(), help="What to read; `-` or nothing is standard input.")
@option(
    "--input",
    "format_",
    type=NamedConstant("format", ("ndjson", "csv")),
    help="What the input is. [default: ndjson]",
)
@option("--create", is_flag=True, help="Create the table if it is missing.")
@option(
    "--txn",
    type=TXN_ID,
    envvar="TXNCTL_TXN",
    help="The transaction to write in, in place of one of its own. [env: TXNCTL_TXN]",
)
@option(
    "--timeout",
    type=DURATION,
    help="Without --txn: the input ends so long after the start, or nothing is imported; 24h at most. [default: 10m]",
)
@changes_store()
@output(IMPORTED, name_field="table")
@example(
    """echo '{"key":"B1","value":"100"}' | txnctl tables import accounts""",
    setup="txnctl tables create accounts",
)
@example("printf 'key,value\\nB1,100\\n' | txnctl tables import accounts --input csv --create")
def import_(
    context: Context,
    table: str,
    file: str | None,
    format_: str | None,
    create: bool,
    txn: TxnID | None,
    timeout: float | None,
) -> None:
    r"""Write rows of a file into a table, all or none.

    \b
    ndjson  An object a line, the output of `tables export`: key or keyBase64,
            value or valueBase64. Further names are ignored.
    csv     RFC 4180 under a header with the columns key and value, or
            keyBase64 and valueBase64, or all four.

    The import is one transaction over as many commits as needed: no reader sees a part, and after a bad line, a
    failing input or Ctrl-C nothing is imported. Rows under further keys of the table stay.

    In your transaction (--txn) the rows written before a failure stay in the transaction. Abort the transaction, or
    import again: the same keys are written once more.
    """
    from txnctl.input.source import Source

    if timeout is not None and txn is not None:
        raise InvalidValue(
            "--timeout is for the import's own transaction; --txn, or TXNCTL_TXN, names another"
        )
    source = Source.open(file)
    if source.is_terminal:
        context.note("reading rows from the terminal; end with Ctrl-D")
    store = context.store
    target = store.table(table, create=create)
    losers, own = Losers(context), txn
    if txn is not None:
        store.use_transaction(txn)
        try:
            count = target.import_rows(_rows(context, source, format_), txn=txn)
        except BaseException as error:
            if not isinstance(error, Conflict):  # a conflict has ended the transaction
                context.note(
                    f"rows before that may be written in transaction {txn}: abort it, or import again"
                )
            raise
    else:
        count, own = _import(context, target, source, format_, timeout)
    if create and not count:
        _create(store, table)
    context.show(Imported(table, count, txn, losers.told(txn=own)), table=_sentence)


def _create(store: Store, table: str) -> None:
    """Create the table that no row has created: the input was empty."""
    from contextlib import suppress

    with suppress(AlreadyExists):
        store.create_table(table)


def _sentence(row: Imported) -> str:
    waits = "" if row.txn_id is None else f"; visible when transaction {row.txn_id} commits"
    return f"Imported {plural(row.rows, 'row')} into {row.table}{waits}."


def _import(
    context: Context, target: Table, source: Source, format_: str | None, timeout: float | None
) -> tuple[int, TxnID]:
    """Import in a new transaction; return the number of rows and the id."""
    from storage.limits import TRANSACTION_TIMEOUT_MS

    txn = context.store.transaction(timeout=timeout)
    timeout_s = timeout or TRANSACTION_TIMEOUT_MS / 1000
    until_s = monotonic() + timeout_s
    source.limit_s = lambda: _left_s(until_s, timeout_s)
    try:
        count = target.import_rows(_rows(context, source, format_), txn=txn)
        txn.commit()
    except BaseException as error:
        _abort(context, txn, error)
        raise
    return count, txn.id


def _left_s(until_s: float, timeout_s: float) -> float:
    """Seconds until the deadline.

    Raises:
        TransactionTimedOut
    """
    left_s = until_s - monotonic()
    if left_s > 0:
        return left_s
    raise TransactionTimedOut(
        f"the input had not ended {timeout_s:g} s after the start",
        hint="Import it again with a longer --timeout (24h at most).",
        state="ABORTED",
        reason="timed-out",
    )


def _rows(context: Context, source: Source, format_: str | None) -> Iterator[tuple[bytes, bytes]]:
    """The rows, with a progress line."""
    from txnctl.commands.tables.input import READERS

    total = source.size
    with context.progress("Import", total=total, unit="rows" if total is None else "bytes") as bar:
        read = 0

        def pause() -> None:
            nonlocal read
            if not source.is_terminal:
                bar.advance(read if total is None else source.passed())
            read = 0

        for row in READERS[format_ or "ndjson"](source, pause):
            read += 1
            yield row


def _abort(context: Context, txn: Transaction, error: BaseException) -> None:
    """Abort the transaction. Even if the abort fails, uncommitted rows never appear."""
    if not isinstance(error, Exception):
        leave_soon(context.store)
    try:
        txn.abort(f"{type(error).__name__} in tables import")
    except TransactionNotOpen:
        context.warn("the transaction had been committed by then")
    except TxnctlError as failed:
        context.warn(f"the transaction is left to the next writer, which aborts it: {failed.message}")
    else:
        context.note("nothing is imported")
