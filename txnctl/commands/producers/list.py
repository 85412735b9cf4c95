"""`txnctl producers list`: connected and waiting producers."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.producer import AS_OF, ROW, cells, table
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

LISTED = (*ROW, *AS_OF)

_COLUMNS = (
    Field("name", "id", "The topic.", heading="TOPIC"),
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("accessMode", "text", "What it asked for.", heading="MODE"),
    Field("role", "text", "What it is."),
    Field("epoch", "integer", "Its epoch."),
    Field("who", "text", "Where it runs.", heading="OWNER"),
    Field("program", "text", "What it runs."),
    Field("alive", "text", "Whether it lives."),
    Field("connected", "text", "For how long."),
    Field("lastPublish", "text", "How long ago."),
)


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
    from storage.values.timestamps import both

    as_of = both("asOf", context.store.connection.clock.wall_ms())
    rows = [{**row, **as_of} for row in to_json(context.store.reports.list_producers(topic))]
    if not rows and context.output == "table":
        context.note("no producers are connected" + (f" to {topic}" if topic is not None else ""))
    context.show_list(rows, table=lambda shown: _table(context, shown))


def _table(context: Context, rows: Sequence[Row]) -> str:
    return table(context, [{**cells(row, row["asOfMs"]), "role": _role(row)} for row in rows], _COLUMNS)


def _role(row: Row) -> str:
    if row["isWaiting"]:
        return "waiting" if row["place"] is None else f"waiting {row['place']}"
    if row["isOwner"]:
        return "owner"
    return "shared" if row["accessMode"] == "Shared" else "was owner"
