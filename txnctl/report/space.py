"""Use of the disk, and the processes that use the store now."""

from __future__ import annotations

from txnctl.fields.store import SPACE
from txnctl.output.human import plural, size
from txnctl.report import tables
from txnctl.report.markup import Markup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.output.row import Row


def section(report: Row) -> Markup:
    """Return the part of the page about the file, the disk, LMDB's readers and the writer gate."""
    rows = sorted(report["space"], key=lambda row: (-row["bytes"], row["database"]))
    listed = tables.table(
        "Where the space goes", rows, SPACE, more="txnctl store space", layout=tables.TableLayout(0)
    )
    return tables.section("space", "Space", tables.facts(list(_facts(report))), listed)


def _facts(report: Row) -> Iterator[tuple[str, str]]:
    store, readers, gate = report["store"], report["readers"], report["writerGate"]
    yield "file", f"{size(store['dataBytes'])}, of which {size(store['usedBytes'])} are used"
    yield "map", f"{size(store['mapBytes'])}, which grows by itself"
    yield "disk", f"{size(store['diskFreeBytes'])} free of {size(store['diskBytes'])}"
    oldest = readers["oldest"]
    behind = f"; the oldest view is {plural(oldest['behind'], 'commit')} old" if oldest is not None else ""
    yield "readers", f"{readers['inUse']:,} of {readers['max']:,} places taken{behind}"
    yield "writing", "nobody at this moment" if gate is None else f"{gate['holder']} ({gate['state']})"
    yield "commits", f"{store['commits']:,}, incarnation {store['incarnation']}, format {store['format']}"
    yield "created", str(store["createdAt"])
