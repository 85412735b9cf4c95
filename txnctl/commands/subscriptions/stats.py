"""`txnctl subscriptions stats`: the backlog of one subscription by kind, and the deliveries."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.commands.subscriptions.one_subscription import (
    STATS,
    SUBSCRIPTION_ARGUMENT,
    consumer_lines,
    cursor_line,
    ends_line,
    one_subscription,
)
from txnctl.fields.subscription import mode_of, name_of
from txnctl.output.human import count, plural, size
from txnctl.output.screen import heading, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.skipped import HeldBack
    from storage.reports.stats import OneSubscription
    from txnctl.cli.context import Context

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")


@argument("topic", type=TOPIC, help="The topic.")
@SUBSCRIPTION_ARGUMENT
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions stats orders billing", setup=_SETUP)
@example("txnctl subscriptions stats orders billing -o json", setup=_SETUP)
def stats(context: Context, topic: str, subscription: str | None) -> None:
    """Show the backlog of a subscription by kind, and counts of deliveries.

    The backlog has four parts: visible messages can be delivered now (growing: slow consumers), blocked messages are
    committed but wait behind an open transaction (no consumer can help), delayed messages wait for their delivery
    time (shared and key-shared), uncommitted messages belong to open transactions.
    """
    context.show(one_subscription(context, topic, subscription), table=lambda row: _numbers(context, row))


def _holders(held_by: Sequence[HeldBack]) -> Iterator[str]:
    """With on-open skip: the messages that each open transaction holds back."""
    for holder in held_by:
        behind = f", {plural(holder.blocked, 'committed message')} behind" if holder.blocked else ""
        yield f"    held by      {holder.txn_id}: {plural(holder.uncommitted, 'uncommitted message')}{behind}"


def _numbers(context: Context, one: OneSubscription) -> Iterator[str]:
    from txnctl.commands.subscriptions.lag_row import lag_row
    from txnctl.commands.subscriptions.verdict_lines import explanation

    stats = one.row.stats
    yield heading(context, name_of(one.row), mode_of(stats), one.row.as_of_at_ms)
    yield f"  verdict      {verdict(context, stats.verdict)}"
    yield f"  backlog      {plural(stats.msg_backlog, 'message')}, {size(stats.backlog_size)} stored"
    yield f"    visible      {count(stats.visible):>9}   of these {count(stats.unacked_messages)} in flight"
    why = "waiting for their key" if stats.on_open == "skip" else "behind an open transaction"
    yield f"    blocked      {count(stats.blocked):>9}   committed, {why}"
    if stats.delayed:
        yield f"    delayed      {count(stats.delayed):>9}   until their delivery time"
    yield f"    uncommitted  {count(stats.uncommitted):>9}   of open transactions"
    yield from _holders(stats.held_by)
    yield f"  pending      {count(stats.pending)} acknowledged in open transactions"
    yield (
        f"  passed over  {count(stats.acknowledged_ahead)} acknowledged and {count(stats.aborted_ahead)} aborted "
        "beyond markDeletePosition"
    )
    again = plural(stats.msg_redeliver_counter, "redelivery", "redeliveries")
    yield f"  delivered    {count(stats.msg_out_counter)}, of these {again}"
    if stats.msg_aborted_drop_counter:
        dropped = plural(stats.msg_aborted_drop_counter, "message")
        yield f"  dropped      {dropped} of aborted transactions, without a dead letter"
    yield f"  cursor       {cursor_line(stats)}"
    yield f"  topic        {ends_line(one)}"
    yield from consumer_lines(context, stats.consumers)
    lines = list(explanation(context, [lag_row(one)]))
    if lines:
        yield ""
        yield from lines
