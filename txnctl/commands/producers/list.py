"""`txnctl producers list`: connected and waiting producers."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.producer import (
    ALIVE,
    AS_OF,
    EPOCH,
    MODE,
    OWNER,
    PRODUCER,
    PROGRAM,
    ROW,
    connected,
    last_publish,
    table,
)
from txnctl.output.column import Column
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.json_form import Flat
    from storage.reports.producers import ProducerRow
    from txnctl.cli.context import Context
    from txnctl.output.table_layout import TextTable


class ListedProducer(NamedTuple):
    """A producer, and the moment of the list."""

    producer: Flat[ProducerRow]
    as_of_at_ms: int


LISTED = fields_of(ListedProducer, {**ROW, **AS_OF}, part="storage.reports.producers:ProducerRow")


@argument("topic", type=TOPIC, required=False, help="Only those of this topic. [default: of all topics]")
@reads_store
@output(LISTED, name_field="producerName")
@example(
    "txnctl producers list orders",
    setup=("txnctl topics create orders", "txnctl producers open orders --producer loader"),
)
@example("txnctl producers list -o json")
def list_(context: Context, topic: str | None) -> None:
    """List connected and waiting producers.

    ROLE is `owner` (exclusive, alive), `was owner` (exclusive, dead), `shared`, or `waiting` with the place in the
    queue, 1 is next. ALIVE is the proven state: `yes`; `stopped` (SIGSTOP), which counts as alive; `lease` and for how
    long, of a session that no process holds; `DEAD` or `EXPIRED`, which stand in nobody's way: the next producer that
    connects removes such a session.
    """
    now_ms = context.store.connection.clock.wall_ms()
    rows = [ListedProducer(row, now_ms) for row in context.store.reports.list_producers(topic)]
    if not rows and context.output == "table":
        context.note("no producers are connected" + (f" to {topic}" if topic is not None else ""))
    context.show_list(rows, table=lambda shown: _table(context, [row.producer for row in shown], now_ms))


def _table(context: Context, rows: Sequence[ProducerRow], now_ms: int) -> TextTable:
    name: Column[ProducerRow] = Column("TOPIC", "id", lambda row: row.name)
    role: Column[ProducerRow] = Column("ROLE", "text", _role)
    at = (connected(now_ms), last_publish(now_ms))
    return table(context, rows, (name, PRODUCER, MODE, role, EPOCH, OWNER, PROGRAM, ALIVE, *at))


def _role(row: ProducerRow) -> str:
    if row.is_waiting:
        return "waiting" if row.place is None else f"waiting {row.place}"
    if row.is_owner:
        return "owner"
    return "shared" if row.access_mode == "Shared" else "was owner"
