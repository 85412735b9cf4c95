"""`txnctl store space`: where the space goes, and the commands that free some."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import example, option, output, partial_rows, reads_store
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.store import SPACE
from txnctl.output.column import Column
from txnctl.output.human import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.freeable import Freeable
    from storage.reports.sizes import ObjectSize
    from txnctl.cli.context import Context


def _size(row: ObjectSize) -> str:
    return (
        size(row.size_bytes)
        if row.is_exact
        else f"{'>' if row.kind == 'topic' else '~'} {size(row.size_bytes)}"
    )


_SIZES: tuple[Column[ObjectSize], ...] = (
    Column("NAME", "id", lambda row: row.name),
    Column("KIND", "text", lambda row: row.kind),
    Column("SIZE", "size", _size),
    Column("CONTENT", "size", lambda row: row.content_bytes),
    Column("OTHER", "size", lambda row: row.other_bytes),
    Column("TRIM FREES", "size", lambda row: row.freed_bytes),
    Column("HELD BY", "text", lambda row: row.held_by),
)
_SETUP = ("txnctl topics create orders", "txnctl produce orders -m old")


@option("--topics", is_flag=True, help="The sizes of topics and tables, and what a trim of each frees now.")
@option("--freeable", is_flag=True, help="Topics and tables, what each could free, and the command to type.")
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="At most so many. [default: all]")
@reads_store
@partial_rows
@output(SPACE, name_field="database")
@example("txnctl store space")
@example("txnctl store space --topics -n 5", setup=_SETUP)
@example("txnctl store space --freeable", setup=_SETUP)
def space(context: Context, topics: bool, freeable: bool, limit: int | None) -> None:
    """Show where the space goes.

    The largest first. The rest, up to the size of the file, is free and will be reused. On a server these are the
    tables of the store, each with its free space.

    --topics lists topics and tables: CONTENT is the bytes of entries or rows, OTHER the bytes of further records
    (ledgers, sequence ids, cursors, deliveries; versions and changes of a table), TRIM FREES the bytes that `topics
    trim` would free now. At most 5,000 further records of an object are read: beyond, `>` is a lower bound and `~` an
    estimate. Pages are shared and never quite full, so the parts of the store have more bytes than topics and tables.

    --freeable lists topics and tables, the space that each could free, and the command: for a topic a trim to the
    limits set, then a limit that keeps no acknowledged message (`topics trim` applies the limit at once), then
    acknowledging what the slowest subscription has not acknowledged, then a truncation. The file keeps its length, and
    later writes use the room. On a full disk these commands, `store gc`, deletions and aborts use the reserve
    (`store config reserve`).
    """
    reports = context.store.reports
    if topics and freeable:
        raise InvalidValue("--topics and --freeable are two lists", hint="Give one of them.")
    if (topics or freeable) and context.output == "name":
        raise InvalidValue("-o name lists parts of the store alone", hint="Use -o json or ndjson.")
    if topics:
        rows = reports.list_sizes(limit)
        context.show_list(rows, table=lambda shown: str(context.table_of(shown, _SIZES)))
    elif freeable:
        changes = reports.list_freeable()[:limit]
        if not changes:
            context.note("no topic or table takes space")
        context.show_list(changes, table=lambda rows: _lines(context, rows))
    else:
        parts = sorted(reports.list_databases(), key=lambda row: (-row.bytes, row.database))
        context.show_list(parts[:limit])


def _lines(context: Context, rows: Sequence[Freeable]) -> Iterator[str]:
    """A line on each change, and the command below, on one line."""
    from txnctl.output.screen import next_command
    from txnctl.output.shell import spell

    for row in rows:
        if row.freed_bytes is None or row.size_bytes is None:
            yield f"{row.kind} {row.name}".rstrip() + ": remains of what was removed"
        elif row.kind == "backlog":
            part = f"{size(row.freed_bytes)} of {size(row.size_bytes)}"
            yield f"topic {row.name}: {part} is not acknowledged by {row.held_by}"
        else:
            is_part = row.held_by and row.freed_bytes != row.size_bytes
            held = f"; the rest is held by {row.held_by}" if is_part else ""
            yield f"{row.kind} {row.name}: frees {size(row.freed_bytes)} of {size(row.size_bytes)}{held}"
        yield f"  {next_command(context, spell(row.action))}"
