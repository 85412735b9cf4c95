"""Refuse new messages of a topic that is full: a hard limit of this kind keeps what is not acknowledged within bounds.

A topic is full while the stored messages, from the first on that a subscription has not acknowledged or an open
transaction holds, are larger than the retention size, or while that first message is older than the retention time.
Markers and dead letters are never refused, and messages that are only not compacted yet refuse nothing.
"""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TopicFull
from storage.subscription import catalogue as subscriptions, trimming
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.trimming import Hold
from storage.topic import log, retention
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.values.named_tuple import NamedTuple
from storage.values.timestamps import rfc3339
from storage.values.txn_id import TxnID


class Fullness(NamedTuple):
    """The holder of messages, the bytes from the first of these messages on, and the publish time of the first."""

    hold: Hold
    bytes: int
    since_at_ms: int


def check_room(topic: OpenTopic[WriteBatch]) -> None:
    """Check that a topic may take a message.

    Raises:
        TopicFull: names the subscription or transaction that is furthest back.
    """
    limits = _limits(topic)
    full = fullness(topic, limits, topic.view.now_ms)
    if full is not None:
        raise _refused(topic, full, limits)


def has_room(topic: OpenTopic[WriteBatch]) -> bool:
    """Whether a topic may take a message."""
    return fullness(topic, _limits(topic), topic.view.now_ms) is None


def _limits(topic: OpenTopic[WriteBatch]) -> RetentionLimits:
    return trimming.trusted(topic.view, retention.of_topic(topic.view, topic.topic_id), trust_clock=False)


def fullness(topic: OpenTopic[ReadView], limits: RetentionLimits, now_ms: int) -> Fullness | None:
    """The reason why a topic takes no messages; None for a topic with room."""
    view, topic_id, state = topic.view, topic.topic_id, topic.state
    hard = limits.as_hard(retention.REFUSE)
    hold = None if hard.keeps_everything else trimming.find_client(view, topic_id, state)
    first = None if hold is None else log.next_entry(view, topic_id, hold.position)
    if hold is None or first is None:
        return None
    size = state.bytes - first.bytes_before
    is_large = hard.bytes is not None and size > hard.bytes
    is_old = hard.time_ms is not None and now_ms - first.publish_time > hard.time_ms
    return Fullness(hold, size, first.publish_time) if is_large or is_old else None


def _refused(topic: OpenTopic[WriteBatch], full: Fullness, limits: RetentionLimits) -> TopicFull:
    hold, is_large = full.hold, limits.bytes and full.bytes > limits.bytes
    keeps = (
        f"{full.bytes:,} bytes, beyond {limits.bytes:,}"
        if is_large
        else f"messages since {rfc3339(full.since_at_ms)}"
    )
    look = Action("store.admin.subscriptions.clear_backlog", topic.name, hold.name, dry_run=True)
    if hold.kind == "transaction":
        look = Action("store.reports.explain_transaction", hold.name)
    return TopicFull(
        f"topic {topic.name} is full: {hold.kind} {hold.name} keeps {keeps}",
        hint=Hint("Let it catch up, or let go of them: `{}`.", look),
        upkeep_of=topic.topic_id if _may_let_go(topic, full, limits) else 0,
        held_by=[TxnID.parse(hold.name).least] if hold.kind == "transaction" else (),
        topic=topic.name,
        holder=f"{hold.kind} {hold.name}",
        bytes=full.bytes,
    )


def _may_let_go(topic: OpenTopic[WriteBatch], full: Fullness, limits: RetentionLimits) -> bool:
    """Whether the time is over of the first message in the way, or of the subscription that holds it."""
    batch = topic.view
    if full.hold.kind == "transaction":
        return False
    if limits.ttl_ms is not None and batch.now_ms - full.since_at_ms >= limits.ttl_ms:
        return True
    if limits.expire_after_ms is None:
        return False
    from storage.subscription import subscription_expiry

    subscription = subscriptions.by_name(batch, topic.topic_id, full.hold.name)
    return subscription_expiry.is_due(OpenSubscription(batch, subscription), limits.expire_after_ms)
