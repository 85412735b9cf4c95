"""`txnctl tables scan`: the rows of a table, in the order of their keys."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from storage.values.txn_id import TxnID
from txnctl.cli.decorators import argument, example, option, option_values, output, reads_store
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import TABLE
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.tables.reader import opened, reads_table
from txnctl.fields.table import ROW, ReadRow, name_of, row_of, version_ms
from txnctl.output.bytes_field import shown_bytes
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from storage.client.table import Table
    from storage.table.visibility import Row
    from txnctl.cli.context import Context
    from txnctl.commands.tables.reader import Reading

    F = TypeVar("F", bound=Callable[..., object])

SCANNED = fields_of(ReadRow, ROW)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables put accounts B2 200",
)


class KeyBounds(OptionValues):
    """A range of keys, as typed."""

    prefix: str | None
    start: str | None
    end: str | None
    is_base64: bool

    def bounds(self) -> dict[str, bytes]:
        """The given bounds by name."""
        from txnctl.commands.tables.key import key_of

        given = {"prefix": self.prefix, "start": self.start, "end": self.end}
        return {
            name: key_of(text, is_base64=self.is_base64, name=f"--{name}")
            for name, text in given.items()
            if text is not None
        }


def rows_of(
    source: Table, key_range: KeyBounds, reading: Reading, *, reverse: bool = False, limit: int | None = None
) -> Iterator[Row]:
    """The rows of a range of keys."""
    bounds = key_range.bounds()
    return source.scan(
        prefix=bounds.get("prefix", b""),
        start=bounds.get("start"),
        end=bounds.get("end"),
        reverse=reverse,
        limit=limit,
        txn=reading.txn,
        at=reading.at,
        check=reading.check,
    )


def takes_range(function: F) -> F:
    """Take --prefix, --start and --end as `key_range`."""
    for declare in (
        option("--key-base64", "is_base64", is_flag=True, help="--prefix, --start and --end are Base64."),
        option("--end", metavar="KEY", help="Up to this key, which is left out."),
        option("--start", metavar="KEY", help="From this key on."),
        option("--prefix", metavar="KEY", help="Only keys that begin so."),
    ):
        function = declare(function)
    return option_values("key_range", KeyBounds)(function)


@argument("table", type=TABLE, help="The table.")
@takes_range
@option("--reverse", is_flag=True, help="From the last key to the first.")
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="Rows at the most. [default: all]")
@reads_table
@reads_store
@output(SCANNED, name_field="key", formats=("table", "wide", "json", "ndjson", "name", "value"))
@example("txnctl tables scan accounts", setup=_SETUP)
@example("txnctl tables scan accounts --prefix B --reverse -n 1 -o json", setup=_SETUP)
@example("txnctl tables scan accounts -o value | awk '{sum += $1} END {print sum}'", setup=_SETUP)
def scan(
    context: Context, table: str, reverse: bool, limit: int | None, key_range: KeyBounds, reading: Reading
) -> None:
    """Print the rows of a table, or of a range of keys.

    The order is that of the keys' bytes. `-o value` prints the values alone, `-o name` the keys alone.

    Outside a transaction a scan disturbs no writer, and no row is seen twice or left out; rows that are far apart may
    come from different commits. In a serializable transaction (--txn) a scan reads the table as of the begin of the
    transaction, and protects the range, with -n as far as read: no older transaction can put a key into the range
    any more. `tables get` says more about transactions and --check.
    """
    with opened(context, table, reading) as source:
        rows = rows_of(source, key_range, reading, reverse=reverse, limit=limit)
        if context.output == "table":
            is_empty = True
            for text in _pages(rows, context.table_width()):
                context.out.write(text)
                is_empty = False
            if is_empty:
                context.note(f"no rows of table {table} are there to show")
        elif context.output == "value":
            for row in rows:
                context.out.write_values([row.value])
        elif context.output == "name":
            context.show_list(name_of(row.key) for row in rows)
        else:
            context.show_list(map(row_of, rows))


def _pages(rows: Iterable[Row], width: int | None) -> Iterator[str]:
    """The table for people, a page of rows at a time."""
    from itertools import islice

    from txnctl.output.paged_table import PAGE_ROWS, PagedTable

    table, rows = PagedTable(("KEY", "WRITTEN", "TXN", "VERSION", "VALUE"), width), iter(rows)
    while page := [_cells(row) for row in islice(rows, PAGE_ROWS)]:
        yield table.page(page)


def _cells(row: Row) -> dict[str, str]:
    return {
        "KEY": shown_bytes(row.key),
        "WRITTEN": rfc3339(version_ms(row.version)) or "",
        "TXN": str(TxnID(row.txn)) if row.txn else "",
        "VERSION": str(row.version),
        "VALUE": shown_bytes(row.value) or '""',
    }
