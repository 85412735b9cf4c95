"""Expiry of subscriptions: delete a subscription without a consumer for a time, which keeps the log from trimming.

The time runs from the moment when the last consumer left, or an operator or a stream used the subscription without a
consumer. Where that moment is not known, because the consumer died or an earlier release detached the consumer, the
time runs from the first look. Nothing is deleted while an open transaction has acknowledgements pending.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from storage import audit_trail
from storage.disk.view import ReadView, WriteBatch
from storage.limits import EXPIRY_SUBSCRIPTIONS, FORCED_STEP_ENTRIES
from storage.process.identity import ProcessIdentity
from storage.subscription import (
    acked_ranges,
    attached_consumers,
    catalogue as subscriptions,
    update,
)
from storage.subscription.behind import subscriptions_in_order
from storage.subscription.hard_trimming import with_name
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

EVERY_NAME: Final = "\x7f"
"""Behind every name."""

REASON = "expire-after"
"""The reason in the audit trail."""


class SubscriptionExpired(NamedTuple):
    """A subscription that was deleted for want of a consumer.

    Attributes:
        unacknowledged: messages of the topic that the subscription had not acknowledged; at most so many, where it had
            acknowledged messages in more places ahead of markDeletePosition than one step counts.
    """

    type: str
    mark_delete_position: Position
    unacknowledged: int
    without_consumer_since_at_ms: int
    expire_after_ms: int


class Looked(NamedTuple):
    """The effects of a step of a run.

    Attributes:
        deleted: the name of a subscription, or None.
        through: the last name looked at; `EVERY_NAME` at the end.
    """

    deleted: str | None
    through: str


def step(
    topic: OpenTopic[WriteBatch],
    expire_after_ms: int,
    process: ProcessIdentity,
    after: str = "",
    limit: int = EXPIRY_SUBSCRIPTIONS,
) -> Looked:
    """Look at subscriptions behind a name, and delete one past the time; note subscriptions without a known time.

    Args:
        limit: subscriptions to look at, at most.
    """
    names = list(islice(subscriptions.every(topic.view, topic.topic_id, after), limit))
    deleted = _delete_first(topic, names, expire_after_ms, process)
    if deleted is not None:
        return Looked(deleted, deleted)
    return Looked(None, names[-1].name if len(names) == limit else EVERY_NAME)


def step_on_the_way(
    topic: OpenTopic[WriteBatch], expire_after_ms: int, process: ProcessIdentity
) -> str | None:
    """The same with the subscriptions furthest back, which keep the log from trimming; a run looks at all of them."""
    batch, topic_id = topic.view, topic.topic_id
    furthest = subscriptions_in_order(batch, topic_id)
    return _delete_first(topic, list(islice(furthest, EXPIRY_SUBSCRIPTIONS)), expire_after_ms, process)


def _delete_first(
    topic: OpenTopic[WriteBatch],
    among: list[Subscription],
    expire_after_ms: int,
    process: ProcessIdentity,
) -> str | None:
    """Delete the first subscription past the time, and return the name."""
    batch = topic.view
    for subscription in among:
        opened = OpenSubscription(batch, subscription)
        cursor = opened.cursor
        if not is_due(opened, expire_after_ms):
            continue
        if cursor.vacated_ms is None:
            cursor.vacated_ms = batch.now_ms
            continue
        if update.is_pending(opened):
            continue
        effects = SubscriptionExpired(
            subscription.type.value, Position(*cursor.mark_delete), unacknowledged(topic, opened),
            cursor.vacated_ms, expire_after_ms,
        )  # fmt: skip
        subscriptions.delete(batch, subscription)
        target = f"{with_name(topic).name} {subscription.name}"
        audit_trail.record(batch, process, "subscription expired", target, REASON, effects)
        return subscription.name
    return None


def is_due(opened: OpenSubscription[WriteBatch], expire_after_ms: int) -> bool:
    """Whether a subscription has no consumer, and is past the time or lacks the begin of it."""
    batch, vacated_ms = opened.view, opened.cursor.vacated_ms
    is_past = vacated_ms is None or batch.now_ms - vacated_ms >= expire_after_ms
    return is_past and not attached_consumers.living(batch, batch.locks, opened.subscription_id)


def unacknowledged(topic: OpenTopic[ReadView], opened: OpenSubscription[ReadView]) -> int:
    """Count the messages that a subscription has not acknowledged, messages of transactions included.

    See `SubscriptionExpired.unacknowledged`.
    """
    view, topic_id, state = topic.view, topic.topic_id, topic.state
    behind = state.messages - log.messages_through(view, topic_id, state, opened.cursor.mark_delete)
    return behind - acked_ranges.acknowledged_count(
        view, topic_id, opened.subscription_id, FORCED_STEP_ENTRIES
    )
