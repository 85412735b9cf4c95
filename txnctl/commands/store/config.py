"""`txnctl store config`: settings kept in the store, for every process."""

from __future__ import annotations

from storage.errors import InvalidValue
from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, example, names_store, output
from txnctl.cli.value_types import DURATION_MS
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

SETTINGS = (
    Field("name", "id", "The setting."),
    Field("value", "text", "Its value."),
    Field("before", "text", "What it was, where it was just set.", heading=""),
    Field("dryRun", "boolean", "Whether nothing was changed, where it was to be set.", heading=""),
    Field("meaning", "text", "What it is for."),
)

REAP_POLICY = "reap-policy"
TABLE_RETENTION = "table-retention"
MEANINGS = {
    REAP_POLICY: "What the next writer aborts: all (overdue ones and those of dead owners), overdue, or manual.",
    TABLE_RETENTION: "How long older versions of table rows are kept, for reads in the past and long transactions.",
}
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


@argument("name", required=False, help="The setting; all if it is left out.")
@argument("value", required=False, help="Its new value; without one the setting is only shown.")
@names_store(effect="writes")
@administrative
@output(SETTINGS, name_field="name")
@example("txnctl store config")
@example("txnctl store config reap-policy overdue --reason 'operators look at orphans first'")
@example("txnctl store config table-retention 1d")
def config(context: Context, name: str | None, value: str | None) -> None:
    """Show or change the settings of a store, which apply to every process.

    reap-policy: with `all` the next writer aborts transactions that are overdue or owned by a process proven dead;
    `overdue` leaves transactions of dead owners to an operator; `manual` leaves all to `transactions reap`.

    table-retention: a duration, 1h unless set. `tables get --at` reads as far back; a transaction that is older can
    use no table any more; `store gc` removes older versions. Raising the setting brings no removed version back.
    """
    if name is not None and name not in MEANINGS:
        raise InvalidValue(
            f"a store has no setting {name!r}", hint=f"It has {', '.join(MEANINGS)}.", given=name
        )
    with context.open_store(context.store_path, read_only=value is None) as store:
        if name is None:
            context.show_list([_row(store, setting) for setting in MEANINGS])
        elif value is None:
            context.show(_row(store, name), table=lambda row: row["value"])
        else:
            context.show(_changed(context, store, name, value), table=_report)


def _row(store: Store, name: str) -> Row:
    return {"name": name, "value": _value(store, name), "meaning": MEANINGS[name]}


def _value(store: Store, name: str) -> str:
    info = to_json(store.reports.store_info())
    return str(info["reapPolicy"]) if name == REAP_POLICY else _duration(info["tableRetentionMs"])


def _changed(context: Context, store: Store, name: str, value: str) -> Row:
    """Change a setting, or show the change."""
    how: Row = {"dry_run": context.dry_run, "reason": context.reason}
    if name == REAP_POLICY:
        done = to_json(store.admin.settings.set_reap_policy(value, **how))
        after, before = done["reapPolicy"], done["reapPolicyBefore"]
    else:
        done = to_json(
            store.admin.settings.set_table_retention(DURATION_MS.convert(value, None, None), **how)
        )
        after, before = _duration(done["tableRetentionMs"]), _duration(done["tableRetentionMsBefore"])
    return {
        "name": name,
        "value": after,
        "before": before,
        "dryRun": done["dryRun"],
        "meaning": MEANINGS[name],
    }


def _duration(milliseconds: int) -> str:
    """A duration in the form of an argument: `90m`, `1d`."""
    for unit, size in _UNITS_MS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _report(row: Row) -> list[str]:
    change = f"{row['name']}: {row['before']} -> {row['value']}"
    return ["DRY RUN: nothing was changed.", "", change] if row["dryRun"] else [change]
