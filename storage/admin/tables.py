"""Delete tables."""

from __future__ import annotations

from storage.actions import Action
from storage.admin.audited_change import Changed, ChangeRequest, abort_holders, run_change, to_delete
from storage.admin.purge import purge_deleted
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.table import catalogue as tables, state
from storage.values.arguments import check_flags
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID


class TableDeleted(NamedTuple):
    """The effects of deleting a table."""

    table: str
    table_id: int
    rows: int
    transactions_aborted: list[TxnID]


class TableAdmin:
    """Changes of tables, as `store.admin.tables`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def delete_table(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TableDeleted]:
        """Delete a table.

        Raises:
            TableNotFound
            ObjectHeld: open transactions have write intents in it; `force` aborts them first.
        """
        check_flags(force=force, dry_run=dry_run)

        def change(batch: WriteBatch) -> TableDeleted:
            with to_delete(Action("store.reports.list_tables")):
                table = tables.get(batch, name)
            holders = tables.holders(batch, table.table_id)
            aborted = abort_holders(self._engine, batch, f"table {name}", holders, force)
            table_state = state.find(batch, table.table_id)
            tables.delete(batch, table)
            return TableDeleted(
                name, table.table_id, table_state.rows if table_state is not None else 0, aborted
            )

        result = run_change(self._engine, ChangeRequest("tables delete", name, dry_run, reason), change)
        if not dry_run:
            purge_deleted(self._engine.connection)
        return result
