"""`txnctl tables put`: write a value under a key."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import argument, changes_store, example, numbers_are_arguments, option, output
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.key import key_of, shown_key, with_base64
from txnctl.commands.tables.losers import Losers
from txnctl.commands.tables.write import (
    WRITTEN,
    in_transaction,
    show_written,
    with_if_version,
    with_priority,
    write_transaction,
    written_row,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Priority
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
_SETUP = "txnctl tables create accounts"


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key: up to 400 bytes.")
@argument("value", required=False, help="The value; `-` or nothing is standard input, byte by byte.")
@in_transaction
@with_priority
@with_if_version
@option("--if-absent", is_flag=True, help="Only if the key has no value.")
@with_base64
@numbers_are_arguments
@changes_store()
@output(WRITTEN, name_field="version")
@example("txnctl tables put accounts B1 100", setup=_SETUP)
@example("txnctl tables put accounts B2 -50 --if-absent", setup=_SETUP)
@example("printf '{\"limit\": 5}' | txnctl tables put settings web -", setup="txnctl tables create settings")
@example(
    "V=$(txnctl tables get accounts B1 -o name)",
    "txnctl tables put accounts B1 101 --if-version $V",
    setup=(_SETUP, "txnctl tables put accounts B1 100"),
)
def put(
    context: Context,
    table: str,
    key: str,
    value: str | None,
    txn: TxnID | None,
    priority: Priority | None,
    if_version: int | None,
    if_absent: bool,
    is_base64: bool,
) -> None:
    """Write a value under a key.

    Without a transaction the write is committed at once. In a transaction (--txn) no reader outside sees the write
    before the commit, and the transaction may lose: to one of a higher priority or, where priorities are equal, a
    younger one that wants the same key; to one that has read the key later. A losing transaction is aborted with exit
    code 4: begin anew, and read again.

    A condition that does not hold (--if-version, --if-absent) ends with exit code 4 too, and leaves the transaction
    open.

    A losing holder of the key is aborted as a whole, and named on standard error: no transaction waits for a key.
    """
    if if_absent and if_version is not None:
        raise InvalidValue("--if-absent and --if-version exclude each other")
    key_bytes, target = key_of(key, is_base64=is_base64), context.store.table(table)
    content, losers = _value(context, value), Losers(context)
    with write_transaction(context, txn, priority) as used:
        version = target.put(key_bytes, content, txn=used, if_version=if_version, if_absent=if_absent)
    row = written_row(table, key_bytes, version, txn, losers)
    show_written(context, row, f"Put {shown_key(key_bytes)} in")


def _value(context: Context, value: str | None) -> bytes:
    """The bytes of the value that was typed, or of standard input.

    Raises:
        InvalidValue: standard input cannot be read, or holds too much.
    """
    if value is not None and value != "-":
        from os import fsencode

        return fsencode(value)
    from storage.limits import TABLE_VALUE_BYTES_MAX
    from txnctl.input.source import Source

    source = Source.open(None)
    if source.is_terminal:
        context.note("reading the value from the terminal; end with Ctrl-D")
    content = source.read_all(TABLE_VALUE_BYTES_MAX)
    if len(content) > TABLE_VALUE_BYTES_MAX:
        raise InvalidValue(
            f"standard input holds more than a value may have, {TABLE_VALUE_BYTES_MAX:,} bytes",
            hint="Store the content elsewhere, and put a reference.",
        )
    return content
