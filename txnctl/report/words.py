"""A topic in words: a line with its counts, and a description of its picture for screen readers."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.fields.holder import held_up
from txnctl.output.human import count, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.timeline import Timeline
    from txnctl.output.row import Row

_SUBSCRIPTIONS_NAMED = 20


def facts(model: Timeline) -> str:
    """Return the counts of a topic, in a line."""
    parts = [
        f"{plural(model.msg_count, 'message')} in {plural(len(model.ledgers), 'ledger')}",
        f"{count(model.readable.readable_messages)} readable",
    ]
    if model.open_transactions:
        parts.append(held_up(to_json(model)))
        uncommitted = f"{count(model.uncommitted_messages)} uncommitted in "
        parts.append(uncommitted + plural(model.ongoing_txn_count, "open transaction"))
    if model.aborted_messages:
        parts.append(f"{count(model.aborted_messages)} aborted")
    if not model.subscriptions:
        parts.append("no subscriptions")
    return "; ".join(parts)


def description(model: Row) -> str:
    """Describe the picture in words, for screen readers."""
    chain = model["openTransactions"]
    parts = [
        f"{plural(model['msgCount'], 'message')} in {plural(len(model['ledgers']), 'ledger')}",
        f"READ_COMMITTED reads up to {model['maxReadPosition']} of {model['lastConfirmedEntry']}",
    ]
    if chain:
        first = chain[0]
        parts.append(
            f"{plural(len(chain), 'open transaction')}, the first of them {first['txnId']} from "
            f"{first['holdsFrom']} on; {plural(model['blockedMessages'], 'committed message')} blocked"
        )
    parts += [
        f"subscription {name}: {subscription['subscriptionIsolationLevel']}, acknowledged through "
        f"{subscription['markDeletePosition']}, {subscription['verdict']}"
        for name, subscription in list(model["subscriptions"].items())[:_SUBSCRIPTIONS_NAMED]
    ]
    left = len(model["subscriptions"]) - _SUBSCRIPTIONS_NAMED
    if left > 0:
        parts.append(plural(left, "more subscription"))
    return ". ".join(parts) + "."
