"""Changes of topics by an operator: deletion, retention limits, trimming, truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.actions import Action, Hint, Keyword
from storage.admin.audited_change import (
    Changed,
    ChangeRequest,
    abort_holders,
    run_change,
    to_delete,
    transactions_on,
)
from storage.admin.limit_forecast import LetGo, forecast
from storage.admin.purge import purge_deleted
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.errors import ObjectHeld
from storage.json_form import Flat
from storage.limits import TRIM_STEP_ENTRIES, TRIM_STEP_LEDGERS
from storage.subscription import (
    attached_consumers,
    catalogue as subscriptions,
    topic_upkeep,
    trimming,
    update,
)
from storage.subscription.hard_trimming import Loss
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.subscription.trimming import NO_STEP, Hold, Step
from storage.topic import catalogue as topics, retention, state, trim
from storage.topic.catalogue import Topic
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import session as sessions
from storage.topic.retention import LimitChange, RetentionLimits
from storage.topic.trim import Trimmed
from storage.txn import uncommitted_entries
from storage.txn.reaper import EVERY
from storage.values.arguments import check_flags
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID

if TYPE_CHECKING:
    from storage.admin.compaction import CompactionSet, TopicCompacted


class TopicDeleted(NamedTuple):
    """The effects of deleting a topic: deleted messages and subscriptions, evicted clients, aborted transactions.

    Attributes:
        compacted_messages: of the compacted view, some of which the log may not have.
    """

    topic: str
    messages: int
    bytes: int
    compacted_messages: int
    subscriptions: list[str]
    consumers_evicted: list[str]
    producers_evicted: list[str]
    transactions_aborted: list[TxnID]


class RetentionSet(NamedTuple):
    """The limits of a topic, its own and those in force, before and after; see `storage/topic/retention.py`.

    Attributes:
        lets_go: the effects that the limits in force have now.
    """

    topic: str
    own: Flat[RetentionLimits]
    before: RetentionLimits
    in_force: RetentionLimits
    in_force_before: RetentionLimits
    lets_go: LetGo


class TopicTrimmed(NamedTuple):
    """The ledgers trimmed, the first position left, and the object that holds messages back.

    Attributes:
        offloaded_to: where the trimmed ledgers are still to be read; None for a trimming to the retention limits.
    """

    topic: str
    trimmed: Flat[Trimmed]
    first_position: Position
    held_by: Hold | None
    clocks_disagree: bool
    lost: list[Loss]
    expired: list[Loss]
    subscriptions_expired: list[str]
    transactions_aborted: list[TxnID]
    offloaded_to: str | None


class OffloadedLedgers(NamedTuple):
    """Ledgers that are stored elsewhere too.

    Attributes:
        stop_ledger: the first ledger that is not; every ledger before is.
        place: the address of the files, for the audit trail.
    """

    stop_ledger: int
    place: str


_KEEP_NOTHING = RetentionLimits(0, None)


class TopicTruncated(NamedTuple):
    """The ledgers removed, the subscriptions moved to the end, and the transactions aborted.

    Attributes:
        compacted_messages: of the compacted view, some of which the log may not have.
    """

    topic: str
    trimmed: Flat[Trimmed]
    compacted_messages: int
    first_position: Position
    subscriptions: list[str]
    messages_withdrawn: int
    transactions_aborted: list[TxnID]


class TopicAdmin:
    """Audited changes of topics, as `store.admin.topics`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def delete_topic(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TopicDeleted]:
        """Delete a topic with its subscriptions; a later topic of this name continues the ledger ids and the epoch.

        Args:
            force: abort open transactions on the topic, and evict its producers and consumers, instead of refusing.
            dry_run: change nothing, and return the effects that the deletion would have.
            reason: for the audit trail.

        Raises:
            TopicNotFound
            ObjectHeld: without `force`, an open transaction, a producer or a consumer uses the topic.
        """
        check_flags(force=force, dry_run=dry_run)

        def change(batch: WriteBatch) -> TopicDeleted:
            with to_delete(Action("store.reports.list_topics")):
                topic = topics.get(batch, name)
            attached = list(subscriptions.every(batch, topic.topic_id))
            holders = _transactions_on_topic(batch, topic, attached)
            producers = [session.name for session in sessions.living(batch, topic.topic_id, batch.locks)]
            consumers = [
                consumer.name
                for subscription in attached
                for consumer in attached_consumers.living(batch, batch.locks, subscription.subscription_id)
            ]
            if not force:
                _check_unheld(topic, consumers, producers, holders)
            aborted = abort_holders(self._engine, batch, f"topic {topic.name}", holders, force)
            topic_state = state.load(batch, topic.topic_id)
            for subscription in attached:
                subscriptions.delete(batch, subscription)
            compacted = _compacted_messages(batch, topic)
            topics.delete(batch, topic)
            return TopicDeleted(
                topic=topic.full_name, messages=topic_state.messages - topic_state.messages_trimmed,
                bytes=topic_state.bytes - topic_state.bytes_trimmed, compacted_messages=compacted,
                subscriptions=[subscription.name for subscription in attached],
                consumers_evicted=consumers, producers_evicted=producers, transactions_aborted=aborted,
            )  # fmt: skip

        result = run_change(self._engine, ChangeRequest("topics delete", name, dry_run, reason), change)
        if not dry_run:
            purge_deleted(self._engine.connection)
        return result

    def set_retention(
        self,
        name: str,
        *,
        time_ms: int | str | None = None,
        size: int | str | None = None,
        hard: str | None = None,
        ttl_ms: int | str | None = None,
        expire_after_ms: int | str | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[RetentionSet]:
        """Set the limits of a topic: of what is acknowledged, and of what no consumer comes for.

        In place of each, `unset` sets no limit, `store` takes the limit of the store, None leaves the limit as it is.

        Args:
            time_ms, size: the age and size down to which acknowledged messages are kept; 0 keeps nothing.
            hard: `off`, `trim` or `refuse`: the effect of both on messages that are not acknowledged.
            ttl_ms: the age at which messages are acknowledged for every subscription.
            expire_after_ms: the time without a consumer after which a subscription is deleted.

        Raises:
            TopicNotFound, InvalidValue
        """
        check_flags(dry_run=dry_run)
        words = {"unset": retention.EVERYTHING, "store": None}
        asked = LimitChange(time_ms, size, hard, ttl_ms, expire_after_ms)

        def change(batch: WriteBatch) -> RetentionSet:
            topic = topics.get(batch, name)
            before = retention.own(batch, topic.topic_id)
            own = retention.changed(before, asked, words)
            retention.set_for_topic(batch, topic.topic_id, own)
            of_all = retention.of_others(batch, topic.topic_id)
            return RetentionSet(
                topic.full_name, own, before, retention.in_force(own, of_all),
                retention.in_force(before, of_all), lets_go,
            )  # fmt: skip

        def limits_of(view: ReadView, topic_id: int) -> RetentionLimits:
            own = retention.changed(retention.own(view, topic_id), asked, words)
            return retention.in_force(own, retention.of_others(view, topic_id))

        lets_go = LetGo.counted(forecast(self._engine, name, limits_of).step)
        return run_change(
            self._engine, ChangeRequest("topics config", name, dry_run, reason), change, naming=EVERY
        )

    def trim_topic(
        self,
        name: str,
        *,
        offloaded: OffloadedLedgers | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[TopicTrimmed]:
        """Trim a topic to its retention limits now.

        Args:
            offloaded: trim these ledgers instead, whatever the limits are, as far as nothing holds them.

        Raises:
            TopicNotFound
        """
        check_flags(dry_run=dry_run)
        total, done, before = NO_STEP, NO_STEP, NO_STEP
        take = topic_upkeep.all_steps if dry_run else topic_upkeep.trim_step

        def change(batch: WriteBatch) -> TopicTrimmed:
            nonlocal done
            topic = topics.get(batch, name)
            opened = OpenTopic.load(batch, topic.topic_id, topic.name)
            limits = _KEEP_NOTHING if offloaded else retention.of_topic(batch, topic.topic_id)
            trusted = trimming.trusted(batch, limits, trust_clock=False)
            if offloaded is not None:
                done = _trim_offloaded(opened, trusted, offloaded, dry_run=dry_run)
            else:
                done = take(opened, trusted, self._engine.force.after(before))
            hold = trimming.find_hold(batch, topic.topic_id, opened.state, limits)
            return TopicTrimmed(
                topic.full_name, done.trimmed, Position(opened.state.first_ledger, 0), hold, trusted != limits,
                done.lost, done.expired, done.deleted, done.aborted,
                None if offloaded is None else offloaded.place,
            )  # fmt: skip

        request = ChangeRequest("topics trim", name, dry_run, reason)
        while True:
            # No upkeep in these batches: it would trim first, and leave a dry run nothing to tell.
            result = run_change(self._engine, request, change, lambda _: done.has_effect, naming=EVERY)
            total, before = total.plus(done), done
            if dry_run or not done.has_more:
                break
        if not dry_run:
            self._remove_trimmed_entries(name)
        whole = result.effects._replace(
            trimmed=total.trimmed, lost=total.lost, expired=total.expired,
            subscriptions_expired=total.deleted, transactions_aborted=total.aborted,
        )  # fmt: skip
        return result._replace(effects=whole)

    def truncate_topic(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TopicTruncated]:
        """Remove every message of a topic, and move every subscription to the end.

        Positions, epochs and sequence ids go on counting.

        Args:
            force: abort open transactions that hold something on the topic, instead of refusing.

        Raises:
            TopicNotFound
            ObjectHeld: without `force`, an open transaction has messages or acknowledgements on the topic.
        """
        check_flags(force=force, dry_run=dry_run)

        def change(batch: WriteBatch) -> TopicTruncated:
            topic = topics.get(batch, name)
            attached = list(subscriptions.every(batch, topic.topic_id))
            holders = _transactions_on_topic(batch, topic, attached)
            aborted = abort_holders(self._engine, batch, f"topic {topic.name}", holders, force)
            opened = OpenTopic.load(batch, topic.topic_id, topic.name)
            withdrawn = 0
            for subscription in attached:
                withdrawn += update.move(OpenSubscription(batch, subscription), opened.state.last_confirmed)
                subscriptions.save(batch, subscription)
            has_entries = opened.state.next_entry > 0
            trimmed = trimming.drop(opened, opened.state.ledger_id + has_entries)
            compacted = _compacted_messages(batch, topic)
            compaction = compaction_state.load(batch, topic.topic_id)
            if compaction is not None:
                compaction.restart(opened.state.max_read if compaction.has_view else None)
            return TopicTruncated(
                topic.full_name, trimmed, compacted, Position(opened.state.first_ledger, 0),
                [subscription.name for subscription in attached], withdrawn, aborted,
            )  # fmt: skip

        result = run_change(
            self._engine, ChangeRequest("topics truncate", name, dry_run, reason), change, naming=EVERY
        )
        if not dry_run:
            self._remove_trimmed_entries(name)
        return result

    def compact_topic(
        self, name: str, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TopicCompacted]:
        """Compact a topic up to maxReadPosition: its view keeps the newest committed message of each key.

        Messages without a key stay, and so do tombstones for the tombstone retention. The run is many store
        transactions, each of which leaves a complete view; after a kill the next run goes on.

        Raises:
            TopicNotFound, StoreFull
        """
        check_flags(dry_run=dry_run)
        from storage.admin import compaction

        return compaction.compact_topic(self._engine, name, dry_run, reason)

    def set_compaction(
        self,
        name: str,
        *,
        threshold: int | str | None = None,
        tombstone_retention_ms: int | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[CompactionSet]:
        """Set the size at which writers compact a topic on their way, and the time for which tombstones stay.

        Args:
            threshold: bytes of committed log behind the horizon; `unset` for never, None leaves it as it is.
            tombstone_retention_ms: ms from the time at which a tombstone enters the view; None leaves it as it is.

        Raises:
            TopicNotFound, InvalidValue
        """
        check_flags(dry_run=dry_run)
        from storage.admin import compaction

        return compaction.set_compaction(
            self._engine, name, threshold, tombstone_retention_ms, dry_run, reason
        )

    def remove_compacted(
        self, name: str, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TopicCompacted]:
        """Remove the compacted view of a topic, and its threshold: the log is trimmed without regard to it.

        Raises:
            TopicNotFound
        """
        check_flags(dry_run=dry_run)
        from storage.admin import compaction

        return compaction.remove_view(self._engine, name, dry_run, reason)

    def _remove_trimmed_entries(self, name: str) -> None:
        """Remove entries of trimmed ledgers and remains of a view, in steps. After a kill any trimming goes on."""

        def purge(batch: WriteBatch) -> int:
            topic = topics.find(batch, name)
            if topic is None:
                return 0
            removed = trim.purge_step(OpenTopic.load(batch, topic.topic_id), TRIM_STEP_ENTRIES)
            return removed or compacted_view.purge_step(batch, topic.topic_id, TRIM_STEP_ENTRIES)

        while self._engine.connection.write(purge, share=ReserveShare.WHOLE):
            pass


def _trim_offloaded(
    topic: OpenTopic[WriteBatch], limits: RetentionLimits, offloaded: OffloadedLedgers, *, dry_run: bool
) -> Step:
    """Trim ledgers that are stored elsewhere too, as far as nothing holds them; hard limits are not hard here."""
    ledgers_max = 1 << 62 if dry_run else TRIM_STEP_LEDGERS
    first_kept = trimming.plan(topic, limits, topic.view.now_ms, ledgers_max)
    trimmed = trimming.drop(topic, min(first_kept, offloaded.stop_ledger, topic.state.ledger_id))
    return NO_STEP._replace(trimmed=trimmed, has_more=trimmed.ledgers > 0)


def _transactions_on_topic(batch: WriteBatch, topic: Topic, attached: list[Subscription]) -> list[int]:
    """The open transactions with messages or acknowledgements on a topic."""
    holders = {txn for txn, _ in uncommitted_entries.open_transactions(batch, topic.topic_id)}
    holders.update(*(transactions_on(batch, subscription) for subscription in attached))
    return sorted(holders)


def _check_unheld(topic: Topic, consumers: list[str], producers: list[str], holders: list[int]) -> None:
    """Check that a topic has no consumer, no producer and no open transaction.

    Raises:
        ObjectHeld: names every consumer, producer and transaction.
    """
    ids = [str(TxnID(txn)) for txn in holders]
    held = [
        f"{kind}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        for kind, names in (
            ("consumers attached", consumers), ("producers connected", producers), ("open transactions", ids)
        )
        if names
    ]  # fmt: skip
    if held:
        raise ObjectHeld(
            f"topic {topic.name} has {'; '.join(held)}",
            hint=Hint(
                "Close them, and let the transactions end; or use {}, which evicts and aborts them.",
                Keyword("force", True),
            ),
            held_by=holders,
            consumers=consumers,
            producers=producers,
            transactions=ids,
        )


def _compacted_messages(view: ReadView, topic: Topic) -> int:
    """The messages of the compacted view of a topic."""
    compaction = compaction_state.load(view, topic.topic_id)
    return 0 if compaction is None else compaction.messages
