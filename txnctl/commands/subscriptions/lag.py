"""`txnctl subscriptions lag`: slow consumers or blocked ones, with the blocking transaction."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli import exit_codes
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.verdict_lines import explanation
from txnctl.fields.subscription import (
    AS_OF,
    BACKLOG,
    BLOCKED_BY,
    CONSUMERS,
    ENDS,
    HELD_BY,
    MODE,
    NAMES,
    ON_OPEN,
    PENDING_IN,
    VERDICT,
    level_of,
    living,
    short_topic,
)
from txnctl.output.field import Field
from txnctl.output.screen import heading, verdict_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

LAG = (
    *NAMES,
    *AS_OF,
    *MODE,
    ON_OPEN,
    Field("markDeletePosition", "position", "Everything up to here is acknowledged."),
    *BACKLOG,
    PENDING_IN,
    HELD_BY,
    VERDICT,
    CONSUMERS,
    *ENDS,
    Field(
        "blockedBy", "map", f"{BLOCKED_BY.help[:-1]}, it blocks nothing here, or the subscription skips it."
    ),
)
_OF_TOPIC = ("topic", "asOfAt", "asOfMs", "maxReadPosition", "lastConfirmedEntry")

_COLUMNS = (
    NAMES[1],
    *MODE,
    *BACKLOG[:5],
    Field("living", "integer", "Consumers.", heading="CONSUMERS"),
    VERDICT,
)


@argument("topic", type=TOPIC, help="The topic.")
@argument(
    "subscription", type=SUBSCRIPTION, required=False, help="Only this one. [default: all of the topic]"
)
@option("--exit-code", is_flag=True, help="End with 8 if a verdict is not ok.")
@reads_store
@output(LAG, name_field="subscription")
@example(
    "txnctl subscriptions lag orders",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
@example(
    "txnctl subscriptions lag orders billing -o json",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
def lag(context: Context, topic: str, subscription: str | None, exit_code: bool) -> None:
    """Say whether consumers are slow, or blocked by an open transaction.

    `visible` messages can be delivered now: a count that stays high means slow consumers. `blocked` messages are
    committed, but wait behind an open transaction: no consumer can help, that transaction must end. `uncommitted`
    belongs to open transactions.

    With on-open skip only messages of a held key are blocked; heldBy names the transaction. `pending` messages are
    acknowledged in a transaction that is still open; pendingIn names the transaction.

    The verdict is `ok`, `behind` (visible), `blocked`, `mixed` (both), or `no-consumer` (visible, and no consumer
    attached).
    """
    rows = _rows(context, topic, subscription)
    if not rows and context.output == "table":
        context.note(f"there are no subscriptions on {topic}")
    if subscription is None:
        context.show_list(rows, table=lambda shown: _report(context, shown))
    else:
        context.show(rows[0], table=lambda shown: _report(context, [shown]))
    if exit_code and any(row["verdict"] != "ok" for row in rows):
        context.exit(exit_codes.CONDITION_FOUND)


def _rows(context: Context, topic: str, subscription: str | None) -> list[Row]:
    """One row a subscription, all from one view."""
    names = [field.name for field in LAG]
    if subscription is not None:
        whole = [to_json(context.store.reports.subscription_stats(topic, subscription))]
    else:
        stats = to_json(context.store.reports.topic_stats(topic))
        shared = {name: stats[name] for name in (*_OF_TOPIC, "blockedBy")}
        whole = [
            {**stats_row, **shared, "subscription": name}
            for name, stats_row in stats["subscriptions"].items()
        ]
    rows = [{name: row[name] for name in names} for row in whole]
    for row in rows:
        if not row["blocked"] or row["onOpen"] == "skip":
            row["blockedBy"] = None
    return rows


def _report(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    first = rows[0]
    facts = f"maxReadPosition {first['maxReadPosition']}   lastConfirmedEntry {first['lastConfirmedEntry']}"
    yield heading(context, short_topic(first), facts, first["asOfMs"])
    yield ""
    cells = [{**row, "subscriptionIsolationLevel": level_of(row), "living": living(row)} for row in rows]
    yield from verdict_section(
        context, [row["verdict"] for row in rows], context.table_of(cells, _COLUMNS, folds=False)
    )
    blockers = [row["blockedBy"] for row in rows if row["blockedBy"] is not None]
    lines = list(explanation(context, rows, blockers[0] if blockers else None, first["asOfMs"]))
    if lines:
        yield ""
        yield from lines
