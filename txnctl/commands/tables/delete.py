"""`txnctl tables delete`."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    asks,
    changes_store,
    example,
    forcible,
    missing_ok,
    output,
)
from txnctl.cli.value_types import TABLE
from txnctl.fields.change import DRY_RUN
from txnctl.fields.table import NAME
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.admin.audited_change import Changed
    from storage.admin.tables import TableDeleted
    from txnctl.cli.context import Context

DELETED = fields_of(
    "storage.admin.tables:Changed[TableDeleted]",
    {
        **NAME,
        "table_id": Help("Its number.", heading=""),
        "rows": "Rows that went with it, deleted and new keys included.",
        "transactions_aborted": "Open transactions that held keys of it, aborted first.",
        **DRY_RUN,
    },
)


@argument("table", type=TABLE, help="The table.")
@changes_store(effect="destroys")
@administrative
@asks
@forcible("Delete it although open transactions have written to it: these are aborted.")
@missing_ok
@output(DELETED, name_field="table")
@example("txnctl tables delete accounts --dry-run", setup="txnctl tables create accounts")
@example(
    "txnctl tables delete accounts --yes --reason 'moved to the other store'",
    setup="txnctl tables create accounts",
)
def delete(context: Context, table: str) -> None:
    """Delete a table with all rows.

    The command refuses while open transactions have write intents in the table. A table created again under the name
    is a different table: a process with the old table open gets an error.
    """
    delete_table = context.store.admin.tables.delete_table
    plan = delete_table(table, force=context.force, dry_run=True)
    context.confirm(f"Delete table {table}?", plan=_lines(plan))
    done = plan
    if not context.dry_run:
        done = delete_table(table, force=context.force, reason=context.reason)
    context.show(done, table=lambda row: _report(row, context.force))


def _report(row: Changed[TableDeleted], force: bool) -> list[str]:
    if not row.dry_run:
        return _lines(row)
    command = line("tables delete", row.effects.table, force=force, yes=True, reason=...)
    return ["DRY RUN: nothing was changed.", "", *_lines(row), "", f"Run: {command}"]


def _lines(row: Changed[TableDeleted]) -> list[str]:
    """The deleted objects, a kind a line: `removes` in a dry run, `removed` afterwards."""
    tense, aborted = "s" if row.dry_run else "d", row.effects.transactions_aborted
    lines = [f"  remove{tense}   table {row.effects.table}: {plural(row.effects.rows, 'row')}"]
    if aborted:
        what, ids = "aborts" if row.dry_run else "aborted", ", ".join(map(str, aborted))
        lines.append(f"  {what:<9} {plural(len(aborted), 'open transaction')}: {ids}")
    return lines
