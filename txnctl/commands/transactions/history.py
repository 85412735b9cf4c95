"""`txnctl transactions history`: how transactions ended."""

from __future__ import annotations

from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.time_values import TIME
from txnctl.cli.value_types import ABORT_REASON
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.transactions.choice import TransactionChoice, chooses_transactions
from txnctl.fields.transaction import ROW
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.transactions import TransactionRow
    from txnctl.cli.context import Context

_LIMIT = 50


@chooses_transactions
@option(
    "--abort-reason",
    "reason",
    type=ABORT_REASON,
    metavar="REASON",
    help="Only those aborted for this reason: asked, timed-out, owner-dead, lost-conflict, refused-write, fenced, "
    "incarnation or retention.",
)
@option("--since", type=TIME, help="Only those that ended since that time, such as 2h ago: `2h`.")
@option(
    "-n",
    "--count",
    "limit",
    type=WholeNumber(1),
    metavar="N",
    help="At most so many. [default: 50]",
)
@reads_store
@output(ROW, name_field="txnId")
@example(
    "txnctl transactions history",
    setup=("txnctl transactions begin", "txnctl transactions abort 0:1 --reason 'wrong file'"),
)
@example("txnctl transactions history --abort-reason owner-dead --since 2h -o json")
def history(
    context: Context, choice: TransactionChoice, reason: str | None, since: int | None, limit: int | None
) -> None:
    """Show ended transactions: time, reason, author, age.

    The one that ended last comes first; without -n a note says where there are more. An outcome is kept as long as a
    message of the transaction is stored, and for a day at least. `audit list` has aborts by operators and expired
    transactions too.
    """
    rows = context.store.reports.list_ended_transactions(
        reason=reason, since_ms=since, limit=limit or _LIMIT + 1, **choice.given()
    )
    if limit is None and len(rows) > _LIMIT:
        rows = rows[:_LIMIT]
        context.note(f"{plural(_LIMIT, 'transaction')} shown, and there are more: -n N shows N")
    if not rows and context.output == "table":
        is_chosen = bool(choice.given()) or reason is not None or since is not None
        near = choice.near_label(context.store)
        context.note(f"no transaction ended like that{near}" if is_chosen else "no transaction has ended yet")
    context.show_list(rows, table=lambda shown: _report(context, shown))


def _report(context: Context, rows: Sequence[TransactionRow]) -> Iterator[str]:
    """The list, and how many ended in which way."""
    from txnctl.commands.transactions import layout

    if not rows:
        return
    yield from layout.ended_list(context, rows)
    ways: dict[str, int] = {}
    for row in rows:
        way = row.reason or row.state.value.lower()
        ways[way] = ways.get(way, 0) + 1
    yield ""
    yield ", ".join([f"{count:,} {way}" for way, count in sorted(ways.items(), key=lambda item: -item[1])])
