"""`txnctl tables history`: recent conflicts, with the loser and the winner of each key."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.time_values import TIME
from txnctl.cli.value_types import TABLE
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.table import KEY
from txnctl.output.bytes_field import shown_bytes
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.table.conflict import ConflictRow
    from txnctl.cli.context import Context

CONFLICTS = fields_of(
    "storage.table.conflict:ConflictRow",
    {
        "number": Help("Conflicts are numbered as they happen.", heading=""),
        "happened_at_ms": Help("When it happened.", heading="WHEN"),
        "kind": (
            "push: the loser held the key, and the winner wanted it; held: the winner held it, and the loser wanted "
            "it; read: it had been read (where winnerVersion is null: may have been), version: written, by a younger "
            "one; too-old: the loser was older than what is kept."
        ),
        "loser": "The transaction that was aborted.",
        "loser_version_ns": Help("Its timestamp.", heading=""),
        "winner": Help("The other one; null where it is not known.", heading="LOST TO"),
        "winner_version_ns": Help("Its timestamp; null where it is not known.", heading=""),
        "table": Help("The table; null where it was about none.", kind="id"),
        **KEY,
    },
)

_COLUMNS: tuple[Column[ConflictRow], ...] = (
    Column("WHEN", "time", lambda row: row.happened_at_ms),
    Column("KIND", "text", lambda row: row.kind, rank=1),
    Column("LOSER", "id", lambda row: row.loser),
    Column("LOST TO", "id", lambda row: row.winner),
    Column("TABLE", "id", lambda row: row.table),
    Column("KEY", "text", lambda row: None if row.key is None else shown_bytes(row.key)),
)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl transactions begin --priority low",
    "txnctl tables put accounts B1 100 --txn 0:1",
)


@argument("table", type=TABLE, required=False, help="Only those over its keys. [default: of all tables]")
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="At most so many. [default: all]")
@option("--since", type=TIME, help="Only those since that time, such as 2h ago: `2h`.")
@reads_store
@output(CONFLICTS, name_field="loser")
@example(
    "txnctl tables history accounts",
    setup=(*_SETUP, "txnctl tables put accounts B1 90"),
)
@example("txnctl tables history -n 10 -o json")
def history(context: Context, table: str | None, limit: int | None, since: int | None) -> None:
    """List recent conflicts: which transaction lost which key to which.

    The newest comes first; the store remembers the last 1,000. Where one key appears again and again, the transactions
    that use it should be shorter, or try again after a random wait, as `transactions run --retries` does.
    """
    store = context.store
    most = limit if since is None else None
    conflicts = store.reports.list_conflicts(most) if table is None else store.table(table).history(most)
    if since is not None:
        conflicts = [row for row in conflicts if row.happened_at_ms >= since][:limit]
    if not conflicts and context.output == "table":
        over = f" over keys of {table}" if table is not None else ""
        context.note(f"no conflicts{over}{' since then' if since is not None else ''}")
    context.show_list(conflicts, table=lambda shown: context.table_of(shown, _COLUMNS))
