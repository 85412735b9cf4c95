"""`topics log --follow`: the entries of a topic as they are appended."""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.reports.browse import EntryRow
    from storage.values.position import Position
    from txnctl.cli.context import Context

_LOOK_NS = 500_000_000
"""How often to look whether the reader of the pipe is gone."""
_PAGE_ROWS = 500


class _End(NamedTuple):
    """Where the entries that were shown end."""

    ledger_id: int
    entry_id: int


def follow_log(context: Context, topic: str, rows: Iterable[EntryRow]) -> None:
    """Print the entries, then each further one, until Ctrl-C; no view is held between two looks.

    Raises:
        InvalidValue: JSON was asked for, which is one document.
    """
    if context.output == "json":
        raise InvalidValue("-o json is one document, and --follow has no end", hint="Use -o ndjson.")
    pages = _pages(context, topic, rows)
    if context.output != "table":
        for page in pages:
            context.show_list(page)
        return
    from txnctl.output.paged_table import PagedTable

    table = PagedTable((), context.table_width())
    for page in pages:
        context.out.write(table.page([_cells(row) for row in page]))


def _pages(context: Context, topic: str, rows: Iterable[EntryRow]) -> Iterator[list[EntryRow]]:
    """Yield the entries of a start, then those of every look that finds some."""
    from itertools import islice

    from storage.values.position import Position

    connection, reports = context.store.connection, context.store.reports
    written = reports.topic_stats_internal(topic).last_confirmed_entry
    end = _End(*written[:2])
    # The start was read in a view of its own: the first wait returns at once.
    entries, seen = iter(rows), -1
    while True:
        while page := list(islice(entries, _PAGE_ROWS)):
            end = _after(end, page[-1].position)
            yield page
        context.out.flush()
        context.out.check_reader()
        while not connection.wait_for_commit(seen, connection.clock.boot_ns() + _LOOK_NS):
            context.out.check_reader()
        seen = connection.environment.visible_commit()
        entries = iter(reports.topic_log(topic, Position(end.ledger_id, end.entry_id + 1)))


def _after(end: _End, shown: Position) -> _End:
    return max(end, _End(shown.ledger_id, shown.entry_id))


def _cells(row: EntryRow) -> dict[str, str]:
    from storage.json_form import to_json
    from txnctl.commands.topics.log import ENTRIES

    shown = to_json(row)
    cells = {field.heading: field.cell(shown) for field in ENTRIES if field.heading}
    return {name: "" if cell == "-" else cell for name, cell in cells.items()}
