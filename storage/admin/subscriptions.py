"""What operators do to subscriptions: create, change, seek, skip, evict and the like."""

from __future__ import annotations

from typing import Any

from storage.admin import skip
from storage.admin.change import (
    ChangeRequest,
    abort_holders,
    change_subscription,
    living_consumers,
    transactions_on,
)
from storage.disk.codec import key1
from storage.disk.schema import ACKS, DELIVERIES
from storage.disk.view import WriteBatch
from storage.engine import Engine
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


class SubscriptionAdmin:
    """Changes of subscriptions, as `store.admin.subscriptions`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

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

        return self._engine.connection.write(change, dry_run=dry_run)

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
            living = living_consumers(batch, mine)
            if not force:
                subscriptions.check_alone(found, mine, living)
            holders = abort_holders(
                self._engine, batch, f"subscription {name}", transactions_on(batch, mine), force
            )
            subscriptions.delete(batch, mine)
            return {"consumersEvicted": [each.name for each in living], "transactionsAborted": holders}

        return change_subscription(
            self._engine,
            topic,
            name,
            ChangeRequest("subscriptions delete", f"{topic} {name}", dry_run, reason),
            change,
        )

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
                subscriptions.check_alone(found, mine, living_consumers(batch, mine))
            aborted: list[str] = []
            if asked.type not in (None, mine.type):
                aborted = abort_holders(
                    self._engine, batch, f"subscription {name}", transactions_on(batch, mine), force
                )
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

        return change_subscription(
            self._engine,
            topic,
            name,
            ChangeRequest("subscriptions update", f"{topic} {name}", dry_run, reason),
            change,
        )

    def seek_subscription(
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
            aborted = abort_holders(
                self._engine, batch, f"subscription {name}", transactions_on(batch, mine), force
            )
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

        return change_subscription(
            self._engine,
            topic,
            name,
            ChangeRequest("subscriptions seek", f"{topic} {name}", dry_run, reason),
            change,
        )

    def skip_messages(
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
        request = ChangeRequest("subscriptions skip", f"{topic} {name}", dry_run, reason)
        return self._skip(topic, name, count, beyond_max_read, request)

    def clear_backlog(
        self,
        topic: str,
        name: str,
        *,
        beyond_max_read: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Acknowledge all visible messages; see `skip_messages`."""
        request = ChangeRequest("subscriptions clear-backlog", f"{topic} {name}", dry_run, reason)
        return self._skip(topic, name, 1 << 62, beyond_max_read, request)

    def _skip(
        self, topic: str, name: str, count: int, beyond: bool, request: ChangeRequest
    ) -> dict[str, Any]:
        """Skip in steps of bounded size, each a store transaction; a dry run takes them all in one, and drops it."""
        total, before, is_last = 0, "", False
        while not is_last:

            def change(_: Topic, opened: Opened, done: int = total) -> dict[str, Any]:
                nonlocal is_last
                cursor, was = opened.cursor, opened.cursor.mark_delete
                skipped, is_last = skip.step(opened, count - done, beyond)
                while request.dry_run and not is_last:
                    more, is_last = skip.step(opened, count - done - skipped, beyond)
                    skipped += more
                return {
                    "skipped": skipped, "markDeletePositionBefore": str(Position(*was)),
                    "markDeletePositionAfter": str(Position(*cursor.mark_delete)),
                }  # fmt: skip

            result = change_subscription(self._engine, topic, name, request, change)
            total, before = total + result["skipped"], before or result["markDeletePositionBefore"]
        return {**result, "skipped": total, "markDeletePositionBefore": before}

    def evict_consumers(
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

        target = f"{topic} {name}" + (f" {consumer_name}" if consumer_name is not None else "")
        request = ChangeRequest("subscriptions evict", target, dry_run, reason, changed="evicted")
        return change_subscription(self._engine, topic, name, request, change)
