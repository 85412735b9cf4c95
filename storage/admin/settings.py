"""What operators do to tables, and to the settings of a store."""

from __future__ import annotations

from typing import Any

from storage.admin.change import Changes
from storage.admin.purge import purge_deleted
from storage.disk.superblock import ReapPolicy
from storage.disk.view import WriteBatch
from storage.errors import InvalidValue
from storage.limits import TABLE_RETENTION_MS_MAX, TABLE_RETENTION_MS_MIN
from storage.table import catalogue as tables, state


class StoreChanges(Changes):
    """See the module. Every method returns what it changed, or would change with `dry_run`."""

    def delete_table(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Delete a table.

        Raises:
            TableNotFound
            ObjectHeld: open transactions have write intents in it; `force` aborts them first.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            table = tables.get(batch, name)
            holders = tables.holders(batch, table.table_id)
            aborted = self._end_holders(batch, f"table {name}", holders, force)
            head = state.find(batch, table.table_id)
            tables.delete(batch, table)
            return {
                "table": name, "tableId": table.table_id, "rows": head.rows if head is not None else 0,
                "transactionsAborted": aborted,
            }  # fmt: skip

        result = self._change("tables delete", name, change, dry_run, reason)
        if not dry_run:
            purge_deleted(self._connection)
        return result

    def set_table_retention(
        self, retention_ms: int, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """How far back versions of table rows are kept, for reads in the past and for long transactions.

        Raises:
            InvalidValue
        """
        if (
            type(retention_ms) is not int
            or not TABLE_RETENTION_MS_MIN <= retention_ms <= TABLE_RETENTION_MS_MAX
        ):
            raise InvalidValue(
                f"table versions are kept for {TABLE_RETENTION_MS_MIN} to {TABLE_RETENTION_MS_MAX} ms, "
                f"not {retention_ms!r}",
                hint="Transactions older than that can no longer use tables.",
            )

        def change(batch: WriteBatch) -> dict[str, Any]:
            before, batch.superblock.table_retention_ms = batch.superblock.table_retention_ms, retention_ms
            return {"tableRetentionMsBefore": before, "tableRetentionMs": retention_ms}

        return self._change("store config", "table-retention", change, dry_run, reason)

    def set_reap_policy(
        self, policy: str, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Which transactions the next writer ends on its way.

        Args:
            policy: `all` (overdue ones and those of dead owners), `overdue`, or `manual`.

        Raises:
            InvalidValue
        """
        names = {each.name.lower(): each for each in ReapPolicy}
        if policy not in names:
            raise InvalidValue(f"{policy!r} is no reap policy", hint=f"One of {', '.join(names)}.")

        def change(batch: WriteBatch) -> dict[str, Any]:
            before, batch.superblock.reap_policy = ReapPolicy(batch.superblock.reap_policy), names[policy]
            return {"reapPolicyBefore": before.name.lower(), "reapPolicy": policy}

        return self._change("store config", "reap-policy", change, dry_run, reason)
