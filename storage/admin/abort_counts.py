"""Backlogs before and after an abort, for its effects.

The records of the messages are looked at once, before the abort; the backlogs after the abort follow from the number of
released messages.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.disk.view import ReadView
from storage.reports import backlog
from storage.reports.backlog import Backlog
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.subscription.cursor import Cursor
from storage.topic import state
from storage.topic.state import TopicState
from storage.txn.participant import Effect, SubscriptionEffect
from storage.values.named_tuple import NamedTuple

Counts = dict[str, Backlog]
"""The backlog of each subscription of a topic, by name."""


class Unblocked(NamedTuple):
    """Visible and blocked messages of a subscription, before and after."""

    visible_before: int
    visible_after: int
    blocked_before: int
    blocked_after: int


def before(view: ReadView, topic_id: int) -> Counts:
    """The backlogs of a topic's subscriptions."""
    topic_state = state.load(view, topic_id)
    return {
        subscription.name: backlog.count(
            view, topic_state, subscription, cursors.load(view, subscription.subscription_id)
        )
        for subscription in subscriptions.every(view, topic_id)
    }


def after(view: ReadView, topic_id: int, counted: Counts, effects: Iterable[Effect]) -> Counts:
    """The backlogs after transactions were aborted.

    Args:
        counted: the backlogs before.
        effects: of all aborts since.
    """
    topic_state, counts, known = state.load(view, topic_id), Counts(), list(effects)
    for subscription in subscriptions.every(view, topic_id):
        cursor = cursors.load(view, subscription.subscription_id)
        effects_here = [
            effect
            for effect in known
            if isinstance(effect, SubscriptionEffect)
            and (effect.topic_id, effect.subscription) == (topic_id, subscription.name)
        ]
        released = _released(effects_here, topic_state, cursor)
        counts[subscription.name] = (
            backlog.count(view, topic_state, subscription, cursor)
            if released is None
            else backlog.count_after_abort(
                view, topic_state, subscription, counted[subscription.name], released
            )
        )
    return counts


def _released(effects: list[SubscriptionEffect], topic_state: TopicState, cursor: Cursor) -> int | None:
    """The messages released; None where they are to be counted: up to a message, or in the compacted view alone."""
    is_trimmed = cursor.mark_delete[0] < topic_state.first_ledger
    if any(effect.cumulative is not None or is_trimmed for effect in effects):
        return None
    return sum(effect.messages for effect in effects)


def unblocked(counted: Counts, counted_after: Counts) -> dict[str, Unblocked]:
    """Visible and blocked messages by subscription, before and after."""
    return {
        name: Unblocked(counted[name].visible, now.visible, counted[name].blocked, now.blocked)
        for name, now in counted_after.items()
    }
