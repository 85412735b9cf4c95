"""`txnctl tables get`: one value."""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import KeyNotFound
from storage.json_form import Flat, bytes_field
from txnctl.cli.decorators import argument, example, numbers_are_arguments, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.key import key_of, shown_key, with_base64
from txnctl.commands.tables.reader import opened, reads_table
from txnctl.fields.table import NAME, ROW, ReadRow, row_of
from txnctl.output.bytes_field import bytes_cell
from txnctl.output.column import Column
from txnctl.output.field import fields_of
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.tables.reader import Reading


class GotRow(NamedTuple):
    """A row of a table, with the name of the table."""

    table: str
    row: Flat[ReadRow]


GOT = fields_of(GotRow, {**NAME, **ROW})

_LINES: tuple[Column[GotRow], ...] = (
    Column("TABLE", "id", lambda got: got.table),
    Column("KEY", "text", lambda got: bytes_cell(got.row.key)),
    Column("VALUE", "text", lambda got: bytes_cell(got.row.value)),
    Column("VERSION", "id", lambda got: got.row.version_ns),
    Column("WRITTEN", "time", lambda got: got.row.version_at_ms),
    Column("TXN", "id", lambda got: got.row.txn_id),
)

_SETUP = ("txnctl tables create accounts", "txnctl tables put accounts B1 100")


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key.")
@reads_table
@with_base64
@option("--no-newline", is_flag=True, help="Print the value without a newline after it, for `put -`.")
@numbers_are_arguments
@reads_store
@output(
    GOT, name_field="version", formats=("value", "table", "wide", "json", "ndjson", "name"), default="value"
)
@example("txnctl tables get accounts B1", setup=_SETUP)
@example("txnctl tables get accounts B1 -o json", setup=_SETUP)
@example("txnctl tables get accounts B7", setup=_SETUP, exit_code=3)
def get(context: Context, table: str, key: str, is_base64: bool, no_newline: bool, reading: Reading) -> None:
    """Print the value of a key: the bytes and a newline.

    Where the key has no value, nothing is printed and the exit code is 3. `-o json` has the version too, which `put
    --if-version` takes; `-o name` prints the version alone.

    Outside a transaction, and in a read-committed transaction, the command reads the committed value of this moment
    and disturbs no writer. --check is the behaviour at a write intent: `minimal` looks up the writing transaction if
    that transaction began before this command, `full` always, `none` never, and then may miss even a value that you
    have just committed.

    --at reads what was committed at a time or version. Where an open transaction could still write there, an earlier
    version is read and named on standard error: one version never has two answers.

    In a serializable transaction (--txn) the command reads the table as of the begin of the transaction, with the
    writes of the transaction. The read is recorded, so that no older transaction can change the key any more, and at
    an unfinished write to the key one of the two transactions is aborted.
    """
    key_bytes = key_of(key, is_base64=is_base64)
    with opened(context, table, reading) as source:
        row = source.get_row(key_bytes, txn=reading.txn, at=reading.at, check=reading.check)
    if row is None:
        raise not_found(table, key_bytes)
    if context.output != "value":
        from txnctl.output.table import object_table

        width = context.table_width()
        context.show(GotRow(table, row_of(row)), table=lambda got: object_table(got, _LINES, width))
        return
    context.out.write_values([row.value], end=b"" if no_newline else b"\n")


def not_found(table: str, key: bytes) -> Exception:
    """The error for a key without a value."""
    scan, versions = line("tables scan", table), line("tables versions", table, "KEY")
    return KeyNotFound(
        f"table {table} has no value under {shown_key(key)}",
        hint=f"`{scan}` shows what there is, `{versions}` what there was.",
        table=table,
        **bytes_field("key", key),
    )
