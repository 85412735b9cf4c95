"""`txnctl doctor`: what is there of all that txnctl can use, and how to get the rest."""

from __future__ import annotations

from txnctl.declaration import command
from txnctl.options import example, names_store, option, output
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from txnctl.context import Context

    Row = dict[str, Any]

FIELDS = (
    Field("what", "text", "The store, or a program or library."),
    Field("ok", "boolean", "Whether it is there and will do."),
    Field("needed", "text", "always, or the commands that need it."),
    Field("version", "text", "Its version, or null; of a store the number of its format."),
    Field("place", "text", "Where it is, or null."),
    Field("hint", "text", "What to do where it will not do, or null.", heading=""),
)


@command
@option("--exit-code", is_flag=True, help="Exit with 8 where something will not do.")
@names_store(effect="reads")
@output(FIELDS, name_field="what")
@example("txnctl doctor")
@example("txnctl doctor --exit-code -o json")
def doctor(context: Context, exit_code: bool) -> None:
    """Say what is there of all that txnctl can use, and how to get the rest.

    Looked at are the store, and what only `txnctl pipeline` needs: Java, PySpark and PyArrow. Nothing is changed.
    """
    from txnctl.spark import requirements

    rows = [_store(context), *({**row, "needed": "pipeline"} for row in requirements.describe())]
    context.show_list(rows, table=lambda shown: _report(context, shown))
    if exit_code and not all(row["ok"] for row in rows):
        from txnctl.exit_codes import CONDITION_FOUND

        context.exit(CONDITION_FOUND)


def _store(context: Context) -> Row:
    """The store, looked at as every command opens it."""
    from storage.errors import TxnctlError

    row: Row = {"what": "store", "ok": True, "needed": "always", "version": None, "place": context.store_path}
    try:
        with context.open_store(context.store_path, read_only=True) as store:
            row |= {"version": str(store.info()["format"]), "hint": None}
    except TxnctlError as error:
        row |= {"ok": False, "hint": f"{error.message}. {error.hint or ''}".strip()}
    return row


def _report(context: Context, rows: Sequence[Row]) -> list[str]:
    """A line for each, and what to do under the table."""
    lines = [context.table_of(rows, FIELDS)]
    for row in rows:
        if row["hint"]:
            lines += ["", f"{context.style(row['what'], 'bold')}: {row['hint']}"]
    return lines
