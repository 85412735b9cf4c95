"""A store: open it, and make producers, consumers, readers and transactions from it.

    from storage import Store

    with Store.open("bank.store") as store:
        producer = store.create_producer("requests")
        producer.send(b"+100", key="B1")

This module only wires: each method is one call into the module that does the work. A Store may be used by many
threads; what is made from it, by one thread at a time. Nothing of it survives a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from storage.engine import Engine
from storage.errors import InvalidValue
from storage.limits import LOCK_TIMEOUT_S, RECEIVER_QUEUE_SIZE, SESSION_LEASE_MS, TRANSACTION_TIMEOUT_MS
from storage.process.clock import SYSTEM_CLOCK, Clock, nanoseconds
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
from storage.topic import catalogue as topics
from storage.topic.producers.access_mode import AccessMode
from storage.txn.options import CheckMode, Priority, TransactionIsolation, TransactionOptions
from storage.values.names import named
from storage.values.position import EARLIEST, LATEST, Extreme, MessageId, Position, start_of
from storage.values.txn_id import TxnID

if TYPE_CHECKING:
    from storage.admin.admin import Administration
    from storage.client.connect import OnTurn
    from storage.client.consumer import Consumer
    from storage.client.producer import Producer
    from storage.client.reader import Reader
    from storage.client.table import Table
    from storage.client.transaction import Transaction
    from storage.disk.data_map import OnWait
    from storage.reports.extents import Extent, Reached
    from storage.topic.catalogue import Topic
    from storage.topic.message import Message
    from storage.txn.aborted import AbortedSet

    Start = Position | MessageId | Extreme
    Txn = Transaction | TxnID | str


class Store:
    """An open store. Made by `Store.open`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.connection = engine.connection
        self._aborted_sets: dict[int, AbortedSet] = {}

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Create an empty store at `path`, atomically: it is there whole, or not at all.

        Raises:
            AlreadyExists: something is at the path; it was left as it is.
            StoreUnsafe, NotPermitted, StoreFull
        """
        from storage.disk import create as creation

        creation.create(os.fspath(path), clock)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        lock_timeout: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        program: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Store:
        """Open an existing store.

        Args:
            read_only: never write, not even to end what is overdue.
            lock_timeout: seconds to wait for the writer gate.
            on_wait: called once per wait, after a second, with the holder in words and the seconds waited.
            program: what others read as the name of this program.

        Raises:
            StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreUnsafe, NotPermitted, StoreInUse
        """
        return cls(
            Engine.open(
                path, read_only=read_only, lock_timeout=lock_timeout, on_wait=on_wait, program=program, clock=clock
            )
        )  # fmt: skip

    def close(self) -> None:
        """Close the store. Consumers and transactions still open are left to the next writer, as if we had died."""
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        return self.connection.path

    @property
    def identity(self) -> str:
        """Which store it is, and which incarnation: restoring a backup makes another."""
        from storage.reports import store_info

        return store_info.identity(self.connection)

    @property
    def admin(self) -> Administration:
        """What operators do: delete, seek, skip, evict and the like."""
        from storage.admin.admin import Administration

        return Administration(self.engine)

    # Topics

    def topics(self) -> list[str]:
        """The names of all topics, in order."""
        with self.connection.view() as view:
            return [topic.name for topic in topics.every(view)]

    def has_topic(self, name: str) -> bool:
        with self.connection.view() as view:
            return topics.find(view, name) is not None

    def create_topic(
        self,
        name: str,
        *,
        ledger_entries_max: int | None = None,
        ledger_bytes_max: int | None = None,
        ledger_age_max_ms: int | None = None,
    ) -> None:
        """Create an empty topic.

        Args:
            ledger_entries_max, ledger_bytes_max, ledger_age_max_ms: when its ledger rolls over.

        Raises:
            AlreadyExists, InvalidName, InvalidValue
        """
        limits = topics.LedgerLimits(ledger_entries_max, ledger_bytes_max, ledger_age_max_ms)
        self.connection.write(lambda batch: topics.create(batch, name, limits))

    def _topic(self, name: str) -> Topic:
        with self.connection.view() as view:
            return topics.get(view, name)

    # Producing and reading

    def create_producer(
        self,
        topic: str,
        *,
        producer_name: str | None = None,
        access_mode: AccessMode | str | None = None,
        timeout: float | None = None,
        txn: Txn | None = None,
        topic_epoch: int | None = None,
        resume: str | None = None,
        connected: bool = True,
        create_topic: bool = False,
        on_wait: OnTurn | None = None,
    ) -> Producer:
        """A producer, connected to a topic until it is closed or this process dies, however.

        Args:
            producer_name: names the sequence ids that are deduplicated; a name that no other ever had if None.
            access_mode: Shared if None (PIP-68).
            timeout: seconds that WaitForExclusive waits for its turn; None waits for ever.
            txn: an open transaction that becoming the owner spares, since this producer goes on with it.
            topic_epoch: the epoch it had when it was connected before: it must be the topic's still.
            resume: token of the session by which it was connected before; it goes on under that one's epoch if nobody
                took the topic over and nobody else has produced.
            connected: if False, Shared only, it is connected during each send and not in between.
            create_topic: create the topic if it is missing.
            on_wait: told once who is before it, if it has to wait.

        Raises:
            TopicNotFound, InvalidName, InvalidValue
            ProducerBusy: others are connected or wait, or one bears the name.
            ProducerFenced: the epoch or session it brings is over.
            WaitTimeout
        """
        from storage.client import connect, create_producer as producing

        ask = connect.ConnectOptions(
            topic, access_mode, name=producer_name, epoch=topic_epoch, resume=resume, spare=txn, timeout=timeout,
            create_topic=create_topic, on_wait=on_wait,
        )  # fmt: skip
        create = producing.create if connected else producing.create_passing
        return create(self.connection, self.engine.coordinator, ask)

    def session_producer(self, topic: str, session: str) -> Producer:
        """A producer that publishes through a session which somebody else holds: `open_session`, `producers lead`.

        Raises:
            TopicNotFound, InvalidValue, SessionNotFound, ProducerFenced
        """
        from storage.client import create_producer as producing

        return producing.borrow(self.connection, self.engine.coordinator, topic, session)

    def open_session(
        self,
        topic: str,
        *,
        lease: float = SESSION_LEASE_MS / 1000,
        access_mode: AccessMode | str | None = None,
        producer_name: str | None = None,
        timeout: float | None = None,
        txn: Txn | None = None,
        topic_epoch: int | None = None,
        resume: str | None = None,
        create_topic: bool = False,
        on_wait: OnTurn | None = None,
    ) -> dict[str, Any]:
        """Connect a producer by a lease, for one shell command after the other; its row, with the token as `session`.

        Args:
            lease: seconds that it lives without being used.
            access_mode: Exclusive if None; the rest as `create_producer`.

        Raises:
            as `create_producer`
        """
        from storage.client import connect
        from storage.reports import producers

        ask = connect.ConnectOptions(
            topic, access_mode, name=producer_name, epoch=topic_epoch, resume=resume, spare=txn, lease=lease,
            timeout=timeout, create_topic=create_topic, on_wait=on_wait,
        )  # fmt: skip
        return producers.granted(self.engine, *connect.connect(self.connection, self.engine.coordinator, ask))

    def close_session(
        self, session: str, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """End a session: its topic is free, and who waits for it is next.

        Raises:
            InvalidValue, SessionNotFound
        """
        from storage.reports import producers

        return producers.close_session(self.engine, session, dry_run, reason)

    def show_session(self, session: str) -> dict[str, Any]:
        """The row of one session.

        Raises:
            InvalidValue, SessionNotFound
        """
        from storage.reports import producers

        return producers.show_session(self.engine, session)

    def producer_rows(self, topic: str | None = None) -> list[dict[str, Any]]:
        """The producers that are connected to a topic or wait for it, or to any."""
        from storage.reports import producers

        return producers.rows(self.connection, topic)

    def producer_history(self, topic: str, limit: int = 100) -> list[dict[str, Any]]:
        """Who owned a topic, the newest first."""
        from storage.reports import producers

        return producers.history(self.connection, topic, limit)

    def show_producers(self, topic: str) -> dict[str, Any]:
        """Why a producer can or cannot connect to a topic: epoch, owner, publishers, who waits, and the history."""
        from storage.reports import producers

        return producers.show(self.connection, topic)

    def reader(
        self,
        topic: str,
        *,
        start: Start = EARLIEST,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> Reader:
        """A reader of a topic from `start` on; it leaves nothing behind.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.client.reader import Reader
        from storage.txn.aborted import AbortedSet

        found = self._topic(topic)
        # What readers know of aborted transactions is committed and stays true: they share it.
        aborted = self._aborted_sets.setdefault(found.topic_id, AbortedSet())
        level = named(IsolationLevel, isolation_level, "isolation level") or IsolationLevel.READ_COMMITTED
        return Reader(self.connection, found, start_of(start), level, aborted)

    def subscribe(
        self,
        topic: str,
        subscription_name: str,
        *,
        subscription_type: SubscriptionType | None = None,
        subscription_isolation_level: IsolationLevel | None = None,
        on_open: OnOpen | str | None = None,
        initial_position: Start = LATEST,
        consumer_name: str | None = None,
        receiver_queue_size: int = RECEIVER_QUEUE_SIZE,
        dead_letter_topic: str | None = None,
        max_redeliver_count: int | None = None,
    ) -> Consumer:
        """Attach a consumer to a subscription, which is created if it is missing.

        What is not named is taken from the subscription; a new one is Exclusive and READ_COMMITTED, and stops at open
        transactions.

        Args:
            on_open: `block` or `skip`: whether READ_COMMITTED stops at an open transaction, or, on Shared and
                Key_Shared, delivers what is committed behind it.
            initial_position: where a new subscription begins.
            receiver_queue_size: messages handed out in one store transaction, at the most.
            max_redeliver_count: redeliveries after which a message goes to the dead-letter topic; never if None.

        Raises:
            TopicNotFound, InvalidName
            InvalidValue: skip with another type or level.
            SubscriptionBusy: consumers attached ask for another type, level or on-open, or it is Exclusive.
        """
        from storage.client.consumer import Consumer
        from storage.subscription import attach

        if receiver_queue_size < 1:
            raise InvalidValue(f"a receiver queue holds at least 1 message, not {receiver_queue_size}")
        from storage.subscription.isolation import SubscriptionMode

        mode = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)
        dead_letters = attach.DeadLetterPolicy(dead_letter_topic, max_redeliver_count)
        ask = attach.SubscribeOptions(topic, subscription_name, mode, initial_position, dead_letters)
        attached = attach.attach(self.connection, self.engine.coordinator, ask, consumer_name)
        return Consumer(self.connection, self.engine.coordinator, *attached, receiver_queue_size)

    # Tables

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        from storage.table import catalogue as tables

        with self.connection.view() as view:
            return [table.name for table in tables.every(view)]

    def has_table(self, name: str) -> bool:
        from storage.table import catalogue as tables

        with self.connection.view() as view:
            return tables.find(view, name) is not None

    def create_table(self, name: str) -> None:
        """Create an empty table.

        Raises:
            AlreadyExists, InvalidName
        """
        from storage.table import catalogue as tables

        self.connection.write(lambda batch: tables.create(batch, name))

    def table(self, name: str) -> Table:
        """A table to read and write.

        Raises:
            TableNotFound, InvalidName
        """
        from storage.client.table import Table
        from storage.table import catalogue as tables

        with self.connection.view() as view:
            return Table(self.connection, lambda: self.engine.coordinator, tables.get(view, name))

    def table_rows(self) -> list[dict[str, Any]]:
        """Every table: counts."""
        from storage.table import report as tables

        return tables.table_rows(self.connection)

    def intents(self, table: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """Write intents of one table, or of all: who holds which keys."""
        from storage.table import report as tables

        return tables.intents(self.connection, table, _limit(limit))

    def conflicts(self, limit: int | None = None, table: str | None = None) -> list[dict[str, Any]]:
        """Recent conflicts between transactions over tables, the newest first: winner, loser, key."""
        from storage.table import conflict

        with self.connection.view() as view:
            return conflict.rows(view, _limit(limit), table)

    # Transactions

    def transaction(
        self,
        *,
        timeout: float | None = None,
        labels: dict[str, str] | None = None,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None,
        priority: Priority | str = Priority.MEDIUM,
    ) -> Transaction:
        """Begin a transaction attached to this process: when it dies, the next writer aborts the transaction.

        Args:
            timeout: seconds until its deadline; 10 minutes if None, 24 hours at most.
            isolation: a read-committed one only reads tables, and disturbs nobody.
            check: what a read-committed one does on a write intent; minimal if None.
            priority: who survives when two transactions meet over a key.

        Raises:
            InvalidValue, InvalidName
        """
        from storage.client.transaction import Transaction
        from storage.client.work.handle import Begun

        begun = Begun(_timeout_ms(timeout), labels, TransactionOptions(isolation, check, priority))
        return Transaction.begin(self.connection, self.engine.coordinator, begun)

    def begin(
        self,
        *,
        timeout: float | None = None,
        labels: dict[str, str] | None = None,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None,
        priority: Priority | str = Priority.MEDIUM,
    ) -> TxnID:
        """Begin a detached transaction, which its deadline alone rules: for one shell command after the other.

        Args and raises:
            as `transaction`
        """
        from storage.txn.begin import BeginOptions

        timeout_ms, options = _timeout_ms(timeout), TransactionOptions(isolation, check, priority)
        owner = self.connection.owner
        return self.connection.write(
            lambda batch: self.engine.coordinator.begin(
                batch, owner, 0, BeginOptions(timeout_ms, labels, options)
            )
        ).id

    def use_transaction(self, txn: Txn) -> None:
        """See that a transaction is open and its deadline not passed, before anything is done in it.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionTimedOut
        """
        from storage.client import transaction

        transaction.use(self.connection, self.engine.coordinator, txn)

    def commit(self, txn: Txn) -> bool:
        """Commit a transaction; False if it was committed before.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionTimedOut, LostConflict, RequestTooOld
        """
        from storage.client import transaction

        return transaction.commit(self.connection, self.engine.coordinator, txn)

    def abort(
        self,
        txn: Txn,
        *,
        reason: str | None = None,
        if_version: int | None = None,
        force: bool = False,
        dry_run: bool = False,
        fence: bool = False,
    ) -> dict[str, Any]:
        """Abort a transaction, one of somebody else too; what that changed.

        Args:
            if_version: only if it is still at this version.
            force: also if its owner is alive and used it within the last minute.
            dry_run: change nothing, and say what would change.
            fence: end the sessions of the producers of its messages as well, so that they must connect anew.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionChanged, OwnerAlive
        """
        from storage.admin import abort
        from storage.client.transaction import txn_number

        return abort.run(self.engine, txn_number(txn), reason, if_version, force, dry_run, fence)

    def transactions(
        self, *, ended: bool = False, topic: str | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """The open transactions, oldest first; with `ended` the others, newest first."""
        from storage.reports import transactions

        return transactions.rows(self.engine, ended=ended, topic=topic, limit=_limit(limit))

    def show_transaction(self, txn: Txn) -> dict[str, Any]:
        """All that is known of a transaction.

        Raises:
            TransactionNotFound
        """
        from storage.client.transaction import txn_number
        from storage.reports import transactions

        return transactions.show(self.engine, txn_number(txn))

    def explain_transaction(self, txn: Txn) -> dict[str, Any]:
        """As `show_transaction`, with the evidence that its owner lives, whom it blocks, and what to do about it.

        Raises:
            TransactionNotFound
        """
        from storage.client.transaction import txn_number
        from storage.reports import explain

        return explain.run(self.engine, txn_number(txn))

    def blocked(self, topic: str | None = None) -> list[dict[str, Any]]:
        """The open transactions of a topic, or of all, in the order in which they hold it, with what each frees.

        Raises:
            TopicNotFound
        """
        from storage.reports import timeline

        return timeline.chains(self.connection, topic)

    def slow_transactions(self, over: float = 60.0) -> list[dict[str, Any]]:
        """Transactions open for longer than `over` seconds, the oldest first, with what each holds back."""
        from storage.process.clock import nanoseconds
        from storage.reports import attention

        return attention.slow(self.engine, nanoseconds(over, "an age") // 1_000_000)

    def orphans(self) -> list[dict[str, Any]]:
        """Open transactions whose process is proven dead, with what each holds back."""
        from storage.reports import attention

        return attention.orphans(self.engine)

    def transaction_history(
        self,
        *,
        topic: str | None = None,
        reason: str | None = None,
        since_ms: int | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Transactions that have ended, the one that ended last first.

        Args:
            reason: only those aborted for it: asked, timed-out, owner-dead and so on.
            since_ms: only those that ended then or later.

        Raises:
            TopicNotFound, InvalidValue
        """
        from storage.reports import transactions
        from storage.values.names import named
        from storage.values.txn_state import AbortReason

        wanted = named(AbortReason, reason, "reason")
        return transactions.history(
            self.engine, topic=topic, reason=wanted, since_ms=since_ms, limit=_limit(limit)
        )

    def wait_transaction(self, txn: Txn, timeout: float | None = None) -> dict[str, Any]:
        """Wait until a transaction has ended; as `show_transaction`.

        Raises:
            TransactionNotFound, WaitTimeout
        """
        from storage.client.transaction import txn_number
        from storage.reports import transactions

        return transactions.wait(self.engine, txn_number(txn), timeout)

    def reap(
        self, limit: int = 1000, *, dry_run: bool = False, reason: str | None = None
    ) -> list[dict[str, Any]]:
        """End overdue and orphaned transactions now; what was ended."""
        from storage.reports import transactions

        return transactions.reap(self.engine, limit, dry_run, reason)

    # Reports: each is made by the module of storage/ops that it names

    def topic_rows(self) -> list[dict[str, Any]]:
        """Every topic: positions and counts."""
        from storage.reports import stats

        return stats.topic_rows(self.connection)

    def topic_stats(self, topic: str) -> dict[str, Any]:
        """What `txnctl topics stats` shows, from one view; names as Pulsar's where it has the same thing."""
        from storage.reports import stats

        return stats.topic(self.connection, topic)

    def topic_stats_internal(self, topic: str) -> dict[str, Any]:
        """Ledgers, cursors and segments of the aborted set of a topic."""
        from storage.reports import stats

        return stats.internal(self.connection, topic)

    def timeline(self, topic: str) -> dict[str, Any]:
        """The model of a topic's positions: ledgers, open transactions and what they hold back, cursors.

        Raises:
            TopicNotFound
        """
        from storage.reports import timeline

        return timeline.topic(self.connection, topic)

    def timelines(self) -> list[dict[str, Any]]:
        """The models of all topics, from one view."""
        from storage.reports import timeline

        return timeline.every(self.connection)

    def subscription_stats(self, topic: str, subscription: str) -> dict[str, Any]:
        """One subscription of `topic_stats`."""
        from storage.reports import stats

        return stats.subscription(self.connection, topic, subscription)

    def subscription_rows(self, topic: str | None = None) -> list[dict[str, Any]]:
        """The subscriptions of one topic, or of all."""
        from storage.reports import stats

        return stats.subscription_rows(self.connection, topic)

    def log(self, topic: str, start: Start = EARLIEST, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Every entry of a topic from `start` on, transaction markers too."""
        from storage.reports import browse

        return browse.log(self.connection, topic, start, _limit(limit))

    def last_message_id(
        self,
        topic: str,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
        *,
        subscription: str | None = None,
    ) -> MessageId | None:
        """The largest message visible at a level, or to a subscription at its own; or None."""
        from storage.reports import browse

        return browse.last_message_id(self.connection, topic, isolation_level, subscription)

    def peek(self, topic: str, subscription: str, count: int = 1) -> list[Message]:
        """The next messages that a subscription may be handed, without handing them out."""
        from storage.reports import browse

        return browse.peek(self.connection, topic, subscription, count)

    def position_at(self, topic: str, time_ms: int) -> Position:
        """The first entry published at or after a moment, for a start or a seek by time."""
        from storage.reports import browse

        return browse.position_at(self.connection, topic, time_ms)

    def extents(self, topics: Sequence[str] | None = None) -> list[Extent]:
        """How far these topics reach, or all, at one moment: to read them in parallel.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.of(self.connection, topics)

    def reach(
        self,
        topic: str,
        after: Position,
        through: Position,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
    ) -> Reached:
        """How far one gets after a position, up to another, with so much at the most: whole entries, at least one.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.reach(self.connection, topic, after, through, max_messages, max_bytes)

    def messages_between(
        self,
        topic: str,
        after: Position,
        through: Position,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> int:
        """How many messages a reader is handed after a position, up to another: what it is behind by.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import extents

        return extents.messages_between(self.connection, topic, after, through, isolation_level)

    def audit(self, limit: int | None = None) -> list[dict[str, Any]]:
        """What operators changed, the newest first."""
        from storage.reports import audit

        return audit.rows(self.connection, _limit(limit))

    def overview(self) -> dict[str, Any]:
        """All that `txnctl status`, `doctor` and `check` look at, from one view, with what is wrong as `findings`."""
        from storage.reports import overview

        return overview.run(self.engine)

    def report(self, topics: Sequence[str] | None = None) -> dict[str, Any]:
        """All that `txnctl report` shows, of the whole store or of some topics, from one view; no values, no keys.

        Raises:
            TopicNotFound, InvalidName
        """
        from storage.reports import store_report as report

        return report.run(self.engine, topics)

    def info(self) -> dict[str, Any]:
        """What the store is: format, identity, sizes, counts."""
        from storage.reports import store_info

        return store_info.info(self.connection)

    def locks(self) -> list[dict[str, Any]]:
        """Who holds the writer gate, leases, and the store open."""
        from storage.reports import store_info

        return store_info.locks(self.connection)

    def readers(self) -> list[dict[str, Any]]:
        """LMDB's reader table."""
        from storage.reports import store_info

        return store_info.readers(self.connection)

    def space(self) -> list[dict[str, Any]]:
        """Where the space goes, by database."""
        from storage.reports import store_info

        return store_info.space(self.connection)

    def backup(
        self, destination: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """A compacted copy at `destination`, from one view, while others go on writing.

        Args:
            progress: told bytes written and bytes of the whole file.

        Raises:
            AlreadyExists, StoreFull, StoreInvalid
        """
        from storage.maintenance import backup

        return backup.backup_store(self.engine, os.fspath(destination), progress)

    @classmethod
    def restore(
        cls,
        source: str | os.PathLike[str],
        destination: str | os.PathLike[str],
        *,
        program: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """A new store from a backup: open transactions are aborted, consumers detached, epochs raised.

        Raises:
            AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreFull
        """
        from storage.maintenance.restore import restore_store

        return restore_store(
            os.fspath(source), os.fspath(destination), program=program, progress=progress, dry_run=dry_run,
            reason=reason,
        )  # fmt: skip

    def compact(
        self,
        *,
        progress: Callable[[int, int], None] | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Rewrite the data file without its free pages. Nobody else may have the store open.

        Raises:
            StoreInUse, StoreFull
        """
        from storage.maintenance.compact import compact_store

        return compact_store(self.engine, progress, dry_run, reason)

    def gc(
        self, *, trust_clock: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Free reader slots of dead processes, what was deleted with topics and tables, and versions out of the window.

        Args:
            trust_clock: remove old versions although the wall clock was moved: it was looked at and is right.
        """
        from storage.maintenance.gc import collect_garbage

        return collect_garbage(self.engine, trust_clock, dry_run, reason)

    def verify(
        self,
        *,
        full: bool = True,
        progress: Callable[[str, int], None] | None = None,
        checked: Callable[[int], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Check the invariants of the store; the problems found, none if it is sound.

        Args:
            progress: told what is being checked, and how many records of it more are done.
            checked: told at the end the number of each invariant (docs/SEMANTICS.md) that was checked.
        """
        from storage.verify import run as verify

        return verify.run(self.connection, self.table, full=full, progress=progress, checked=checked)


def _limit(rows: int | None) -> int | None:
    """How many rows at the most; None for all, as is more than there can be.

    Raises:
        InvalidValue
    """
    if rows is not None and rows < 0:
        raise InvalidValue(f"a number of rows is 0 or more, not {rows}")
    return None if rows is None or rows >= 1 << 62 else rows


def _timeout_ms(seconds: float | None) -> int:
    if seconds is None:
        return TRANSACTION_TIMEOUT_MS
    return nanoseconds(seconds, "a transaction's timeout") // 1_000_000
