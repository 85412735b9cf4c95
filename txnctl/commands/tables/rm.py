"""`txnctl tables rm`: delete a key."""

from __future__ import annotations

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
    from storage import Priority, Transaction
    from storage.client.table import Table
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
_SETUP = "txnctl tables create accounts"


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key.")
@in_transaction
@with_priority
@with_if_version
@option("--missing-ok", is_flag=True, help="Succeed also where the key has no value.")
@with_base64
@numbers_are_arguments
@changes_store()
@output(WRITTEN, name_field="version")
@example("txnctl tables rm accounts B1", setup=(_SETUP, "txnctl tables put accounts B1 100"))
@example("txnctl tables rm accounts B7 --missing-ok", setup=_SETUP)
def rm(
    context: Context,
    table: str,
    key: str,
    txn: TxnID | None,
    priority: Priority | None,
    if_version: int | None,
    missing_ok: bool,
    is_base64: bool,
) -> None:
    """Delete a key.

    A delete is a write like `put`: the value before can be read in the past, as long as versions are kept. Where there
    is no value the exit code is 3, unless --missing-ok says that this is well.
    """
    key_bytes, target = key_of(key, is_base64=is_base64), context.store.table(table)
    losers = Losers(context)
    must_exist = not missing_ok and if_version is None
    with write_transaction(context, txn, priority, reads=must_exist) as used:
        version = _delete(target, key_bytes, used, if_version, must_exist)
    row = written_row(table, key_bytes, version, txn, losers)
    show_written(context, row, f"Deleted {shown_key(key_bytes)} from")


def _delete(
    target: Table, key: bytes, txn: TxnID | Transaction | None, if_version: int | None, must_exist: bool
) -> int:
    """Delete a key; with `must_exist`, refuse a key without a value.

    Raises:
        KeyNotFound
    """
    if must_exist and target.get(key, txn=txn) is None:
        from txnctl.commands.tables.get import not_found

        raise not_found(target.name, key)
    return target.delete(key, txn=txn, if_version=if_version)
