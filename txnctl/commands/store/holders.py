"""`txnctl store locks` and `readers`: which processes hold what of a store."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from txnctl.cli.context import Context

_HOLDER_MAX = 60
"""Characters of a process in words that the tables show; JSON has all of it."""

LOCKS = (
    Field(
        "lock",
        "text",
        "What is held: the store (open), a lease (what ends with its process), or the writer gate.",
    ),
    Field("pid", "integer", "The process."),
    Field("state", "text", "open, held, alive, stopped (SIGSTOP), dead, rebooted, or unknown-host."),
    Field("holder", "text", "The process in words."),
)


@reads_store
@output(LOCKS, name_field="pid")
@example("txnctl store locks")
def locks(context: Context) -> None:
    """Show who has the store open, and who may write now.

    Who holds the writer gate is writing at this moment. A process that is `stopped` and holds it stops all writers:
    continue it (kill -CONT) or end it. A `dead` lease is freed by the next writer.
    """
    rows = context.store.reports.list_locks()
    if not rows and context.output == "table":
        context.note("nobody else has the store open")
    context.show_list(rows, table=lambda shown: _table(context, shown, LOCKS))


READERS = (
    Field("pid", "integer", "The process."),
    Field("state", "text", "reading (it holds a view), idle, or stopped (SIGSTOP)."),
    Field("commit", "integer", "The commit that its view shows; null while it holds none."),
    Field("behind", "integer", "Commits since then. Pages freed by them cannot be reused yet."),
    Field("holder", "text", "The process in words."),
)


@reads_store
@output(READERS, name_field="pid")
@example("txnctl store readers")
def readers(context: Context) -> None:
    """Show who reads, and how far behind.

    A reader holds the view of one commit for moments only; a backup or a full verify holds it as long as it runs.
    Meanwhile the file grows instead of reusing what was freed.
    """
    rows = context.store.reports.list_readers()
    if not rows and context.output == "table":
        context.note("nobody reads the store at this moment")
    context.show_list(rows, table=lambda shown: _table(context, shown, READERS))


def _table(context: Context, rows: Sequence[dict[str, Any]], fields: Sequence[Field]) -> str:
    """The rows in columns. A process id is a number that nobody counts with: 48211, not 48,211."""
    cells = [
        {**row, "pid": None if row["pid"] is None else str(row["pid"]), "holder": _shortened(row["holder"])}
        for row in rows
    ]
    return context.table_of(cells, fields)


def _shortened(holder: str | None) -> str | None:
    """A long command line up to the word that still fits: `process 48211 (python load.py --from ...)`."""
    if holder is None or len(holder) <= _HOLDER_MAX:
        return holder
    words, closed = holder[: _HOLDER_MAX - 5].rpartition(" ")[0], ")" if "(" in holder else ""
    return f"{words} ...{closed}"
