"""`txnctl subscriptions stats`: the backlog of one subscription by kind, and the deliveries."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.commands.subscriptions.one_subscription import (
    SUBSCRIPTION_ARGUMENT,
    consumer_lines,
    cursor_line,
    ends_line,
    subscription_row,
)
from txnctl.fields.subscription import STATS, mode_of, name_of
from txnctl.output.human import count, plural, size
from txnctl.output.screen import heading, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")


@argument("topic", type=TOPIC, help="The topic.")
@SUBSCRIPTION_ARGUMENT
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions stats orders billing", setup=_SETUP)
@example("txnctl subscriptions stats orders billing -o json", setup=_SETUP)
def stats(context: Context, topic: str, subscription: str | None) -> None:
    """Show the backlog of a subscription by kind, and counts of deliveries.

    The backlog has three parts: visible messages can be delivered now (growing: slow consumers), blocked messages are
    committed but wait behind an open transaction (no consumer can help), uncommitted messages belong to open
    transactions.
    """
    context.show(subscription_row(context, topic, subscription), table=lambda row: _numbers(context, row))


def _holders(row: Row) -> Iterator[str]:
    """With on-open skip: the messages that each open transaction holds back."""
    for holder in row["heldBy"]:
        behind = f", {plural(holder['blocked'], 'committed message')} behind" if holder["blocked"] else ""
        yield f"    held by      {holder['txnId']}: {plural(holder['uncommitted'], 'uncommitted message')}{behind}"


def _numbers(context: Context, row: Row) -> Iterator[str]:
    from txnctl.commands.subscriptions.verdict_lines import explanation

    yield heading(context, name_of(row), mode_of(row), row["asOfMs"])
    yield f"  verdict      {verdict(context, row['verdict'])}"
    yield f"  backlog      {plural(row['msgBacklog'], 'message')}, {size(row['backlogSize'])} stored"
    yield f"    visible      {count(row['visible']):>9}   of these {count(row['unackedMessages'])} in flight"
    why = "waiting for their key" if row["onOpen"] == "skip" else "behind an open transaction"
    yield f"    blocked      {count(row['blocked']):>9}   committed, {why}"
    yield f"    uncommitted  {count(row['uncommitted']):>9}   of open transactions"
    yield from _holders(row)
    yield f"  pending      {count(row['pending'])} acknowledged in open transactions"
    yield (
        f"  passed over  {count(row['acknowledgedAhead'])} acknowledged and {count(row['abortedAhead'])} aborted "
        "beyond markDeletePosition"
    )
    again = plural(row["msgRedeliverCounter"], "redelivery", "redeliveries")
    yield f"  delivered    {count(row['msgOutCounter'])}, of these {again}"
    yield f"  cursor       {cursor_line(row)}"
    yield f"  topic        {ends_line(row)}"
    yield from consumer_lines(context, row)
    lines = list(explanation(context, [row], row["blockedBy"], row["asOfMs"]))
    if lines:
        yield ""
        yield from lines
