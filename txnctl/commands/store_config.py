"""`txnctl store config`: the settings that a store keeps for all who use it."""

from __future__ import annotations

from txnctl.options import administrative, argument, example, names_store, output
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from storage import Store
    from txnctl.context import Context

    Row = dict[str, Any]

SETTINGS = (
    Field("name", "id", "The setting."),
    Field("value", "text", "Its value."),
    Field("before", "text", "What it was, where it was just set.", heading=""),
    Field("dryRun", "boolean", "Whether nothing was changed, where it was to be set.", heading=""),
    Field("meaning", "text", "What it is for."),
)

REAP_POLICY = "reap-policy"
MEANINGS = {
    REAP_POLICY: "What the next writer aborts: all (overdue ones and those of dead owners), overdue, or manual.",
}


@argument("name", required=False, help="The setting; all if it is left out.")
@argument("value", required=False, help="Its new value; without one the setting is only shown.")
@names_store(effect="writes")
@administrative
@output(SETTINGS, name_field="name")
@example("txnctl store config")
@example("txnctl store config reap-policy overdue --reason 'operators look at orphans first'")
def config(context: Context, name: str | None, value: str | None) -> None:
    """Show or change the settings that a store keeps for all who use it.

    reap-policy: `all` lets whoever writes next abort transactions whose deadline has passed or whose owner is proven
    dead; `overdue` leaves those of dead owners to an operator; `manual` leaves all to `transactions reap`.
    """
    if name is not None and name not in MEANINGS:
        from storage.errors import InvalidValue

        raise InvalidValue(
            f"a store has no setting {name!r}", hint=f"It has {', '.join(MEANINGS)}.", given=name
        )
    with context.open_store(context.store_path, read_only=value is None) as store:
        if name is None:
            context.show_list([_row(store, each) for each in MEANINGS])
        elif value is None:
            context.show(_row(store, name), table=lambda row: row["value"])
        else:
            done = store.admin.set_reap_policy(value, dry_run=context.dry_run, reason=context.reason)
            context.show(_changed(name, done), table=_report)


def _row(store: Store, name: str) -> Row:
    return {"name": name, "value": store.info()["reapPolicy"], "meaning": MEANINGS[name]}


def _changed(name: str, done: Row) -> Row:
    return {
        "name": name,
        "value": done["reapPolicy"],
        "before": done["reapPolicyBefore"],
        "dryRun": done["dryRun"],
        "meaning": MEANINGS[name],
    }


def _report(row: Row) -> list[str]:
    change = f"{row['name']}: {row['before']} -> {row['value']}"
    return ["DRY RUN: nothing was changed.", "", change] if row["dryRun"] else [change]
