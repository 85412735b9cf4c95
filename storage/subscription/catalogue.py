"""The catalogue of subscriptions: find, create, save, delete."""

from __future__ import annotations

from collections.abc import Iterator

from storage.actions import Action, Hint
from storage.disk.codec import key1, missing
from storage.disk.schema import CONSUMERS, SUBSCRIPTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, SubscriptionNotFound
from storage.subscription import cursor as cursors, delivered_window, mark_index, subscription_purge
from storage.subscription.isolation import check_on_open
from storage.subscription.mark_index import Bound
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.catalogue import Topic
from storage.values.names import check_name
from storage.values.position import MessageId


def find(view: ReadView, topic: Topic, name: str) -> Subscription | None:
    """Find the subscription of a name, or None."""
    check_name("subscription name", name)
    key = key1(topic.topic_id) + name.encode("ascii")
    payload = view.get(SUBSCRIPTIONS, key)
    return None if payload is None else Subscription.decode(key, payload)


def get(view: ReadView, topic: Topic, name: str) -> Subscription:
    """Raises:
    SubscriptionNotFound: naming the subscriptions of the topic.
    """
    subscription = find(view, topic, name)
    if subscription is None:
        names = ", ".join(member.name for member in every(view, topic.topic_id))
        create = Action("store.admin.subscriptions.create_subscription", topic.name, name)
        hint = f"It has {names}." if names else Hint("It has none: `{}` makes one.", create)
        raise SubscriptionNotFound(
            f"topic {topic.name} has no subscription {name}",
            hint=hint,
            topic=topic.full_name,
            subscription=name,
        )
    return subscription


def by_name(view: ReadView, topic_id: int, name: str) -> Subscription:
    """The subscription of a name that a record names.

    Raises:
        CorruptStore: there is no such subscription.
    """
    key = key1(topic_id) + name.encode("ascii")
    payload = view.get(SUBSCRIPTIONS, key)
    if payload is None:
        raise missing(SUBSCRIPTIONS, key)
    return Subscription.decode(key, payload)


def every(view: ReadView, topic_id: int, after: str = "") -> Iterator[Subscription]:
    """Yield the subscriptions of a topic by name, those behind a name."""
    start = key1(topic_id) + after.encode("ascii") + b"\0" if after else None
    for key, payload in view.scan(SUBSCRIPTIONS, key1(topic_id), start):
        yield Subscription.decode(key, payload)


def save(batch: WriteBatch, subscription: Subscription) -> None:
    """Write the record of a subscription."""
    batch.put(
        SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"), subscription.encode()
    )


def create(
    batch: WriteBatch, topic: Topic, subscription: Subscription, inside: MessageId | None = None
) -> None:
    """Write a new subscription, whose backlog begins after its start, and give the subscription an id.

    Args:
        inside: the message at which the backlog begins, if it lies inside the entry that follows the start.

    Raises:
        AlreadyExists, InvalidName
        InvalidValue: the type or level does not go with `on_open`.
    """
    name = subscription.name
    check_on_open(subscription.type, subscription.level, subscription.on_open)
    if find(batch, topic, name) is not None:
        raise AlreadyExists(
            f"topic {topic.name} has a subscription {name} already", topic=topic.full_name, subscription=name
        )
    batch.superblock.last_subscription += 1
    subscription.subscription_id = batch.superblock.last_subscription
    subscription.created_ms = batch.now_ms
    save(batch, subscription)
    cursors.create(batch, subscription.subscription_id, subscription.start)
    mark_index.put(
        batch, subscription.topic_id, Bound(subscription.start, subscription.subscription_id, name)
    )
    if inside is not None:
        OpenSubscription(batch, subscription).acks.begin_inside(inside)


def delete(batch: WriteBatch, subscription: Subscription) -> None:
    """Remove a subscription: records beyond the bound of a step are left to `subscription_purge`.

    No acknowledgement may be pending, and consumers meet their end at their next call.
    """
    batch.delete(SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"))
    delayed_id = cursors.load(batch, subscription.subscription_id).delayed_id
    cursors.delete(batch, subscription.subscription_id)
    mark_index.remove(batch, subscription.topic_id, subscription.subscription_id)
    batch.delete_prefix(CONSUMERS, key1(subscription.subscription_id))
    batch.delete_prefix(CONSUMERS, delivered_window.prefix(subscription.subscription_id))
    subscription_purge.begin(batch, subscription.subscription_id)
    if delayed_id:
        subscription_purge.remove_delayed(batch, delayed_id)
