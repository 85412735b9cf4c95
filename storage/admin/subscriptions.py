"""Create, change, delete and seek subscriptions, skip their messages, and evict their consumers."""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.admin import skip
from storage.admin.audited_change import (
    Changed,
    ChangeRequest,
    OfSubscription,
    abort_holders,
    change_subscription,
    to_delete,
    transactions_on,
)
from storage.admin.redrive import DeadLettersRedriven, redrive_letters
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import ConsumerNotFound
from storage.subscription import (
    attach,
    attached_consumers,
    catalogue as subscriptions,
    dead_letter,
    subscription_purge,
    update as changes,
)
from storage.subscription.isolation import (
    IsolationLevel,
    OnOpen,
    SubscriptionMode,
    SubscriptionType,
    check_compacted,
)
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.start_position import subscription_start
from storage.topic import catalogue as topics, other_lives
from storage.topic.catalogue import Topic
from storage.topic.compaction import compacted_view
from storage.topic.open_topic import OpenTopic
from storage.values.arguments import check_count, check_flags
from storage.values.named_tuple import NamedTuple
from storage.values.position import LATEST, Extreme, MessageId, Position, start_of
from storage.values.txn_id import TxnID

Start = Position | MessageId | Extreme
Opened = OpenSubscription[WriteBatch]


class SubscriptionCreated(NamedTuple):
    """A new subscription."""

    topic: str
    subscription: str
    type: str
    subscription_isolation_level: str
    on_open: str
    mark_delete_position: Position


class SubscriptionDeleted(NamedTuple):
    """The consumers and transactions that a deletion has ended."""

    consumers_evicted: list[str]
    transactions_aborted: list[TxnID]


class SubscriptionUpdated(NamedTuple):
    """The changes as text, and the mode after these changes."""

    changes: list[str]
    transactions_aborted: list[TxnID]
    type: str
    subscription_isolation_level: str
    on_open: str


class SubscriptionSought(NamedTuple):
    """The cursor before and after a seek, and the messages withdrawn from consumers."""

    mark_delete_position_before: Position
    mark_delete_position_after: Position
    transactions_aborted: list[TxnID]
    messages_withdrawn: int


class MessagesSkipped(NamedTuple):
    """Messages acknowledged by a skip, and the cursor before and after."""

    skipped: int
    mark_delete_position_before: Position
    mark_delete_position_after: Position


class ConsumersEvicted(NamedTuple):
    """Evicted consumers, and the messages in flight that these consumers held."""

    evicted: list[str]
    messages_released: int


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
        read_compacted: bool = False,
        dry_run: bool = False,
    ) -> SubscriptionCreated:
        """Create a subscription without consumers.

        Args:
            read_compacted: begin in the compacted view, which may have messages that were trimmed from the log.

        Raises:
            TopicNotFound, AlreadyExists, InvalidName, InvalidValue
        """
        check_flags(read_compacted=read_compacted, dry_run=dry_run)
        if read_compacted:
            check_compacted(subscription_isolation_level, subscription_type)
        mode = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)
        dead_letters = attach.DeadLetterPolicy(dead_letter_topic, max_redeliver_count)
        options = attach.SubscribeOptions(
            topic, name, mode, initial_position, dead_letters, reads_compacted=read_compacted
        )

        def change(batch: WriteBatch) -> SubscriptionCreated:
            entry = topics.get(batch, topic)
            created = attach.create(batch, entry, options)
            return SubscriptionCreated(
                entry.full_name, created.name, created.type.value, created.level.value, created.on_open.value,
                Position(*created.start),
            )  # fmt: skip

        return self._engine.connection.write(change, dry_run=dry_run)

    def delete_subscription(
        self, topic: str, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[OfSubscription[SubscriptionDeleted]]:
        """Delete a subscription.

        Raises:
            SubscriptionNotFound
            SubscriptionBusy: consumers are attached; `force` evicts them.
            ObjectHeld: open transactions have acknowledgements pending; `force` aborts them first.
        """
        check_flags(force=force, dry_run=dry_run)

        def change(entry: Topic, opened: Opened) -> SubscriptionDeleted:
            batch, subscription = opened.view, opened.subscription
            living = attached_consumers.living(batch, batch.locks, subscription.subscription_id)
            if not force:
                attached_consumers.check_alone(entry, subscription, living)
            aborted = abort_holders(
                self._engine, batch, f"subscription {name}", transactions_on(batch, subscription), force
            )
            subscriptions.delete(batch, subscription)
            return SubscriptionDeleted([consumer.name for consumer in living], aborted)

        request = ChangeRequest("subscriptions delete", f"{topic} {name}", dry_run, reason)
        with to_delete(Action("store.reports.list_subscriptions")):
            result = change_subscription(self._engine, (topic, name), request, change)
        if not dry_run:
            subscription_purge.finish(self._engine.connection)
        return result

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
    ) -> Changed[OfSubscription[SubscriptionUpdated]]:
        """Change a subscription without attached consumers.

        Raises:
            SubscriptionNotFound, SubscriptionBusy
            InvalidValue: the type or level does not allow on-open skip.
            ObjectHeld: the type changes while acknowledgements are pending; `force` aborts the transactions first.
        """
        check_flags(force=force, dry_run=dry_run)
        asked = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)

        def change(entry: Topic, opened: Opened) -> SubscriptionUpdated:
            batch, subscription = opened.view, opened.subscription
            living = attached_consumers.sweep(batch, subscription, self._engine.end_owned)
            if (asked.type, asked.level, asked.on_open) != (None, None, None):
                attached_consumers.check_alone(entry, subscription, living)
            aborted: list[TxnID] = []
            if asked.type not in (None, subscription.type):
                aborted = abort_holders(
                    self._engine, batch, f"subscription {name}", transactions_on(batch, subscription), force
                )
            done = changes.update(opened, asked)
            for word, value in (
                ("dead_letter_topic", dead_letter_topic),
                ("max_redeliver_count", max_redeliver_count),
            ):
                if value is not None and value != getattr(subscription, word):
                    done.append(f"{word} {getattr(subscription, word)} -> {value}")
                    setattr(subscription, word, value)
            dead_letter.check_policy(
                entry, name, subscription.dead_letter_topic, subscription.max_redeliver_count
            )
            subscriptions.save(batch, subscription)
            return SubscriptionUpdated(
                done, aborted, subscription.type.value, subscription.level.value, subscription.on_open.value
            )

        return change_subscription(
            self._engine,
            (topic, name),
            ChangeRequest("subscriptions update", f"{topic} {name}", dry_run, reason),
            change,
        )

    def seek_subscription(
        self,
        topic: str,
        name: str,
        start: Start,
        *,
        read_compacted: bool = False,
        force: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[OfSubscription[SubscriptionSought]]:
        """Move a subscription, so that the message at `start` is the next. Messages in flight are withdrawn.

        Args:
            read_compacted: reach messages that only the compacted view has, before the first ledger of the log.

        Raises:
            SubscriptionNotFound
            InvalidValue: `read_compacted` for a type or level that does not read the view.
            ObjectHeld: open transactions have acknowledgements pending; `force` aborts them first.
            MessageNotFound: the topic never had the position.
        """
        check_flags(read_compacted=read_compacted, force=force, dry_run=dry_run)

        def change(entry: Topic, opened: Opened) -> SubscriptionSought:
            batch, subscription, cursor = opened.view, opened.subscription, opened.cursor
            aborted = abort_holders(
                self._engine, batch, f"subscription {name}", transactions_on(batch, subscription), force
            )
            before = cursor.mark_delete
            topic_now = OpenTopic.load(batch, entry.topic_id, entry.name)
            other_lives.check_start(topic_now, start_of(start))
            first = None
            if read_compacted:
                check_compacted(subscription.level, subscription.type)
                first = compacted_view.before_first(batch, entry.topic_id)
            after, inside = subscription_start(topic_now.state, start_of(start), subscription.level, first)
            withdrawn = changes.move(opened, after)
            if inside is not None:
                opened.acks.begin_inside(inside)
            subscriptions.save(batch, subscription)
            return SubscriptionSought(before, cursor.mark_delete, aborted, withdrawn)

        return change_subscription(
            self._engine,
            (topic, name),
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
    ) -> Changed[OfSubscription[MessagesSkipped]]:
        """Acknowledge the next `count` visible messages. Pending ones are left alone; the cursor never moves back.

        Args:
            beyond_max_read: at READ_UNCOMMITTED, do not stop at maxReadPosition.

        Raises:
            SubscriptionNotFound, InvalidValue
        """
        check_flags(beyond_max_read=beyond_max_read, dry_run=dry_run)
        check_count("the number of messages to skip", count, 1)
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
    ) -> Changed[OfSubscription[MessagesSkipped]]:
        """Acknowledge all visible messages; see `skip_messages`."""
        check_flags(beyond_max_read=beyond_max_read, dry_run=dry_run)
        request = ChangeRequest("subscriptions clear-backlog", f"{topic} {name}", dry_run, reason)
        return self._skip(topic, name, 1 << 62, beyond_max_read, request)

    def _skip(
        self, topic: str, name: str, count: int, beyond: bool, request: ChangeRequest
    ) -> Changed[OfSubscription[MessagesSkipped]]:
        """Skip in steps of bounded size, each a store transaction; a dry run takes all steps in one, and drops it."""
        total, is_last = 0, False
        before: Position | None = None
        while not is_last:

            def change(_: Topic, opened: Opened, done: int = total) -> MessagesSkipped:
                nonlocal is_last
                cursor, was = opened.cursor, opened.cursor.mark_delete
                skipped, is_last = skip.step(opened, count - done, beyond)
                while request.dry_run and not is_last:
                    more, is_last = skip.step(opened, count - done - skipped, beyond)
                    skipped += more
                return MessagesSkipped(skipped, was, cursor.mark_delete)

            result = change_subscription(self._engine, (topic, name), request, change)
            step = result.effects.change
            total, before = total + step.skipped, before or step.mark_delete_position_before
        whole = step._replace(skipped=total, mark_delete_position_before=before or Position(0, -1))
        return result._replace(effects=result.effects._replace(change=whole))

    def redrive_dead_letters(
        self,
        topic: str,
        name: str,
        count: int | None = None,
        *,
        dead_letter_topic: str | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[OfSubscription[DeadLettersRedriven]]:
        """Give dead letters back to the subscription that they came from, with no redeliveries counted.

        Oldest first, each letter once, in steps of bounded size. Letters stay in the log of the dead-letter topic.

        Args:
            count: letters to give back at most; all, if None.
            dead_letter_topic: the topic to read; the subscription's, if None.

        Raises:
            SubscriptionNotFound, TopicNotFound, InvalidValue
            ObjectHeld: a cumulative acknowledgement is pending in an open transaction.
        """
        check_flags(dry_run=dry_run)
        if count is not None:
            check_count("a number of letters to redrive", count, 1)
        request = ChangeRequest("subscriptions redrive", f"{topic} {name}", dry_run, reason)
        return redrive_letters(self._engine, (topic, name), count, dead_letter_topic, request)

    def evict_consumers(
        self,
        topic: str,
        name: str,
        consumer_name: str | None = None,
        *,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[OfSubscription[ConsumersEvicted]]:
        """Detach consumers. Their messages in flight are delivered again, and their later acknowledgements refused.

        Args:
            consumer_name: all consumers if None.

        Raises:
            SubscriptionNotFound, ConsumerNotFound
        """
        check_flags(dry_run=dry_run)

        def change(_: Topic, opened: Opened) -> ConsumersEvicted:
            consumers = attached_consumers.every(opened.view, opened.subscription_id)
            evicted = [consumer for consumer in consumers if consumer_name in (None, consumer.name)]
            if consumer_name is not None and not evicted:
                raise ConsumerNotFound(
                    f"subscription {name} has no consumer {consumer_name}",
                    hint=Hint("`{}` lists them.", Action("store.reports.subscription_stats", topic, name)),
                )
            released = attached_consumers.detach(opened, [consumer.consumer_id for consumer in evicted])
            return ConsumersEvicted([consumer.name for consumer in evicted], released)

        target = f"{topic} {name}" + (f" {consumer_name}" if consumer_name is not None else "")
        request = ChangeRequest("subscriptions evict", target, dry_run, reason)
        return change_subscription(
            self._engine, (topic, name), request, change, lambda effects: bool(effects.evicted)
        )
