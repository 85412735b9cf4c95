"""The text of an opened row of `txnctl top`: the explanation of a finding, topic, transaction or subscription."""

from __future__ import annotations

from storage.errors import NotFound
from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from txnctl.cli.context import Context


def text_of(context: Context, table: int, row: Any) -> list[str]:
    """The lines at the width of the terminal, read from a new view; of an object that is gone, that it is gone.

    Args:
        table: the number of the table that the row is of.
    """
    from txnctl.output.prose import fitted

    try:
        return list(fitted(_TEXTS[table](context, row), context.width))
    except NotFound as error:
        return list(fitted(printable(error.message), context.width))


def _finding(context: Context, row: Any) -> Iterable[str]:
    from txnctl.commands.health.doctor import finding_lines

    return finding_lines(context, row)


def _topic(context: Context, row: Any) -> Iterable[str]:
    from txnctl.commands.topics.stats import report
    from txnctl.output.escape import printable_row

    return report(context, printable_row(context.store.reports.topic_stats(row.facts.topic)))


def _transaction(context: Context, row: Any) -> Iterable[str]:
    from txnctl.commands.transactions.explain import report
    from txnctl.output.escape import printable_row

    return report(context, printable_row(context.store.reports.explain_transaction(row.row.txn_id)))


def _subscription(context: Context, row: Any) -> Iterable[str]:
    from txnctl.commands.subscriptions.lag import report
    from txnctl.commands.subscriptions.lag_row import lag_row
    from txnctl.output.escape import printable_row

    facts = row.facts
    stats = context.store.reports.subscription_stats(facts.topic, facts.subscription)
    return report(context, [printable_row(lag_row(stats))])


_TEXTS = (_finding, _topic, _transaction, _subscription)
