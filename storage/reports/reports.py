"""Every read-only answer about a store, as `store.reports`: each method makes one report, from one view.

The modules behind the methods are loaded on use: a command needs one or two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from storage.engine import Engine
from storage.subscription.isolation import IsolationLevel
from storage.values.arguments import check_count, check_flags
from storage.values.position import EARLIEST, Extreme, MessageId, Position

if TYPE_CHECKING:
    from storage.audit_trail import AuditRecord
    from storage.client.transaction import Transaction
    from storage.disk.server_status import ServerStatus
    from storage.reports.activity import StoreActivity
    from storage.reports.browse import EntryRow, KeyMessages
    from storage.reports.compaction import TopicCompaction
    from storage.reports.explain import Explanation
    from storage.reports.extents import Extent, Reached
    from storage.reports.freeable import Freeable
    from storage.reports.live import LiveFacts
    from storage.reports.overview import Overview
    from storage.reports.pending_acks import PendingRow
    from storage.reports.producers import OwnershipRow, ProducerRow, SessionRow, TopicProducers
    from storage.reports.quiet_consumers import QuietConsumer
    from storage.reports.retention import TopicRetention
    from storage.reports.sizes import ObjectSize
    from storage.reports.slow_and_orphaned import AttentionRow
    from storage.reports.stats import OneSubscription, SubscriptionRow, TopicRow, TopicStats
    from storage.reports.stats_internal import InternalStats
    from storage.reports.store_info import DatabaseRow, FormerIdentity, LockRow, ReaderRow, StoreInfo
    from storage.reports.store_report import StoreReport
    from storage.reports.timeline import BlockingRow, Timeline
    from storage.reports.transaction_end import TransactionEnd
    from storage.reports.transactions import TransactionDetails, TransactionRow
    from storage.table.conflict import ConflictRow
    from storage.table.report import IntentRow, TableRow
    from storage.topic.message import Message
    from storage.topic.retention import RetentionLimits
    from storage.values.txn_id import TxnID

    Start = Position | MessageId | Extreme
    Txn = Transaction | TxnID | str


class Reports:
    """Reports about one store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection = engine.connection

    # Topics

    def list_topics(self) -> list[TopicRow]:
        """Positions and counts of every topic."""
        from storage.reports import stats

        return stats.list_topics(self._connection)

    def topic_stats(self, topic: str) -> TopicStats:
        """One topic with its subscriptions, producers and the transaction that blocks the topic.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import stats

        return stats.topic_stats(self._connection, topic)

    def topic_stats_internal(self, topic: str) -> InternalStats:
        """Ledgers, cursors and segments of the aborted set of a topic.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import stats_internal

        return stats_internal.topic_stats_internal(self._connection, topic)

    def topic_timeline(self, topic: str) -> Timeline:
        """The positions of a topic: ledgers, open transactions with the messages each holds back, cursors.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import timeline

        return timeline.topic_timeline(self._connection, topic)

    def topic_timelines(self) -> list[Timeline]:
        """The timelines of all topics, from one view."""
        from storage.reports import timeline

        return timeline.topic_timelines(self._connection)

    def topic_retention(self, topic: str) -> TopicRetention:
        """The retention limits of a topic, and the subscription or transaction that holds messages back."""
        from storage.reports import retention

        return retention.topic_retention(self._connection, topic)

    def topic_descent(self, topic: str) -> list[FormerIdentity]:
        """The identities of the store before it was restored, the latest first, with the ledgers that they share.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import store_info

        return store_info.topic_descent(self._connection, topic)

    def topic_compaction(self, topic: str) -> TopicCompaction:
        """The compaction of a topic: settings, and horizon and counters of the compacted view."""
        from storage.reports import compaction

        return compaction.topic_compaction(self._connection, topic)

    def topic_log(self, topic: str, start: Start = EARLIEST, limit: int | None = None) -> Iterator[EntryRow]:
        """Every entry of a topic from `start` on, transaction markers included."""
        from storage.reports import browse

        return browse.list_entries(self._connection, topic, start, _limit(limit))

    def last_message_id(
        self,
        topic: str,
        isolation_level: IsolationLevel | str = IsolationLevel.READ_COMMITTED,
        *,
        subscription: str | None = None,
    ) -> MessageId | None:
        """The largest message visible at an isolation level, or to a subscription at its own level."""
        from storage.reports import browse

        return browse.last_message_id(self._connection, topic, isolation_level, subscription)

    def position_at(self, topic: str, time_ms: int) -> Position:
        """The first entry published at or after a time, for a start or a seek by time."""
        from storage.reports import browse

        return browse.position_at(self._connection, topic, time_ms)

    def topic_extents(self, topics: Sequence[str] | None = None) -> list[Extent]:
        """The first and last positions of some topics, or of all, from one view: to read topics in parallel.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.of(self._connection, topics)

    def furthest_position(
        self,
        topic: str,
        after: Position,
        through: Position,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
    ) -> Reached:
        """The end of a piece of (after, through] within bounds on messages and bytes: whole entries, at least one.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.reach(self._connection, topic, after, through, max_messages, max_bytes)

    def whole_transactions(self, topic: str, after: Position, end: Position, through: Position) -> Position:
        """The end of a piece of (after, through] near `end` that cuts no transaction of the topic; `after` if there is
        none yet. A transaction that goes on for more than `limits.TOGETHER_ENTRIES_MAX` entries is cut.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.whole_transactions(self._connection, topic, after, end, through)

    def count_messages_between(
        self,
        topic: str,
        after: Position,
        through: Position,
        isolation_level: IsolationLevel | str = IsolationLevel.READ_COMMITTED,
    ) -> int:
        """Messages in (after, through] that a reader of this level receives: the lag of a reader at `after`.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.messages_between(self._connection, topic, after, through, isolation_level)

    # Subscriptions

    def list_subscriptions(self, topic: str | None = None) -> list[SubscriptionRow]:
        """Backlog and consumers of the subscriptions of one topic, or of all topics."""
        from storage.reports import stats

        return stats.list_subscriptions(self._connection, topic)

    def subscription_stats(self, topic: str, subscription: str) -> OneSubscription:
        """One subscription of `topic_stats`.

        Raises:
            TopicNotFound, SubscriptionNotFound, InvalidName
        """
        from storage.reports import stats

        return stats.one_subscription(self._connection, topic, subscription)

    def list_pending_acknowledgements(self, topic: str, subscription: str) -> list[PendingRow]:
        """Acknowledgements that are pending until their transaction ends.

        Raises:
            TopicNotFound, SubscriptionNotFound, InvalidName
        """
        from storage.reports import pending_acks

        return pending_acks.list_pending(self._connection, topic, subscription)

    def peek_messages(self, topic: str, subscription: str, count: int = 1) -> list[Message]:
        """The next messages that a subscription may deliver; nothing is delivered by looking."""
        from storage.reports import browse

        return browse.peek(self._connection, topic, subscription, count)

    def peek_key(self, topic: str, subscription: str, key: bytes, count: int = 1) -> KeyMessages:
        """The same, of one key; `looked_through` tells where the look ended before the end of the topic."""
        from storage.reports import browse

        return browse.peek_key(self._connection, topic, subscription, key, count)

    # Producers

    def list_producers(self, topic: str | None = None) -> list[ProducerRow]:
        """The producers that are connected to a topic or wait for the topic; of all topics if None."""
        from storage.reports import producers

        return producers.list_producers(self._connection, topic)

    def ownership_history(self, topic: str, limit: int = 100) -> list[OwnershipRow]:
        """The owners of a topic, the newest first."""
        from storage.reports import producers

        return producers.ownership_history(self._connection, topic, limit)

    def show_producers(self, topic: str) -> TopicProducers:
        """Why a producer can or cannot connect to a topic: epoch, owner, publishers, queue, and the history."""
        from storage.reports import producers

        return producers.show_producers(self._connection, topic)

    def show_session(self, session: str) -> SessionRow:
        """The session of a token.

        Raises:
            InvalidValue, SessionNotFound
        """
        from storage.reports import producers

        return producers.show_session(self._engine, session)

    # Tables

    def list_tables(self) -> list[TableRow]:
        """Counts of every table."""
        from storage.table import report as tables

        return tables.list_tables(self._connection)

    def list_intents(self, table: str | None = None, limit: int | None = None) -> list[IntentRow]:
        """Write intents of one table, or of all: the keys held, and by which transaction."""
        from storage.table import report as tables

        return tables.list_intents(self._connection, table, _limit(limit))

    def list_conflicts(self, limit: int | None = None, table: str | None = None) -> list[ConflictRow]:
        """Recent conflicts between transactions over tables, the newest first: winner, loser, key."""
        from storage.table import conflict

        with self._connection.view() as view:
            return conflict.list_conflicts(view, _limit(limit), table)

    # Transactions

    def list_transactions(
        self,
        *,
        ended: bool = False,
        topic: str | None = None,
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        older_than: float | None = None,
        limit: int | None = None,
    ) -> list[TransactionRow]:
        """The open transactions, oldest first; with `ended` the ended transactions, newest first.

        Args:
            labels: only transactions with all of these labels.
            owner: only transactions with this text in their owner, `user@host:pid (program)`.
            older_than: only transactions begun more than so many seconds ago, or open for so long until their end.

        Raises:
            TopicNotFound, InvalidValue
        """
        check_flags(ended=ended)
        from storage.reports import transaction_filter, transactions

        chosen = transaction_filter.of(topic, labels, owner, older_than)
        return transactions.list_transactions(self._engine, ended=ended, chosen=chosen, limit=_limit(limit))

    def list_ended_transactions(
        self,
        *,
        topic: str | None = None,
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        older_than: float | None = None,
        reason: str | None = None,
        since_ms: int | None = None,
        limit: int | None = None,
    ) -> list[TransactionRow]:
        """Transactions that have ended, the one that ended last first.

        Args:
            labels, owner, older_than: as `list_transactions`.
            reason: only transactions aborted for this reason: asked, timed-out, owner-dead and so on.
            since_ms: only transactions that ended then or later.

        Raises:
            TopicNotFound, InvalidValue
        """
        from storage.reports import transaction_filter, transactions
        from storage.values.names import named
        from storage.values.txn_state import AbortReason

        code = named(AbortReason, reason, "reason")
        chosen = transaction_filter.of(topic, labels, owner, older_than)
        return transactions.list_ended(
            self._engine, chosen=chosen, reason=code, since_ms=since_ms, limit=_limit(limit)
        )

    def list_blocking_transactions(self, topic: str | None = None) -> list[BlockingRow]:
        """The open transactions of a topic, or of all, in the order of their messages, with what ending each frees.

        Raises:
            TopicNotFound
        """
        from storage.reports import timeline

        return timeline.list_blocking(self._connection, topic)

    def list_quiet_consumers(self, topic: str | None = None) -> list[QuietConsumer]:
        """Living consumers that hold messages and have acknowledged none for a minute, the longest first.

        Raises:
            TopicNotFound
        """
        from storage.reports import quiet_consumers, quiet_findings
        from storage.topic import catalogue

        with self._connection.view() as view:
            of = None if topic is None else [catalogue.get(view, topic)]
            rows = quiet_consumers.quiet_consumers(view, self._connection.environment, of, shows_keys=True)
            return quiet_findings.too_quiet(rows)

    def list_slow_transactions(self, over: float = 60.0) -> list[AttentionRow]:
        """Transactions open for longer than `over` seconds, the oldest first, with what each holds back."""
        from storage.process.clock import nanoseconds
        from storage.reports import slow_and_orphaned

        return slow_and_orphaned.list_slow(self._engine, nanoseconds(over, "an age") // 1_000_000)

    def list_orphaned_transactions(self) -> list[AttentionRow]:
        """Open transactions whose process is proven dead, with what each holds back."""
        from storage.reports import slow_and_orphaned

        return slow_and_orphaned.list_orphans(self._engine)

    def show_transaction(self, txn: Txn) -> TransactionDetails:
        """One transaction with its parts.

        Raises:
            TransactionNotFound
        """
        from storage.client.transaction import txn_number
        from storage.reports import transactions

        return transactions.show_transaction(self._engine, txn_number(self._engine.connection, txn))

    def explain_transaction(self, txn: Txn) -> Explanation:
        """As `show_transaction`, with the evidence that its process lives, what the transaction blocks, and advice.

        Raises:
            TransactionNotFound
        """
        from storage.client.transaction import txn_number
        from storage.reports import explain

        return explain.explain_transaction(self._engine, txn_number(self._engine.connection, txn))

    def wait_for_transaction(self, txn: Txn, timeout: float | None = None) -> TransactionDetails:
        """Wait until a transaction has ended, and return the row of `show_transaction`.

        Raises:
            TransactionNotFound, WaitTimeout
        """
        from storage.client.transaction import txn_number
        from storage.reports import transactions

        return transactions.wait_for_transaction(
            self._engine, txn_number(self._engine.connection, txn), timeout
        )

    def transaction_end(self, txn: Txn) -> TransactionEnd | None:
        """How a transaction ended, and whether an operator ended it; None while the transaction is open.

        Raises:
            TransactionNotFound
        """
        from storage.client.transaction import txn_number
        from storage.reports import transaction_end

        return transaction_end.end_of(self._connection, txn_number(self._connection, txn))

    # The store

    def store_overview(self) -> Overview:
        """The health of the store, from one view, with problems as `findings`."""
        from storage.reports import overview

        return overview.store_overview(self._engine)

    def live_facts(self, transactions_max: int = 1000) -> LiveFacts:
        """The health of the store with the open transactions and the counters of rates, from one view.

        Args:
            transactions_max: the most open transactions listed, the oldest.
        """
        from storage.reports import live

        return live.live_facts(self._engine, check_count("a number of rows", transactions_max))

    def store_activity(self) -> StoreActivity:
        """Counts of events since the boot, transactions ended of late, and the oldest visible messages."""
        from storage.reports import activity

        return activity.store_activity(self._engine.connection)

    def store_report(self, topics: Sequence[str] | None = None) -> StoreReport:
        """The data of the report page, of the whole store or of some topics, from one view; no values, no keys.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import store_report

        return store_report.store_report(self._engine, topics)

    def store_info(self) -> StoreInfo:
        """Format, identity, sizes and counts of the store."""
        from storage.reports import store_info

        return store_info.store_info(self._connection)

    def list_locks(self) -> list[LockRow]:
        """Processes that hold the writer gate, leases, or the store open."""
        from storage.reports import store_info

        return store_info.list_locks(self._connection)

    def server_status(self) -> ServerStatus | None:
        """The server of the store as it runs now; None for a store in a directory."""
        return self._connection.environment.server_status()

    def list_readers(self) -> list[ReaderRow]:
        """LMDB's reader table; on a server the transactions of its clients."""
        from storage.reports import store_info

        return store_info.list_readers(self._connection)

    def list_databases(self) -> list[DatabaseRow]:
        """Entries and bytes of every database."""
        from storage.reports import store_info

        return store_info.list_databases(self._connection)

    def reserve_size(self) -> int:
        """The bytes of disk that are kept for changes that free space; 0 on a server, whose disk is not ours."""
        from storage.disk import reserve

        if not self._connection.environment.has_directory:
            return 0

        with self._connection.view() as view:
            return reserve.setting(view)

    def reserve_kept(self) -> int:
        """The bytes of the reserve that are on the disk now; fewer than `reserve_size` where the disk had no room."""
        return self._connection.environment.reserve_bytes()

    def dead_letter_retention(self) -> RetentionLimits:
        """The limits of dead-letter topics without limits of their own."""
        from storage.topic import retention

        with self._connection.view() as view:
            return retention.of_dead_letters(view)

    def sequence_retention_ms(self) -> int | None:
        """The ms for which sequence ids of trimmed messages are kept after their last use; None for ever."""
        from storage.topic import sequence_retention

        with self._connection.view() as view:
            return sequence_retention.retention_ms(view)

    def list_freeable(self) -> list[Freeable]:
        """Topics and tables by size, and the changes that would free their space."""
        from storage.reports import freeable

        return freeable.list_freeable(self._connection)

    def list_sizes(self, limit: int | None = None) -> list[ObjectSize]:
        """Return the sizes of topics and tables, the largest first, at most so many."""
        from storage.reports import sizes

        return sizes.list_sizes(self._connection, limit)

    def list_audit_records(
        self,
        limit: int | None = None,
        *,
        since_ms: int | None = None,
        action: str | None = None,
        target: str | None = None,
    ) -> list[AuditRecord]:
        """Changes by operators and expired transactions, the newest first.

        Args:
            since_ms: only records of then or later, in wall time.
            action: only records of this action, or of the group of actions: `topics delete`, or `topics`.
            target: only records with this text in their target.

        Raises:
            InvalidValue
        """
        from storage.reports import audit

        return audit.list_records(self._connection, _limit(limit), audit.choice(since_ms, action, target))

    def show_audit_record(self, number: int) -> AuditRecord:
        """One audit record.

        Raises:
            NotFound
        """
        from storage.reports import audit

        return audit.show_record(self._connection, number)


def _limit(rows: int | None) -> int | None:
    """A bound on rows; None for all, also where it exceeds any possible number of rows.

    Raises:
        InvalidValue
    """
    return None if rows is None or check_count("a number of rows", rows) >= 1 << 62 else rows
