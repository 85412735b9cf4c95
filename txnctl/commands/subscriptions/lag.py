"""`txnctl subscriptions lag`: slow consumers or blocked ones, with the blocking transaction."""

from __future__ import annotations

from contextlib import suppress

from storage.errors import TopicNotFound
from txnctl.cli import exit_codes
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.cli.watch import draw_until_interrupted, is_watched, watches
from txnctl.commands.subscriptions.lag_row import LagRow, lag_row
from txnctl.commands.subscriptions.verdict_lines import explanation
from txnctl.fields.subscription import (
    AS_OF,
    BACKLOG,
    BLOCKER,
    CONSUMERS,
    ENDS,
    HELD_BY,
    MODE,
    NAMES,
    ON_OPEN,
    PENDING_IN,
    VERDICT,
    backlog_columns,
    mode_columns,
    short_topic,
)
from txnctl.output.column import Column
from txnctl.output.field import fields_of
from txnctl.output.screen import heading, verdict, verdict_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.cli.watch import Screenful

LAG = fields_of(
    LagRow,
    {
        **NAMES,
        **AS_OF,
        **MODE,
        **ON_OPEN,
        "mark_delete_position": "Everything up to here is acknowledged.",
        **BACKLOG,
        **PENDING_IN,
        **HELD_BY,
        **VERDICT,
        **CONSUMERS,
        **ENDS,
        "blocked_by": f"{BLOCKER}, it blocks nothing here, or the subscription skips it.",
    },
)


_NONE_YET = ("There are no subscriptions.",)


def _itself(row: LagRow) -> LagRow:
    return row


_COLUMNS: tuple[Column[LagRow], ...] = (
    Column("SUBSCRIPTION", "id", lambda row: row.subscription),
    *mode_columns(_itself),
    *backlog_columns(_itself),
    Column("VERDICT", "text", lambda row: row.verdict),
)


@argument("topic", type=TOPIC, required=False, help="The topic. [default: all]")
@argument(
    "subscription", type=SUBSCRIPTION, required=False, help="Only this one. [default: all of the topic]"
)
@option("--exit-code", is_flag=True, help="End with 8 if a verdict is not ok.")
@watches
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
@example(
    "txnctl subscriptions lag --exit-code",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
def lag(
    context: Context, topic: str | None, subscription: str | None, exit_code: bool, watch: float | None
) -> None:
    """Say whether consumers are slow, or blocked by an open transaction.

    `visible` messages can be delivered now: a count that stays high means slow consumers. `blocked` messages are
    committed, but wait behind an open transaction: no consumer can help, that transaction must end. `delayed`
    messages wait for their delivery time (shared and key-shared). `uncommitted` belongs to open transactions.

    With on-open skip only messages of a held key are blocked; heldBy names the transaction. `pending` messages are
    acknowledged in a transaction that is still open; pendingIn names the transaction.

    The verdict is `ok`, `behind` (visible), `stopped` (visible, and kept by stopped consumers), `blocked`, `mixed`
    (both), or `no-consumer` (visible, and no consumer attached).
    """
    if is_watched(context, watch):
        draw_until_interrupted(
            context, watch or 0, lambda: _screenful(context, _rows(context, topic, subscription))
        )
    rows = _rows(context, topic, subscription)
    if not rows and context.output == "table":
        context.note(
            "there are no subscriptions" if topic is None else f"there are no subscriptions on {topic}"
        )
    if subscription is None:
        context.show_list(rows, table=lambda shown: report(context, shown))
    else:
        context.show(rows[0], table=lambda shown: report(context, [shown]))
    if exit_code and any(row.verdict != "ok" for row in rows):
        context.exit(exit_codes.CONDITION_FOUND)


def _rows(context: Context, topic: str | None, subscription: str | None) -> list[LagRow]:
    """One row a subscription, those of a topic from one view."""
    if topic is not None and subscription is not None:
        return [lag_row(context.store.reports.subscription_stats(topic, subscription))]
    if topic is not None:
        return _rows_of_topic(context, topic)
    rows: list[LagRow] = []
    for name in context.store.topics():
        # A topic may be deleted meanwhile.
        with suppress(TopicNotFound):
            rows += _rows_of_topic(context, name)
    return rows


def _rows_of_topic(context: Context, topic: str) -> list[LagRow]:
    from storage.reports.stats import OneSubscription, SubscriptionRow

    stats = context.store.reports.topic_stats(topic)
    return [
        lag_row(
            OneSubscription(
                SubscriptionRow(stats.topic, name, stats.as_of_at_ms, figures),
                stats.counts.max_read_position,
                stats.counts.last_confirmed_entry,
                stats.blocked_by,
            )
        )
        for name, figures in stats.subscriptions.items()
    ]


def report(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    """A section for each topic."""
    for number, topic in enumerate(dict.fromkeys([row.topic for row in rows])):
        if number:
            yield ""
        yield from _section(context, [row for row in rows if row.topic == topic])


def _screenful(context: Context, rows: Sequence[LagRow]) -> Screenful:
    from txnctl.cli.watch import Screenful
    from txnctl.output.escape import printable_row
    from txnctl.output.screen import VERDICTS

    shown = printable_row(list(rows))
    alarming = sorted(
        [row for row in shown if row.verdict != "ok"], key=lambda row: VERDICTS.index(row.verdict)
    )
    return Screenful(
        [_problem(context, row) for row in alarming], report(context, shown) if shown else _NONE_YET
    )


def _problem(context: Context, row: LagRow) -> str:
    """`orders billing: blocked, 0 visible, 12 blocked behind 0:7`."""
    behind = "" if row.blocked_by is None else f" behind {row.blocked_by.txn_id}"
    counts = f"{row.visible:,} visible, {row.blocked:,} blocked{behind}"
    return f"{short_topic(row)} {row.subscription}: {verdict(context, row.verdict)}, {counts}"


def _section(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    first = rows[0]
    facts = f"maxReadPosition {first.max_read_position}   lastConfirmedEntry {first.last_confirmed_entry}"
    yield heading(context, short_topic(first), facts, first.as_of_at_ms)
    yield ""
    yield from verdict_section(context, context.table_of(rows, _COLUMNS, indent=2))
    lines = list(explanation(context, rows))
    if lines:
        yield ""
        yield from lines
