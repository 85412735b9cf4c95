"""The retention limits of topics, and the objects that hold messages back from trimming."""

from __future__ import annotations

from storage.actions import Action
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.limits import FORGOTTEN_MS
from storage.process.locks import Locks
from storage.reports.facts import ForgottenSubscription, RetentionHeld
from storage.subscription import attached_consumers, catalogue as subscriptions, cursor as cursors, trimming
from storage.subscription.subscription import Subscription
from storage.subscription.trimming import Hold
from storage.topic import catalogue as topics, log, retention, state as topic_states
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.values.named_tuple import NamedTuple


class TopicRetention(NamedTuple):
    """The limits in force, those of the topic's own record, and the hold, from one view.

    Attributes:
        held_without_consumer_since_at_ms: when the last consumer of the holding subscription left.
        lets_go_with: the change that ends the hold: the deletion of a subscription without a consumer, an abort, or the
            compaction of the topic.
        has_letters: whether the topic has dead letters, whose limits the store sets apart.
    """

    topic: str
    in_force: RetentionLimits
    own: RetentionLimits
    held_by: Hold | None
    held_without_consumer_since_at_ms: int | None
    lets_go_with: Action | None
    has_letters: bool


def held_topics(view: ReadView) -> list[RetentionHeld]:
    """The topics that keep messages past their retention."""
    rows: list[RetentionHeld] = []
    for topic in topics.every(view) if retention.are_set(view) else ():
        opened = OpenTopic.load(view, topic.topic_id, topic.name)
        limits = trimming.trusted(view, retention.of_topic(view, topic.topic_id), trust_clock=False)
        now_ms = view.clock.wall_ms()
        due = trimming.plan(opened, limits, now_ms, 1 << 62, heeds_holds=False)
        free = trimming.plan_all(opened, limits, now_ms, 1 << 62)
        hold = trimming.find_hold(view, topic.topic_id, opened.state, limits) if due > free else None
        if hold is not None:
            kept = [
                ledger
                for ledger in log.ledgers(view, topic.topic_id, opened.state)
                if free <= ledger.ledger_id < due
            ]
            messages, size = sum(ledger.messages for ledger in kept), sum(ledger.bytes for ledger in kept)
            rows.append(RetentionHeld(topic.full_name, topic.name, messages, size, hold))
    return rows


def forgotten_subscriptions(view: ReadView, locks: Locks) -> list[ForgottenSubscription]:
    """The subscriptions that keep messages and have had no consumer for long."""
    return [
        forgotten
        for topic in topics.every(view)
        for subscription in subscriptions.every(view, topic.topic_id)
        if (forgotten := _forgotten(view, locks, topic, subscription)) is not None
    ]


def _forgotten(
    view: ReadView, locks: Locks, topic: Topic, subscription: Subscription
) -> ForgottenSubscription | None:
    cursor = cursors.load(view, subscription.subscription_id)
    long_ago_ms = view.clock.wall_ms() - FORGOTTEN_MS
    if cursor.vacated_ms is not None and cursor.vacated_ms > long_ago_ms:
        return None
    state = topic_states.load(view, topic.topic_id)
    messages, size = log.counts_through(view, topic.topic_id, state, cursor.mark_delete)
    following = (
        log.next_entry(view, topic.topic_id, cursor.mark_delete) if messages < state.messages else None
    )
    if following is None or (cursor.vacated_ms is None and following.publish_time > long_ago_ms):
        return None
    if attached_consumers.living(view, locks, subscription.subscription_id):
        return None
    return ForgottenSubscription(
        topic.full_name, topic.name, subscription.name, state.messages - messages, state.bytes - size,
        following.publish_time, cursor.vacated_ms,
    )  # fmt: skip


def topic_retention(connection: Connection, name: str) -> TopicRetention:
    """Return the retention of one topic.

    Raises:
        TopicNotFound, InvalidName
    """
    locks = connection.environment.locks
    with connection.view() as view:
        topic = topics.get(view, name)
        in_force, own = retention.of_topic(view, topic.topic_id), retention.own(view, topic.topic_id)
        state = topic_states.load(view, topic.topic_id)
        hold = trimming.find_hold(view, topic.topic_id, state, in_force)
        has_letters = retention.has_letters(view, topic.topic_id)
        way_out = _way_out(view, locks, topic, hold)
        return TopicRetention(topic.full_name, in_force, own, hold, *way_out, has_letters)


def _way_out(
    view: ReadView, locks: Locks, topic: Topic, hold: Hold | None
) -> tuple[int | None, Action | None]:
    """Since when the holding subscription has no consumer, and the change that ends a hold."""
    if hold is None:
        return None, None
    if hold.kind == "transaction":
        return None, Action("store.admin.transactions.abort_transaction", hold.name, dry_run=True)
    if hold.kind == "compaction":
        return None, Action("store.admin.topics.compact_topic", topic.name)
    subscription = subscriptions.get(view, topic, hold.name)
    if attached_consumers.living(view, locks, subscription.subscription_id):
        return None, None
    since_ms = cursors.load(view, subscription.subscription_id).vacated_ms
    return since_ms, Action("store.admin.subscriptions.delete_subscription", topic.name, hold.name)
