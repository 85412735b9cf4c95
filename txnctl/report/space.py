"""Use of the disk, and the processes that use the store now."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.fields.server import readers_text, server_facts, writing_text
from txnctl.output.column import Column
from txnctl.output.human import size
from txnctl.output.shell import line
from txnctl.report import tables
from txnctl.report.markup import Markup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.facts import Facts
    from storage.reports.store_info import DatabaseRow
    from storage.reports.store_report import StoreReport


_COLUMNS: tuple[Column[DatabaseRow], ...] = (
    Column("DATABASE", "text", lambda row: row.database),
    Column("RECORDS", "integer", lambda row: row.entries),
    Column("SIZE", "size", lambda row: row.bytes),
    Column("DEPTH", "integer", lambda row: row.depth),
)


def section(report: StoreReport) -> Markup:
    """Return the part of the page about the file and the disk or the server, the readers and the writer gate."""
    rows = sorted(report.space, key=lambda row: (-row.bytes, row.database))
    listed = tables.table(
        "Where the space goes", rows, _COLUMNS, more=line("store space"), layout=tables.TableLayout(0)
    )
    facts = report.overview.facts
    gist = size(facts.store.info.data_bytes)
    if facts.store.info.server is None:
        gist = f"{gist}, {size(facts.store.disk.disk_free_bytes)} free on the disk"
    return tables.folded("space", "Space", gist, tables.facts(list(_facts(facts))), listed)


def _facts(facts: Facts) -> Iterator[tuple[str, str]]:
    store, disk = facts.store.info, facts.store.disk
    if store.server is None:
        yield (
            "file",
            f"{size(store.data_bytes)}: {size(store.in_use_bytes)} in use, {size(store.free_bytes)} free",
        )
        yield "map", f"{size(store.map_bytes)}, which grows by itself"
        yield "disk", f"{size(disk.disk_free_bytes)} free of {size(disk.disk_bytes)}"
    else:
        yield from server_facts(store, store.server, facts.as_of_at_ms)
    yield "readers", readers_text(facts.readers)
    yield "writing", writing_text(facts)
    yield "commits", f"{store.commits:,}, incarnation {store.incarnation}, format {store.format}"
    yield "created", str(rfc3339(store.created_at_ms))
