"""`txnctl store space`: where the space goes, and the commands that free some."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import example, option, output, partial_rows, reads_store
from txnctl.fields.store import SPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.freeable import Freeable
    from txnctl.cli.context import Context

_SETUP = ("txnctl topics create orders", "txnctl produce orders -m old")


@option("--freeable", is_flag=True, help="Topics and tables, what each could free, and the command to type.")
@reads_store
@partial_rows
@output(SPACE, name_field="database")
@example("txnctl store space")
@example("txnctl store space --freeable", setup=_SETUP)
def space(context: Context, freeable: bool) -> None:
    """Show where the space goes.

    The largest first. The rest, up to the size of the file, is free and will be reused.

    --freeable lists topics and tables, the space that each could free, and the command: for a topic a trim to the
    limits set, then a limit that keeps no acknowledged message (`topics trim` applies the limit at once), then
    acknowledging what the slowest subscription has not acknowledged, then a truncation. The file keeps its length, and
    later writes use the room. On a full disk these commands, `store gc`, deletions and aborts use the reserve
    (`store config reserve`).
    """
    reports = context.store.reports
    if freeable and context.output == "name":
        raise InvalidValue("--freeable lists commands, which have no names", hint="Use -o json or ndjson.")
    if freeable:
        context.show_list(reports.list_freeable(), table=lambda rows: _lines(context, rows))
    else:
        context.show_list(sorted(reports.list_databases(), key=lambda row: (-row.bytes, row.database)))


def _lines(context: Context, rows: Sequence[Freeable]) -> Iterator[str]:
    """A line on each change, and the command below, on one line."""
    from txnctl.output.human import size
    from txnctl.output.screen import next_command
    from txnctl.output.shell import spell

    if not rows:
        yield "No topic or table takes space."
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
