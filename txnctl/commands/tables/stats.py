"""`txnctl tables stats`: counts of a table, and the transactions that hold keys."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TABLE as TABLE_NAME
from txnctl.fields.table import TABLE
from txnctl.output.field import Field
from txnctl.output.human import duration, plural
from txnctl.output.screen import heading, next_command, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

STATS = (
    *TABLE,
    Field("heldIntents", "integer", "Those of the write intents that are of open transactions."),
    Field("ongoingTxnCount", "integer", "The open transactions that have write intents in it."),
    Field(
        "holders",
        "list",
        "The first 20 of these, the oldest first: txnId, intents, priority, ageMs, owner, ownerState.",
    ),
)

HOLDERS = (
    Field("txnId", "id", "An open transaction that has write intents in the table.", heading="TXN"),
    Field("intents", "integer", "How many.", heading="INTENTS"),
    Field("priority", "text", "Its priority: who meets it with a lower one is aborted."),
    Field("ageMs", "duration", "How long ago it began.", heading="AGE"),
    Field("owner", "text", "Who began it."),
    Field("ownerState", "text", "alive, stopped, dead, rebooted, unknown-host, or detached."),
)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl transactions begin",
    "txnctl tables put accounts B1 90 --txn 0:2",
)


@argument("table", type=TABLE_NAME, help="The table.")
@reads_store
@output(STATS, name_field="table")
@example("txnctl tables stats accounts", setup=_SETUP)
@example("txnctl tables stats accounts -o json", setup=_SETUP)
def stats(context: Context, table: str) -> None:
    """Show the counts of a table, and the transactions that hold keys.

    A write intent is a value of a transaction that is open, or has ended and left the value to be finalised: the next
    write to the key finalises an intent, and `store gc` all intents. The open transactions that hold keys are listed,
    the oldest first; `tables intents` has the keys.
    """
    context.show(to_json(context.store.table(table).stats()), table=lambda row: _report(context, row))


def _report(context: Context, row: Row) -> Iterator[str]:
    yield heading(context, row["table"], plural(row["keys"], "key"), row["asOfMs"])
    yield f"  rows        {row['rows']:,} stored, created {row['createdAt']}"
    yield f"  versions    {plural(row['versions'], 'older one')}, kept for {duration(row['retentionMs'])}"
    yield f"  intents     {_intents(row)}"
    yield from _holders(context, row)
    if row["intents"]:
        command = f"txnctl tables intents {row['table']}" if row["holders"] else "txnctl store gc"
        yield ""
        yield next_command(context, command)


def _intents(row: Row) -> str:
    """The number of write intents, of open and of ended transactions."""
    held, waiting = row["heldIntents"], row["intents"] - row["heldIntents"]
    parts = []
    if held:
        parts.append(f"{held:,} held by {plural(row['ongoingTxnCount'], 'open transaction')}")
    if waiting:
        parts.append(f"{waiting:,} left by ended ones, to be finalised")
    return f"{row['intents']:,}" + (f": {', '.join(parts)}" if parts else "")


def _holders(context: Context, row: Row) -> Iterator[str]:
    """A line for each open transaction that holds keys, and how many more there are."""
    if not row["holders"]:
        return
    table = context.table_of(row["holders"], HOLDERS, folds=False)
    yield ""
    yield from section(context, table)
    more = row["ongoingTxnCount"] - len(row["holders"])
    if more:
        yield f"  and {more:,} more"
