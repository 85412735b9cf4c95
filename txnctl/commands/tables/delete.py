"""`txnctl tables delete`."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, output
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import NAME
from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

DELETED = (
    NAME,
    Field("tableId", "integer", "Its number.", heading=""),
    Field("rows", "integer", "Rows that went with it, deleted and new keys included."),
    Field("transactionsAborted", "list", "Open transactions that held keys of it, aborted first."),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)


@argument("table", type=TABLE, help="The table.")
@changes_store(effect="destroys")
@administrative
@forcible("Delete it although open transactions have written to it: these are aborted.")
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
    plan = to_json(delete_table(table, force=context.force, dry_run=True))
    context.confirm(f"Delete table {table}?", plan=_lines(plan))
    done = plan
    if not context.dry_run:
        done = to_json(delete_table(table, force=context.force, reason=context.reason))
    context.show(done, table=lambda row: _report(row, context.force))


def _report(row: Row, force: bool) -> list[str]:
    if not row["dryRun"]:
        return _lines(row)
    command = f'txnctl tables delete {row["table"]}{" --force" if force else ""} --yes --reason "..."'
    return ["DRY RUN: nothing was changed.", "", *_lines(row), "", f"Run: {command}"]


def _lines(row: Row) -> list[str]:
    """The deleted objects, a kind a line: `removes` in a dry run, `removed` afterwards."""
    tense, aborted = "s" if row["dryRun"] else "d", row["transactionsAborted"]
    lines = [f"  remove{tense}   table {row['table']}: {plural(row['rows'], 'row')}"]
    if aborted:
        what = "aborts" if row["dryRun"] else "aborted"
        lines.append(f"  {what:<9} {plural(len(aborted), 'open transaction')}: {', '.join(aborted)}")
    return lines
