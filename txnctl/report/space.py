"""Use of the disk, and the processes that use the store now."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.output.column import Column
from txnctl.output.human import plural, size
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
    """Return the part of the page about the file, the disk, LMDB's readers and the writer gate."""
    rows = sorted(report.space, key=lambda row: (-row.bytes, row.database))
    listed = tables.table(
        "Where the space goes", rows, _COLUMNS, more=line("store space"), layout=tables.TableLayout(0)
    )
    facts = report.overview.facts
    data, free = size(facts.store.info.data_bytes), facts.store.disk.disk_free_bytes
    gist = f"{data} on the server" if free is None else f"{data}, {size(free)} free on the disk"
    return tables.folded("space", "Space", gist, tables.facts(list(_facts(facts))), listed)


def _facts(facts: Facts) -> Iterator[tuple[str, str]]:
    store, gate = facts.store.info, facts.writer_gate
    if store.map_bytes is None:
        yield "tables", f"{size(store.data_bytes)} on the server"
    else:
        yield from _directory_facts(facts)
    yield "writing", "nobody at this moment" if gate is None else f"{gate.holder} ({gate.state})"
    yield "commits", f"{store.commits:,}, incarnation {store.incarnation}, format {store.format}"
    yield "created", str(rfc3339(store.created_at_ms))


def _directory_facts(facts: Facts) -> Iterator[tuple[str, str]]:
    store, disk, readers = facts.store.info, facts.store.disk, facts.readers
    yield (
        "file",
        f"{size(store.data_bytes)}: {size(store.in_use_bytes)} in use, {size(store.free_bytes)} free",
    )
    yield "map", f"{size(store.map_bytes)}, which grows by itself"
    yield "disk", f"{size(disk.disk_free_bytes)} free of {size(disk.disk_bytes)}"
    behind = readers.oldest.behind if readers.oldest is not None else None
    age = f"; the oldest view is {plural(behind, 'commit')} old" if behind is not None else ""
    yield "readers", f"{readers.in_use:,} of {readers.max:,} places taken{age}"
