"""What operators do to subscriptions: create, change, seek, skip, evict and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from storage.admin import skip
from storage.admin.change import Changes
from storage.disk.codec import key1
from storage.disk.schema import ACKS, DELIVERIES
from storage.disk.view import WriteBatch
from storage.errors import ConsumerNotFound, InvalidValue
from storage.subscription import (
    attach,
    catalogue as subscriptions,
    dead_letter,
    update as changes,
)
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionMode, SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.read_position import subscription_start
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.values.position import LATEST, Extreme, MessageId, Position, start_of

Start = Position | MessageId | Extreme
Opened = OpenSubscription[WriteBatch]


class SubscriptionChanges(Changes):
    """See the module. Every method returns what it changed, or would change with `dry_run`."""

    def create_subscription(
        self,
        topic: str,
        name: str,
        *,
        subscription_type: SubscriptionType = SubscriptionType.EXCLUSIVE,
        subscription_isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
        on_open: OnOpen | str | None = None,
        initial_position: Start = LATEST,
        dead_letter_topic: str | None = None,
        max_redeliver_count: int | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Create a subscription with nobody attached.

        Raises:
            TopicNotFound, AlreadyExists, InvalidName
        """
        mode = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)
        dead_letters = attach.DeadLetterPolicy(dead_letter_topic, max_redeliver_count)
        ask = attach.SubscribeOptions(topic, name, mode, initial_position, dead_letters)

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            made = attach.create(batch, found, ask)
            return {
                "topic": found.full_name, "subscription": made.name, "type": made.type.value,
                "subscriptionIsolationLevel": made.level.value, "onOpen": made.on_open.value,
                "markDeletePosition": str(Position(*made.start)),
            }  # fmt: skip

        return self._connection.write(change, dry_run=dry_run)

    def delete_subscription(
        self, topic: str, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Delete a subscription.

        Raises:
            SubscriptionNotFound
            SubscriptionBusy: consumers are attached; `force` evicts them.
            ObjectHeld: open transactions have acknowledgements pending; `force` aborts them first.
        """

        def change(found: Topic, opened: Opened) -> dict[str, Any]:
            batch, mine = opened.view, opened.subscription
            living = self._living(batch, mine)
            if not force:
                subscriptions.check_alone(found, mine, living)
            holders = self._end_holders(batch, f"subscription {name}", self._holders(batch, mine), force)
            subscriptions.delete(batch, mine)
            return {"consumersEvicted": [each.name for each in living], "transactionsAborted": holders}

        return self._on_subscription("subscriptions delete", topic, name, change, dry_run, reason)

    def update_subscription(
        self,
        topic: str,
        name: str,
        *,
        subscription_type: SubscriptionType | None = None,
        subscription_isolation_level: IsolationLevel | None = None,
        on_open: OnOpen | str | None = None,
        dead_letter_topic: str | None = None,
        max_redeliver_count: int | None = None,
        force: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Change a subscription that nobody is attached to.

        Raises:
            SubscriptionNotFound, SubscriptionBusy
            InvalidValue: it would skip what is open with a type or level that cannot.
            ObjectHeld: the type changes while acknowledgements are pending; `force` aborts those transactions first.
        """

        asked = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)

        def change(found: Topic, opened: Opened) -> dict[str, Any]:
            batch, mine = opened.view, opened.subscription
            subscriptions.sweep(batch, mine, self._engine.end_owned)
            if (asked.type, asked.level, asked.on_open) != (None, None, None):
                subscriptions.check_alone(found, mine, self._living(batch, mine))
            aborted: list[str] = []
            if asked.type not in (None, mine.type):
                aborted = self._end_holders(batch, f"subscription {name}", self._holders(batch, mine), force)
            done = changes.update(opened, asked)
            for word, value in (
                ("dead_letter_topic", dead_letter_topic),
                ("max_redeliver_count", max_redeliver_count),
            ):
                if value is not None and value != getattr(mine, word):
                    done.append(f"{word} {getattr(mine, word)} -> {value}")
                    setattr(mine, word, value)
            dead_letter.check_policy(found, name, mine.dead_letter_topic, mine.max_redeliver_count)
            subscriptions.save(batch, mine)
            return {"changes": done, "transactionsAborted": aborted, "type": mine.type.value,
                    "subscriptionIsolationLevel": mine.level.value, "onOpen": mine.on_open.value}  # fmt: skip

        return self._on_subscription("subscriptions update", topic, name, change, dry_run, reason)

    def seek(
        self,
        topic: str,
        name: str,
        start: Start,
        *,
        force: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Move a subscription: the message at `start` is the next one. What is in flight is withdrawn.

        Raises:
            SubscriptionNotFound
            ObjectHeld: open transactions have acknowledgements pending; `force` aborts them first.
        """

        def change(found: Topic, opened: Opened) -> dict[str, Any]:
            batch, mine, cursor = opened.view, opened.subscription, opened.cursor
            aborted = self._end_holders(batch, f"subscription {name}", self._holders(batch, mine), force)
            before = cursor.mark_delete
            held = [delivery.in_flight() for delivery in opened.deliveries.scan()]
            head = state.load(batch, found.topic_id)
            after, inside = subscription_start(head, start_of(start), mine.level)
            cursor.mark_delete = cursor.read = after
            cursor.generation += 1
            cursor.released, cursor.recalled, cursor.has_uncommitted_acks = 0, None, False
            skipped_txns.clear(opened)
            for database in (ACKS, DELIVERIES):
                batch.delete_prefix(database, key1(mine.subscription_id))
            if inside is not None:
                opened.acks.begin_inside(inside)
            mine.start = min(mine.start, cursor.mark_delete)
            subscriptions.save(batch, mine)
            return {
                "markDeletePositionBefore": str(Position(*before)),
                "markDeletePositionAfter": str(Position(*cursor.mark_delete)), "transactionsAborted": aborted,
                "messagesWithdrawn": sum(each.bit_count() for each in held),
            }  # fmt: skip

        return self._on_subscription("subscriptions seek", topic, name, change, dry_run, reason)

    def skip(
        self,
        topic: str,
        name: str,
        count: int,
        *,
        beyond_max_read: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Acknowledge the next `count` visible messages. Pending ones are left alone; the cursor never moves back.

        Args:
            beyond_max_read: at READ_UNCOMMITTED, do not stop at maxReadPosition.

        Raises:
            SubscriptionNotFound, InvalidValue
        """
        if count < 1:
            raise InvalidValue(f"the number of messages to skip is at least 1, not {count}")
        return self._skip("subscriptions skip", topic, name, count, beyond_max_read, dry_run, reason)

    def clear_backlog(
        self,
        topic: str,
        name: str,
        *,
        beyond_max_read: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Acknowledge all visible messages; see `skip`."""
        return self._skip(
            "subscriptions clear-backlog", topic, name, 1 << 62, beyond_max_read, dry_run, reason
        )

    def _skip(
        self, action: str, topic: str, name: str, count: int, beyond: bool, dry_run: bool, reason: str | None
    ) -> dict[str, Any]:
        """Skip in steps of bounded size, each a store transaction; a dry run takes them all in one, and drops it."""
        total, before, is_last = 0, "", False
        while not is_last:

            def change(_: Topic, opened: Opened, done: int = total) -> dict[str, Any]:
                nonlocal is_last
                cursor, was = opened.cursor, opened.cursor.mark_delete
                skipped, is_last = skip.step(opened, count - done, beyond)
                while dry_run and not is_last:
                    more, is_last = skip.step(opened, count - done - skipped, beyond)
                    skipped += more
                return {
                    "skipped": skipped, "markDeletePositionBefore": str(Position(*was)),
                    "markDeletePositionAfter": str(Position(*cursor.mark_delete)),
                }  # fmt: skip

            result = self._on_subscription(action, topic, name, change, dry_run, reason)
            total, before = total + result["skipped"], before or result["markDeletePositionBefore"]
        return {**result, "skipped": total, "markDeletePositionBefore": before}

    def evict(
        self,
        topic: str,
        name: str,
        consumer_name: str | None = None,
        *,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Detach consumers; what they held goes to others, and their later acknowledgements are refused.

        Args:
            consumer_name: all of them if None.

        Raises:
            SubscriptionNotFound, ConsumerNotFound
        """

        def change(_: Topic, opened: Opened) -> dict[str, Any]:
            evicted, released = [], 0
            for each in subscriptions.consumers(opened.view, opened.subscription_id):
                if consumer_name in (None, each.name):
                    evicted.append(each.name)
                    released += subscriptions.detach(opened, each.consumer_id, {})
            if consumer_name is not None and not evicted:
                raise ConsumerNotFound(
                    f"subscription {name} has no consumer {consumer_name}",
                    hint=f"`txnctl subscriptions show {topic} {name}` lists them.",
                )
            return {"evicted": evicted, "messagesReleased": released}

        return self._on_subscription(
            "subscriptions evict", topic, name, change, dry_run, reason, part=consumer_name, changed="evicted"
        )

    # How each of them is made

    def _on_subscription(
        self,
        action: str,
        topic: str,
        name: str,
        change: Callable[[Topic, Opened], dict[str, Any]],
        dry_run: bool,
        reason: str | None,
        part: str | None = None,
        changed: str | None = None,
    ) -> dict[str, Any]:
        """Args:
        part: what of it is changed, for the audit trail.
        changed: the field of the result without which nothing was changed, and nothing is recorded.
        """

        def whole(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            result = change(found, OpenSubscription(batch, mine))
            return {"topic": found.full_name, "subscription": name, **result}

        target = f"{topic} {name}" + (f" {part}" if part is not None else "")
        return self._change(action, target, whole, dry_run, reason, changed)
