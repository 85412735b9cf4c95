"""A topic in words: a line with its counts, and a description of its picture for screen readers."""

from __future__ import annotations

from storage.reports.timeline import waiting
from txnctl.fields.holder import held_up
from txnctl.output.human import count, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.timeline import Timeline

_SUBSCRIPTIONS_NAMED = 20


def facts(model: Timeline) -> str:
    """Return the counts of a topic, in a line."""
    parts = [
        f"{plural(model.msg_count, 'message')} in {plural(len(model.ledgers), 'ledger')}",
        f"{count(model.readable.readable_messages)} readable",
    ]
    if model.open_transactions:
        blocked = waiting(model)
        parts.append(held_up(blocked.messages, blocked.oldest_at_ms, model.as_of_at_ms))
        uncommitted = f"{count(model.uncommitted_messages)} uncommitted in "
        parts.append(uncommitted + plural(model.ongoing_txn_count, "open transaction"))
    if model.aborted_messages:
        parts.append(f"{count(model.aborted_messages)} aborted")
    if not model.subscriptions:
        parts.append("no subscriptions")
    return "; ".join(parts)


def description(model: Timeline) -> str:
    """Describe the picture in words, for screen readers."""
    chain = model.open_transactions
    parts = [
        f"{plural(model.msg_count, 'message')} in {plural(len(model.ledgers), 'ledger')}",
        f"READ_COMMITTED reads up to {model.max_read_position} of {model.last_confirmed_entry}",
    ]
    if chain:
        first = chain[0]
        parts.append(
            f"{plural(len(chain), 'open transaction')}, the first of them {first.holder.txn_id} from "
            f"{first.holds_from} on; {plural(model.readable.blocked_messages, 'committed message')} blocked"
        )
    parts += [
        f"subscription {name}: {stats.subscription_isolation_level}, acknowledged through "
        f"{stats.mark_delete_position}, {stats.verdict}"
        for name, stats in list(model.subscriptions.items())[:_SUBSCRIPTIONS_NAMED]
    ]
    left = len(model.subscriptions) - _SUBSCRIPTIONS_NAMED
    if left > 0:
        parts.append(plural(left, "more subscription"))
    return ". ".join(parts) + "."
