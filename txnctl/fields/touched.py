"""Topics, subscriptions and tables that a transaction touched, in words."""

from __future__ import annotations

from typing import NamedTuple

from storage.reports.transactions import SubscriptionPartRow, TablePartRow
from storage.values.txn_state import TransactionState
from txnctl.output.column import Column
from txnctl.output.human import UNKNOWN, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.transactions import PartRow, TransactionDetails, TransactionRow

_RUNS_SHOWN = 8
_KEYS_SHOWN = 8

_DOING_WITH_KEYS = {
    TransactionState.OPEN: "holds keys of",
    TransactionState.COMMITTED: "wrote",
    TransactionState.ABORTED: "held keys of",
}


class Touched(NamedTuple):
    """A touched object in words: the object, the amount, the positions or keys."""

    what: str
    amount: str
    where: str


TOUCHED: tuple[Column[Touched], ...] = (
    Column("TOUCHED", "text", lambda row: row.what),
    Column("COUNT", "text", lambda row: row.amount),
    Column("WHERE", "text", lambda row: row.where),
)


def short_names(row: TransactionRow) -> list[str]:
    """The topics under short names."""
    from storage.values.names import short_topic_name

    return [short_topic_name(topic) for topic in row.topics]


def touched_parts(details: TransactionDetails) -> list[Touched]:
    """The touched objects, one row each."""
    return [_touched_part(part, details.row.state) for part in details.parts]


def _touched_part(part: PartRow, state: TransactionState) -> Touched:
    if isinstance(part, TablePartRow):
        return _table_part(part, state)
    runs = [str(run) for run in part.positions[: _RUNS_SHOWN + 1]]
    where = ", ".join(runs[:_RUNS_SHOWN]) + (", ..." if len(runs) > _RUNS_SHOWN else "")
    count = plural(part.messages, "message")
    if not isinstance(part, SubscriptionPartRow):
        return Touched(f"produced to {part.name}", count, where)
    if part.cumulative is not None:
        where = ", ".join([f"through {part.cumulative}", *([where] if where else [])])
    doing = "acknowledgements pending" if state is TransactionState.OPEN else "acknowledged"
    return Touched(f"{doing} on {part.name}, {part.subscription}", count, where or UNKNOWN)


def _table_part(part: TablePartRow, state: TransactionState) -> Touched:
    """The keys written in a table, the first by name."""
    from txnctl.output.bytes_field import bytes_cell

    keys = [bytes_cell(key) for key in part.key_list[:_KEYS_SHOWN]]
    where = ", ".join(keys) + (", ..." if keys and part.keys > len(keys) else "")
    return Touched(
        f"{_DOING_WITH_KEYS[state]} table {part.table}", plural(part.keys, "key"), where or UNKNOWN
    )


def touched(details: TransactionDetails) -> str:
    """`3 messages on orders, payments; 2 acknowledgements; 4 keys of accounts`, or `it had touched nothing`."""
    row, parts = details.row, []
    if row.messages:
        parts.append(f"{plural(row.messages, 'message')} on {', '.join(short_names(row))}")
    if row.acknowledgements:
        parts.append(plural(row.acknowledgements, "acknowledgement"))
    parts += [
        f"{plural(part.keys, 'key')} of {part.table}"
        for part in details.parts
        if isinstance(part, TablePartRow)
    ]
    return "; ".join(parts) or "it had touched nothing"
