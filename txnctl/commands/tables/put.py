"""`txnctl tables put` and `txnctl tables rm`: write a key, delete a key."""

from __future__ import annotations

from contextlib import contextmanager

import click

from txnctl.cli.decorators import argument, changes_store, example, numbers_are_arguments, option, output
from txnctl.cli.value_types import PRIORITY, TABLE, TXN_ID
from txnctl.commands.tables.key import with_base64
from txnctl.commands.tables.losers import ABORTED
from txnctl.fields.table import KEY, NAME, VERSION
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import Priority, Transaction
    from storage.client.table import Table
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.tables.losers import Losers

WRITTEN = (
    NAME,
    *KEY,
    Field("version", "id", "The version that was written: when its transaction began, in nanoseconds."),
    *VERSION[1:3],
    Field(
        "txnId",
        "id",
        "The transaction that it waits for; null where it was committed at once.",
        heading="TXN",
    ),
    ABORTED,
)
_SETUP = "txnctl tables create accounts"

_in_transaction = option(
    "--txn", type=TXN_ID, envvar="TXNCTL_TXN", help="The transaction to write in. [env: TXNCTL_TXN]"
)
_with_priority = option(
    "--priority",
    type=PRIORITY,
    help="Without --txn: of the write, where an open transaction holds the key. [default: medium]",
)
_if_version = option(
    "--if-version",
    type=click.IntRange(1),
    metavar="VERSION",
    help="Only if the value still has this version: the one that was looked at.",
)


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key: up to 400 bytes.")
@argument("value", required=False, help="The value; `-` or nothing is standard input, byte by byte.")
@_in_transaction
@_with_priority
@_if_version
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

    Without a transaction it is committed at once. In one (--txn) nobody else sees it before the commit, and the
    transaction may lose: to one of a higher priority or, where priorities are equal, a younger one that wants the same
    key; to one that has read the key later. Then it is aborted and the exit code is 4: begin anew, with all that was
    read.

    A condition that does not hold (--if-version, --if-absent) ends with exit code 4 too, and leaves the transaction
    as it is.

    Where it is the other one that loses, the open transaction which held the key is aborted, all of it, and named on
    standard error: nobody waits for a key.
    """
    from storage.errors import InvalidValue
    from txnctl.commands.tables.key import key_of
    from txnctl.commands.tables.losers import Losers

    if if_absent and if_version is not None:
        raise InvalidValue("--if-absent and --if-version exclude each other")
    wanted, target = key_of(key, is_base64=is_base64), context.store.table(table)
    content, losers = _value(context, value), Losers(context)
    with _transaction(context, txn, priority) as used:
        version = target.put(wanted, content, txn=used, if_version=if_version, if_absent=if_absent)
    _show(context, table, wanted, version, txn, losers, "Put {} in")


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key.")
@_in_transaction
@_with_priority
@_if_version
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

    It is a write like `put`: what was there before can be read in the past, as long as versions are kept. Where there
    is no value the exit code is 3, unless --missing-ok says that this is well.
    """
    from txnctl.commands.tables.key import key_of
    from txnctl.commands.tables.losers import Losers

    wanted, target = key_of(key, is_base64=is_base64), context.store.table(table)
    losers = Losers(context)
    must_exist = not missing_ok and if_version is None
    with _transaction(context, txn, priority, reads=must_exist) as used:
        version = _delete(target, wanted, used, if_version, must_exist)
    _show(context, table, wanted, version, txn, losers, "Deleted {} from")


@contextmanager
def _transaction(
    context: Context, txn: TxnID | None, priority: Priority | None, *, reads: bool = False
) -> Iterator[TxnID | Transaction | None]:
    """The transaction to write in: the one that was named; one of its own, where there is something to say of it or it
    reads too; else None, for a write that is one by itself.

    Raises:
        InvalidValue: a priority for a transaction that has one.
    """
    if txn is not None and priority is not None:
        from storage.errors import InvalidValue

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


def _delete(
    target: Table, key: bytes, txn: TxnID | Transaction | None, if_version: int | None, must_exist: bool
) -> int:
    """Delete a key, if it has a value or need not have one.

    Raises:
        KeyNotFound
    """
    if must_exist and target.get(key, txn=txn) is None:
        from txnctl.commands.tables.get import not_found

        raise not_found(target.name, key)
    return target.delete(key, txn=txn, if_version=if_version)


def _value(context: Context, value: str | None) -> bytes:
    """The bytes of the value that was typed, or of standard input.

    Raises:
        InvalidValue: standard input cannot be read, or holds too much.
    """
    if value is not None and value != "-":
        from os import fsencode

        return fsencode(value)
    from storage.errors import InvalidValue
    from storage.limits import TABLE_VALUE_BYTES_MAX
    from txnctl.commands.produce.source import Source

    source = Source.open(None)
    if source.is_terminal:
        context.note("reading the value from the terminal; end with Ctrl-D")
    pieces: list[bytes] = []
    size = 0
    while (data := source.read(None)) != b"":
        pieces.append(data or b"")
        size += len(pieces[-1])
        if size > TABLE_VALUE_BYTES_MAX:
            raise InvalidValue(
                f"standard input holds more than a value may have, {TABLE_VALUE_BYTES_MAX:,} bytes",
                hint="Store it elsewhere, and put where it is.",
            )
    return b"".join(pieces)


def _show(
    context: Context, table: str, key: bytes, version: int, txn: TxnID | None, losers: Losers, what: str
) -> None:
    from txnctl.commands.tables.key import shown_key
    from txnctl.fields.table import version_of
    from txnctl.output.bytes_field import bytes_field

    row = {
        "table": table,
        **bytes_field("key", key),
        **version_of(version),
        "txnId": None if txn is None else str(txn),
        "transactionsAborted": losers.told(version=version),
    }
    waits = "" if txn is None else f", visible when transaction {txn} commits"
    context.show(row, table=lambda _: f"{what.format(shown_key(key))} {table}: version {version}{waits}.")
