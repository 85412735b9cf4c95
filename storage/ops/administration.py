"""What operators do to topics and subscriptions: seek, skip, evict, delete and the like.

Each is one store transaction (deleting and skipping much: several, resumable), has a dry run that is the same code up
to the commit, and leaves a record in the audit trail. Open transactions that hold something refuse it; `force` aborts
them first, in the same store transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from storage import audit_trail, consuming
from storage.clock import nanoseconds
from storage.codec import key1
from storage.errors import ConsumerNotFound, InvalidValue, ObjectHeld
from storage.ledger import managed_ledger, refusals, session as sessions, topic as topics, topic_head
from storage.ledger.admission import Admission
from storage.ledger.topic import Topic
from storage.limits import TABLE_RETENTION_MS_MAX, TABLE_RETENTION_MS_MIN
from storage.names import named
from storage.ops import audit, producers, skip
from storage.position import LATEST, Extreme, MessageId, Position, start_of
from storage.reader import subscription_start
from storage.schema import ACKS, DELIVERIES
from storage.store_head import ReapPolicy
from storage.subscription import (
    awaited,
    change as changes,
    cursor as cursors,
    dead_letter,
    delivery as deliveries,
    message_set,
    pending_ack,
    subscription as subscriptions,
)
from storage.subscription.acknowledgement import Acknowledger, add_item, item_of
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
from storage.subscription.subscription import AttachedConsumer, Subscription
from storage.table import table as tables, table_head
from storage.transaction import Transaction, txn_number
from storage.txn import buffer, record as records
from storage.txn.fence import Fence
from storage.txn_id import TxnID
from storage.txn_state import AbortReason, TransactionState
from storage.view import WriteBatch

if TYPE_CHECKING:
    from storage.store import Store

Start = Position | MessageId | Extreme


class Administration:
    """`store.admin`. Every method returns what it changed, or would change with `dry_run`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store.connection

    # Topics

    def delete_topic(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Delete a topic with its subscriptions. Its ledger ids and epoch go on counting if it is created again.

        Raises:
            TopicNotFound
            ObjectHeld: open transactions, producers or consumers hold it; `force` aborts and evicts them first.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            topic = topics.get(batch, name)
            mine = list(subscriptions.every(batch, topic.topic_id))
            holders = sorted(
                {txn for txn, _ in buffer.open_transactions(batch, topic.topic_id)}.union(
                    *(self._holders(batch, each) for each in mine)
                )
            )
            producers_there = [each.name for each in sessions.living(batch, topic.topic_id, batch.lock_file)]
            consumers = [c.name for each in mine for c in subscriptions.consumers(batch, each.subscription_id)
                         if batch.lock_file.is_held(c.lease)]  # fmt: skip
            if not force:
                _check_unheld(topic, consumers, producers_there, holders)
            self._end_holders(batch, f"topic {topic.name}", holders, force)
            head = topic_head.load(batch, topic.topic_id)
            for each in mine:
                subscriptions.delete(batch, each)
            topics.delete(batch, topic, head)
            return {
                "topic": topic.full_name, "messages": head.messages - head.messages_trimmed,
                "bytes": head.bytes - head.bytes_trimmed, "subscriptions": [each.name for each in mine],
                "consumersEvicted": consumers,
                "producersEvicted": producers_there,
                "transactionsAborted": [str(TxnID(txn)) for txn in holders],
            }  # fmt: skip

        result = self._change("topics delete", name, change, dry_run, reason)
        if not dry_run:
            self.purge()
        return result

    def purge(self) -> int:
        """Remove what deleted topics and tables left, in bounded steps; how many. A killed one is resumed."""
        steps = 0
        while self._connection.write(topics.purge_step) or self._connection.write(tables.purge_step):
            steps += 1
        return steps

    # Producers

    def fence_producers(
        self, topic: str, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Evict all producers of a topic, waiting ones too, as an owner that leaves at once: the epoch grows by one.

        Open transactions with messages on the topic are aborted.

        Raises:
            TopicNotFound
        """
        by = self._connection.owner

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            door = Admission(batch, found.topic_id, found.name, Fence(self._store.coordinator, by))
            before, locks = door.head, batch.lock_file
            rows = [producers.row(batch, locks, found, before, each, None) for each in door.there]
            epoch = refusals.shown_epoch(before.epoch)
            _, aborted = door.fence(by, "fence")
            return {
                "topic": found.full_name, "name": found.name, "topicEpochBefore": epoch,
                "topicEpoch": door.head.epoch, "evicted": rows,
                "transactionsAborted": [str(TxnID(txn)) for txn in aborted],
            }  # fmt: skip

        return self._change("producers fence", topic, change, dry_run, reason)

    # Tables

    def delete_table(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Delete a table.

        Raises:
            TableNotFound
            ObjectHeld: open transactions have write intents in it; `force` aborts them first.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            table = tables.get(batch, name)
            holders = tables.holders(batch, table.table_id)
            aborted = self._end_holders(batch, f"table {name}", holders, force)
            head = table_head.find(batch, table.table_id)
            tables.delete(batch, table)
            return {
                "table": name, "tableId": table.table_id, "rows": head.rows if head is not None else 0,
                "transactionsAborted": aborted,
            }  # fmt: skip

        result = self._change("tables delete", name, change, dry_run, reason)
        if not dry_run:
            self.purge()
        return result

    def set_table_retention(
        self, retention_ms: int, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """How far back versions of table rows are kept, for reads in the past and for long transactions.

        Raises:
            InvalidValue
        """
        if (
            type(retention_ms) is not int
            or not TABLE_RETENTION_MS_MIN <= retention_ms <= TABLE_RETENTION_MS_MAX
        ):
            raise InvalidValue(
                f"table versions are kept for {TABLE_RETENTION_MS_MIN} to {TABLE_RETENTION_MS_MAX} ms, "
                f"not {retention_ms!r}",
                hint="Transactions older than that can no longer use tables.",
            )

        def change(batch: WriteBatch) -> dict[str, Any]:
            before, batch.head.table_retention_ms = batch.head.table_retention_ms, retention_ms
            return {"tableRetentionMsBefore": before, "tableRetentionMs": retention_ms}

        return self._change("store config", "table-retention", change, dry_run, reason)

    # The store

    def set_reap_policy(
        self, policy: str, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Which transactions the next writer ends on its way.

        Args:
            policy: `all` (overdue ones and those of dead owners), `overdue`, or `manual`.

        Raises:
            InvalidValue
        """
        names = {each.name.lower(): each for each in ReapPolicy}
        if policy not in names:
            raise InvalidValue(f"{policy!r} is no reap policy", hint=f"One of {', '.join(names)}.")

        def change(batch: WriteBatch) -> dict[str, Any]:
            before, batch.head.reap_policy = ReapPolicy(batch.head.reap_policy), names[policy]
            return {"reapPolicyBefore": before.name.lower(), "reapPolicy": policy}

        return self._change("store config", "reap-policy", change, dry_run, reason)

    # Subscriptions

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
        ask = consuming.Ask(
            topic, name, type_=subscription_type, level=subscription_isolation_level, on_open=on_open,
            start=initial_position, dead_letter_topic=dead_letter_topic, max_redeliver_count=max_redeliver_count,
        )  # fmt: skip

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            made = consuming.create(batch, found, ask)
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

        def change(batch: WriteBatch, found: Topic, mine: Subscription, _: Cursor) -> dict[str, Any]:
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

        wanted = named(OnOpen, on_open, "on-open")

        def change(batch: WriteBatch, found: Topic, mine: Subscription, cursor: Cursor) -> dict[str, Any]:
            subscriptions.sweep(batch, mine, self._store.end_owned)
            cursor = cursors.load(batch, mine.subscription_id)
            if (subscription_type, subscription_isolation_level, wanted) != (None, None, None):
                subscriptions.check_alone(found, mine, self._living(batch, mine))
            aborted: list[str] = []
            if subscription_type not in (None, mine.type):
                aborted = self._end_holders(batch, f"subscription {name}", self._holders(batch, mine), force)
                cursor = cursors.load(batch, mine.subscription_id)
            done = changes.update(
                batch, mine, cursor, subscription_type, subscription_isolation_level, wanted
            )
            for word, value in (
                ("dead_letter_topic", dead_letter_topic),
                ("max_redeliver_count", max_redeliver_count),
            ):
                if value is not None and value != getattr(mine, word):
                    done.append(f"{word} {getattr(mine, word)} -> {value}")
                    setattr(mine, word, value)
            dead_letter.check_policy(found, name, mine.dead_letter_topic, mine.max_redeliver_count)
            subscriptions.save(batch, mine)
            cursors.save(batch, mine.subscription_id, cursor)
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

        def change(batch: WriteBatch, found: Topic, mine: Subscription, cursor: Cursor) -> dict[str, Any]:
            aborted = self._end_holders(batch, f"subscription {name}", self._holders(batch, mine), force)
            cursor = cursors.load(batch, mine.subscription_id)
            before = cursor.mark_delete
            head = topic_head.load(batch, found.topic_id)
            after, inside = subscription_start(head, start_of(start), mine.level)
            cursor.mark_delete = cursor.read = after
            cursor.generation += 1
            cursor.released, cursor.withdrawn, cursor.reached_undecided = 0, None, False
            awaited.clear(batch, mine.subscription_id, cursor)
            for database in (ACKS, DELIVERIES):
                batch.delete_prefix(database, key1(mine.subscription_id))
            if inside is not None:
                cursors.begin_inside(batch, found.topic_id, mine.subscription_id, cursor, inside)
            mine.start = min(mine.start, cursor.mark_delete)
            subscriptions.save(batch, mine)
            cursors.save(batch, mine.subscription_id, cursor)
            return {
                "markDeletePositionBefore": str(Position(*before)),
                "markDeletePositionAfter": str(Position(*cursor.mark_delete)), "transactionsAborted": aborted,
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
        total, before, step_is_last = 0, "", False
        while not step_is_last:

            def change(
                batch: WriteBatch, _: Topic, mine: Subscription, cursor: Cursor, done: int = total
            ) -> dict[str, Any]:
                was = cursor.mark_delete
                skipped, is_last = skip.step(batch, mine, cursor, count - done, beyond)
                while dry_run and not is_last:
                    more, is_last = skip.step(batch, mine, cursor, count - done - skipped, beyond)
                    skipped += more
                cursors.save(batch, mine.subscription_id, cursor)
                return {
                    "skipped": skipped, "isLast": is_last, "markDeletePositionBefore": str(Position(*was)),
                    "markDeletePositionAfter": str(Position(*cursor.mark_delete)),
                }  # fmt: skip

            result = self._on_subscription(action, topic, name, change, dry_run, reason)
            total, before = total + result["skipped"], before or result["markDeletePositionBefore"]
            step_is_last = result.pop("isLast")
        return {**result, "skipped": total, "markDeletePositionBefore": before}

    def acknowledge(
        self,
        topic: str,
        name: str,
        message_ids: list[MessageId],
        *,
        cumulative: bool = False,
        txn: Transaction | TxnID | str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Acknowledge messages from outside a consumer; a message id without a batch index means its whole entry.

        Raises:
            as `Consumer.acknowledge`
        """
        least = 0 if txn is None else txn_number(txn)
        if cumulative and len(message_ids) != 1:
            raise InvalidValue("a cumulative acknowledgement takes one message id")

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            acknowledger = Acknowledger(self._store.coordinator, mine, self._connection.owner)
            done: int | None = None
            found_items: dict[tuple[int, int], int] = {}
            for each in message_ids:
                add_item(found_items, *item_of(each))
            items = list(found_items.items())
            holding = self._holders(batch, mine)
            if cumulative:
                acknowledger.acknowledge_cumulative(batch, message_ids[0], least, force)
            else:
                done = acknowledger.acknowledge(batch, items, least, force)
            after = cursors.load(batch, mine.subscription_id).mark_delete
            aborted = [
                str(TxnID(txn)) for txn in holding if records.state_of(batch, txn) is TransactionState.ABORTED
            ]
            if aborted:
                effects = {"transactionsAborted": aborted}
                audit_trail.record(
                    batch,
                    self._connection.owner,
                    "subscriptions ack --force",
                    f"{topic} {name}",
                    None,
                    effects,
                )
            return {
                "transactionsAborted": aborted,
                "topic": found.full_name, "subscription": name, "acknowledged": done,
                "txnId": str(TxnID(least)) if least else None, "markDeletePosition": str(Position(*after)),
            }  # fmt: skip

        return self._connection.write(change, naming=least, dry_run=dry_run)

    def acknowledge_through(self, topic: str, name: str, position: Position) -> dict[str, Any]:
        """Acknowledge all that lies up to a position, messages or not, for one who keeps his own place in the log.

        The cursor never moves back, nor beyond what the subscription may be handed.

        Raises:
            TopicNotFound, SubscriptionNotFound
            InvalidValue: the subscription is Shared or Key_Shared.
            MessageNotFound: there is no such position.
            TransactionConflict: an open transaction holds some of it.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            after = Acknowledger(self._store.coordinator, mine, self._connection.owner).acknowledge_through(
                batch, position
            )
            return {
                "topic": found.full_name,
                "subscription": name,
                "markDeletePosition": str(Position(*after)),
            }

        return self._connection.write(change)

    def negative_acknowledge(
        self,
        topic: str,
        name: str,
        message_ids: list[MessageId],
        *,
        delay: float = 60.0,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Give messages back that are in flight or free, to be handed out again after `delay` seconds.

        Raises:
            TopicNotFound, SubscriptionNotFound, InvalidValue
        """
        delay_ns = nanoseconds(delay, "a delay")

        audit.check_reason(reason)

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            cursor = cursors.load(batch, mine.subscription_id)
            given = 0
            for at, messages in (item_of(each) for each in message_ids):
                delivery = deliveries.find(batch, mine.subscription_id, at)
                if delivery is None:
                    continue
                free = delivery.known() & ~delivery.of(deliveries.PENDING) & (messages or -1)
                taken = delivery.take(free)
                deliveries.note_taken(cursor, taken, deliveries.NOBODY)
                for cut in taken:
                    given += cut.messages.bit_count()
                    due_ns = batch.now_ns + delay_ns
                    delivery.give(deliveries.Part(cut.messages, deliveries.NOBODY, cut.times, due_ns))
                deliveries.save(batch, mine.subscription_id, cursor, delivery)
            if given:
                cursors.save(batch, mine.subscription_id, cursor)
                effects, by = {"givenBack": given}, self._connection.owner
                audit_trail.record(batch, by, "subscriptions nack", f"{topic} {name}", reason, effects)
            return {"topic": found.full_name, "subscription": name, "givenBack": given, "dryRun": dry_run}

        return self._connection.write(change, dry_run=dry_run)

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

        def change(batch: WriteBatch, _: Topic, mine: Subscription, cursor: Cursor) -> dict[str, Any]:
            evicted, released = [], 0
            for each in subscriptions.consumers(batch, mine.subscription_id):
                if consumer_name in (None, each.name):
                    evicted.append(each.name)
                    released += subscriptions.detach(batch, mine, cursor, each.consumer_id, {})
            if consumer_name is not None and not evicted:
                raise ConsumerNotFound(
                    f"subscription {name} has no consumer {consumer_name}",
                    hint=f"`txnctl subscriptions show {topic} {name}` lists them.",
                )
            cursors.save(batch, mine.subscription_id, cursor)
            return {"evicted": evicted, "messagesReleased": released}

        return self._on_subscription("subscriptions evict", topic, name, change, dry_run, reason)

    def pending(self, topic: str, name: str) -> list[dict[str, Any]]:
        """Acknowledgements that wait for their transaction."""
        with self._connection.view() as view:
            mine = subscriptions.get(view, topics.get(view, topic), name)
            cursor = cursors.load(view, mine.subscription_id)
            rows: list[dict[str, Any]] = []
            if cursor.pending_cumulative is not None:
                txn, *at, index = cursor.pending_cumulative
                through = MessageId(at[0], at[1], index)
                rows.append(
                    {
                        "messageId": str(through),
                        "kind": "cumulative",
                        "txnId": str(TxnID(txn)),
                        "messages": None,
                    }
                )
            for position, txn, messages in pending_ack.one_by_one(view, mine.subscription_id):
                entry = managed_ledger.read(view, mine.topic_id, position)
                count = entry.count if entry is not None else 1
                bits = message_set.decode(messages, count)
                rows.append(
                    {"messageId": str(position), "kind": "individual", "txnId": str(TxnID(txn)),
                     "messages": bits.bit_count()}
                )  # fmt: skip
            return rows

    # How each of them is made

    def _on_subscription(
        self,
        action: str,
        topic: str,
        name: str,
        change: Callable[[WriteBatch, Topic, Subscription, Cursor], dict[str, Any]],
        dry_run: bool,
        reason: str | None,
    ) -> dict[str, Any]:
        def whole(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            cursor = cursors.load(batch, mine.subscription_id)
            result = change(batch, found, mine, cursor)
            return {"topic": found.full_name, "subscription": name, **result}

        return self._change(action, f"{topic} {name}", whole, dry_run, reason)

    def _change(
        self,
        action: str,
        target: str,
        change: Callable[[WriteBatch], dict[str, Any]],
        dry_run: bool,
        reason: str | None,
    ) -> dict[str, Any]:
        def audited(batch: WriteBatch) -> dict[str, Any]:
            result = change(batch)
            audit_trail.record(batch, self._connection.owner, action, target, reason, result)
            return {**result, "dryRun": dry_run}

        audit.check_reason(reason)
        return self._connection.write(audited, dry_run=dry_run)

    def _holders(self, batch: WriteBatch, mine: Subscription) -> list[int]:
        return changes.transactions_holding(batch, mine, cursors.load(batch, mine.subscription_id))

    def _end_holders(self, batch: WriteBatch, what: str, holders: list[int], force: bool) -> list[str]:
        """Abort the open transactions that hold an object, or refuse."""
        ids = [str(TxnID(txn)) for txn in holders]
        if holders and not force:
            raise ObjectHeld(
                f"{what} is held by open transactions: {', '.join(ids[:5])}",
                hint="Wait for them to end, or use --force to abort them first.",
                transactions=ids,
            )
        for txn in holders:
            self._store.coordinator.abort(
                batch, txn, self._connection.owner, AbortReason.ASKED, f"{what} was changed by force"
            )
        return ids

    def _living(self, batch: WriteBatch, mine: Subscription) -> list[AttachedConsumer]:
        return [
            each
            for each in subscriptions.consumers(batch, mine.subscription_id)
            if batch.lock_file.is_held(each.lease)
        ]


def _check_unheld(topic: Topic, consumers: list[str], producers_there: list[str], holders: list[int]) -> None:
    """Raises:
    ObjectHeld: naming all that holds the topic.
    """
    ids = [str(TxnID(txn)) for txn in holders]
    found = [
        f"{what}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        for what, names in (
            ("consumers attached", consumers), ("producers connected", producers_there), ("open transactions", ids)
        )
        if names
    ]  # fmt: skip
    if found:
        raise ObjectHeld(
            f"topic {topic.name} has {'; '.join(found)}",
            hint="Close them, and let the transactions end; or use --force, which evicts and aborts them.",
            consumers=consumers,
            producers=producers_there,
            transactions=ids,
        )
