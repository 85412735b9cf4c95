"""Refuse new messages of a topic that is full: a hard limit of this kind keeps what is not acknowledged within bounds.

A topic is full while the stored messages, from the first on that a subscription has not acknowledged or an open
transaction holds, are larger than the retention size, or while that first message is older than the retention time.
Markers and dead letters are never refused, and messages that are only not compacted yet refuse nothing.
"""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TopicFull
from storage.subscription import trimming
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
    batch = topic.view
    limits = trimming.trusted(batch, retention.of_topic(batch, topic.topic_id), trust_clock=False)
    full = fullness(topic, limits, batch.now_ms)
    if full is not None:
        raise _refused(topic, full, limits)


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


def _refused(topic: OpenTopic[ReadView], full: Fullness, limits: RetentionLimits) -> TopicFull:
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
        held_by=[TxnID.parse(hold.name).least] if hold.kind == "transaction" else (),
        topic=topic.name,
        holder=f"{hold.kind} {hold.name}",
        bytes=full.bytes,
    )
