"""`txnctl tables changes`: the changes of a table, in the order of versions."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.time_values import MOMENT
from txnctl.cli.value_types import TABLE
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.table import KEY, VERSION
from txnctl.output.bytes_field import shown_bytes
from txnctl.output.field import Help, fields_of
from txnctl.output.timestamp import NOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.client.table import Table
    from storage.client.table_changes import TableChanges
    from storage.table.changes import Change
    from txnctl.cli.context import Context

_LOOK_S = 0.1
"""How often a follower looks for the end of a transaction that commits nothing."""

CHANGES = fields_of(
    "storage.table.changes:Change",
    {
        "kind": Help("insert, update, or delete.", kind="id"),
        **KEY,
        "value": Help(
            "The new value as text; null of a deletion, absent where it is not UTF-8.",
            base64="The new value where it is not UTF-8; absent elsewhere.",
        ),
        "previous_value": Help(
            "The value before as text; null where there was none, absent where it is not UTF-8.",
            base64="The value before where it is not UTF-8; absent elsewhere.",
            heading="BEFORE",
        ),
        **VERSION,
    },
)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables put accounts B1 90",
    "txnctl tables rm accounts B1",
)


@argument("table", type=TABLE, help="The table.")
@option(
    "--since",
    type=MOMENT,
    metavar="TIME",
    help="Changes after that version, or time, as --at of a scan; `now` is the newest. [default: all that are kept]",
)
@option("--until", type=MOMENT, metavar="TIME", help="Up to that version, or time. [default: the newest]")
@option(
    "-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="Changes at the most. [default: all]"
)
@option("-f", "--follow", is_flag=True, help="At the end wait for more.")
@reads_store
@output(CHANGES, name_field="version")
@example("txnctl tables changes accounts", setup=_SETUP)
@example(
    "txnctl tables changes accounts --since 2024-05-01T10:00:00Z -o ndjson",
    setup="txnctl tables create accounts",
)
@example(
    "V=$(txnctl tables changes accounts -n 1 -o name)",
    'txnctl tables changes accounts --since "$V" -o json',
    setup=_SETUP,
)
def changes(
    context: Context, table: str, since: int | None, until: int | None, limit: int | None, follow: bool
) -> None:
    """List the changes of a table: inserts, updates and deletes, in order.

    Every version that is kept is a change, in the order of versions, in which transactions count as if each had
    happened alone; changes of one transaction have one version, and stand together. A deletion of a key without a value
    is a delete too. `--since V` leaves out the changes of V itself: the version that ends one list begins the next, and
    `tables scan --at V` with all changes since V is the table of now.

    Changes are kept as long as versions (`store config table-retention`). A start before the oldest change that is kept
    is request-too-old, with the oldest start, and so is a version of before a restore that the backup lacks, or of a
    deleted table of the name. An open transaction holds back the changes after its begin: its own would
    come in between. -f waits for them; without it standard error names the transaction.
    """
    if follow and until is not None:
        raise InvalidValue("--until ends the list, and --follow has no end", hint="Leave one of them out.")
    if follow and limit is None and context.output == "json":
        raise InvalidValue(
            "-o json is one document, and --follow has no end", hint="Use -o ndjson, or give -n."
        )
    source = context.store.table(table)
    if since == NOW:
        since = source.version_at().version
    listed = source.changes(since=since, until=None if until == NOW else until)
    rows = _rows(context, source, listed, limit, follow)
    if context.output != "table":
        context.show_list(row for page in rows for row in page)
        return
    is_empty = True
    from txnctl.output.paged_table import PagedTable

    paged = PagedTable(("VERSION", "WRITTEN", "TXN", "KIND", "KEY", "VALUE"), context.table_width())
    for page in rows:
        context.out.write(paged.page([_cells(row) for row in page]))
        is_empty = is_empty and not page
    if is_empty:
        context.note(f"no changes of table {table} are there to show")


def _rows(
    context: Context, source: Table, listed: TableChanges, limit: int | None, follow: bool
) -> Iterator[list[Change]]:
    """Yield pages of changes; a follower's page ends where the changes do."""
    from itertools import islice

    from txnctl.output.paged_table import PAGE_ROWS

    left = 1 << 62 if limit is None else limit
    while True:
        rows = islice(listed, left)
        while page := list(islice(rows, PAGE_ROWS)):
            left -= len(page)
            yield page
        if not follow or left <= 0:
            break
        context.out.flush()
        context.out.check_reader()
        listed.wait(_LOOK_S)
        listed = source.changes(since=listed.until)
    if left > 0 and listed.final.waits_for is not None:
        from storage.client.final_version import blocker_text

        context.note(f"changes after version {listed.until} are held back by {blocker_text(listed.final)}")


def _cells(row: Change) -> dict[str, str]:
    from storage.values.timestamps import rfc3339

    return {
        "VERSION": str(row.version_ns),
        "WRITTEN": rfc3339(row.version_at_ms) or "",
        "TXN": str(row.txn_id),
        "KIND": row.kind,
        "KEY": shown_bytes(row.key),
        "VALUE": "-" if row.value is None else shown_bytes(row.value) or '""',
    }
