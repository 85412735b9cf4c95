"""`txnctl tables scan`: the rows of a table, in the order of their keys."""

from __future__ import annotations

import click

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.reader import opened, reads_table
from txnctl.fields.table import ROW, name_of, row_of
from txnctl.output.bytes_field import shown_bytes
from txnctl.output.escape import printable_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from storage.client.table import Row as TableRow
    from txnctl.cli.context import Context

    F = TypeVar("F", bound=Callable[..., object])

_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables put accounts B2 200",
)


def takes_range(function: F) -> F:
    """Take --prefix, --start and --end, for `range_of`."""
    for declare in (
        option("--key-base64", "is_base64", is_flag=True, help="--prefix, --start and --end are Base64."),
        option("--end", metavar="KEY", help="Up to this key, which is left out."),
        option("--start", metavar="KEY", help="From this key on."),
        option("--prefix", metavar="KEY", help="Only keys that begin so."),
    ):
        function = declare(function)
    return function


def range_of(how: dict[str, Any]) -> dict[str, Any]:
    """The given bounds, as arguments of `Table.scan`."""
    from txnctl.commands.tables.key import key_of

    return {
        name: key_of(how[name], is_base64=how["is_base64"], name=f"--{name}")
        for name in ("prefix", "start", "end")
        if how[name] is not None
    }


@argument("table", type=TABLE, help="The table.")
@takes_range
@option("--reverse", is_flag=True, help="From the last key to the first.")
@option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Rows at the most. [default: all]")
@reads_table
@reads_store
@output(ROW, name_field="key", formats=("table", "json", "ndjson", "name", "value"))
@example("txnctl tables scan accounts", setup=_SETUP)
@example("txnctl tables scan accounts --prefix B --reverse -n 1 -o json", setup=_SETUP)
@example("txnctl tables scan accounts -o value | awk '{sum += $1} END {print sum}'", setup=_SETUP)
def scan(context: Context, table: str, reverse: bool, limit: int | None, **how: Any) -> None:
    """Print the rows of a table, or of a range of keys.

    The order is that of the keys' bytes. `-o value` prints the values alone, `-o name` the keys alone.

    Outside a transaction a scan disturbs no writer, and no row is seen twice or left out; rows that are far apart may
    come from different commits. In a serializable transaction (--txn) a scan reads the table as of the begin of the
    transaction, and protects the range, with --limit as far as read: no older transaction can put a key into the range
    any more. `tables get` says more about transactions and --check.
    """
    with opened(context, table, how) as (source, reading):
        rows = source.scan(**range_of(how), reverse=reverse, limit=limit, **reading)
        if context.output == "table":
            is_empty = True
            for text in _pages(rows):
                context.out.write(text)
                is_empty = False
            if is_empty:
                context.note(f"no rows of table {table} are there to show")
        elif context.output == "value":
            for line in _values(rows, terminal=context.out.terminal):
                context.out.write_bytes(line)
        elif context.output == "name":
            context.show_list(name_of(row.key) for row in rows)
        else:
            context.show_list(map(row_of, rows))


def _values(rows: Iterable[TableRow], *, terminal: bool) -> Iterator[bytes]:
    for row in rows:
        yield (printable_bytes(row.value).encode() if terminal else row.value) + b"\n"


def _pages(rows: Iterable[TableRow]) -> Iterator[str]:
    """The table for people, a page of rows at a time."""
    from itertools import islice

    from txnctl.output.paged_table import PAGE_ROWS, PagedTable

    table, rows = PagedTable(("KEY", "WRITTEN", "TXN", "VERSION", "VALUE")), iter(rows)
    while page := [_cells(row) for row in islice(rows, PAGE_ROWS)]:
        yield table.page(page)


def _cells(row: TableRow) -> dict[str, str]:
    found = row_of(row)
    return {
        "KEY": shown_bytes(row.key),
        "WRITTEN": found["versionAt"] or "",
        "TXN": found["txnId"] or "",
        "VERSION": found["version"],
        "VALUE": shown_bytes(row.value) or '""',
    }
