"""`txnctl store upgrade`: a store of an earlier release in the present format."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, changes_store, example, output
from txnctl.fields.change import DRY_RUN
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.maintenance.upgrade import UpgradeResult
    from txnctl.cli.context import Context

UPGRADED = fields_of(
    "storage.maintenance.upgrade:UpgradeResult",
    {
        "path": "The store's directory.",
        "format_before": Help("The format that the store had.", heading="BEFORE"),
        "format": Help("The format that the store has now; in a dry run, would have.", heading="AFTER"),
        **DRY_RUN,
    },
)


@changes_store()
@administrative
@output(UPGRADED, name_field="path")
@example("txnctl store upgrade --dry-run")
@example("txnctl store upgrade --reason 'txnctl is the new release everywhere'")
def upgrade(context: Context) -> None:
    """Bring a store of an earlier release to the present format.

    This release reads a store of format 1, and refuses every change of it until the upgrade. Earlier releases refuse
    the store afterwards, and nothing leads back but a backup: `store backup` first. The upgrade is one commit, in
    place: a kill leaves the store as it was or upgraded. No further process may have the store open: otherwise exit
    code 5, with the process named. A store that has the present format is left as it is.
    """
    row = context.store.maintenance.upgrade_store(dry_run=context.dry_run, reason=context.reason)
    context.show(row, table=_upgraded)


def _upgraded(row: UpgradeResult) -> list[str]:
    if row.format_before == row.format:
        return [f"{row.path} has format {row.format} already; nothing was to be done."]
    formats = f"{row.path}: format {row.format_before} -> {row.format}."
    if row.dry_run:
        return ["DRY RUN: nothing was changed.", "", f"Would upgrade {formats}"]
    return [f"Upgraded {formats}", "Earlier releases refuse the store from now on."]
