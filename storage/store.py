"""Open a store, and make producers, consumers, readers, tables and transactions from the store.

    from storage import Store

    with Store.open("bank.store") as store:
        producer = store.create_producer("requests")
        producer.send(b"+100", key="B1")

This module only wires: each method is one call into the module that does the work, which is loaded on use. Any number
of threads may use one Store; an object made from the store is for one thread at a time. After a fork the child must
open the store anew.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from storage.client.run_transaction import TransactionRunner
from storage.engine import Engine
from storage.limits import LOCK_TIMEOUT_S, RECEIVER_QUEUE_SIZE, SESSION_LEASE_MS
from storage.maintenance.store_maker import StoreMaker
from storage.process.clock import SYSTEM_CLOCK, Clock
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionMode, SubscriptionType
from storage.topic import catalogue as topics
from storage.topic.producers.access_mode import AccessMode
from storage.txn.options import CheckMode, Priority, TransactionIsolation, options_of
from storage.values.arguments import check_count, check_flags
from storage.values.durability import Durability
from storage.values.names import named
from storage.values.position import EARLIEST, LATEST, Extreme, MessageId, Position, start_of
from storage.values.txn_id import TxnID

if TYPE_CHECKING:
    from storage.admin.admin import Admin
    from storage.client.connect_options import OnTurn
    from storage.client.consumer import Consumer
    from storage.client.producer import Producer
    from storage.client.reader import Reader
    from storage.client.table import Table
    from storage.client.transaction import Transaction
    from storage.maintenance.maintenance import Maintenance
    from storage.process.writer_gate import OnWait
    from storage.reports.producers import SessionRow
    from storage.reports.reports import Reports
    from storage.txn.aborted import AbortedSet

    Start = Position | MessageId | Extreme
    Txn = Transaction | TxnID | str


class Store(TransactionRunner, StoreMaker):
    """An open store. Made by `Store.open`."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.connection = engine, engine.connection
        self._aborted_sets: dict[int, AbortedSet] = {}

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, durability: Durability | str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:  # fmt: skip
        """Create an empty store at `path`, atomically.

        Args:
            durability: where a change is stored before it is acknowledged: `local`, on the disk of one machine, or
                `replicated`, on a synchronous standby too. None is `local` for a directory. On a server None is
                `replicated`: a server without a synchronous standby is refused.

        Raises:
            AlreadyExists: the path exists, and is left unchanged.
            InvalidValue, StoreUnsafe, NotPermitted, StoreFull, ServerUnreachable
        """
        from storage.disk import stores

        stores.create(os.fspath(path), clock, named(Durability, durability, "durability"))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, read_only: bool = False, lock_timeout: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None, program: str | None = None, clock: Clock = SYSTEM_CLOCK,
    ) -> Store:  # fmt: skip
        """Open an existing store.

        Args:
            read_only: never write, not even to end overdue transactions.
            lock_timeout: seconds to wait for the writer gate.
            on_wait: called once per wait, after a second, with the holder in words and the seconds waited.
            program: the name of this program as other processes see it.

        Raises:
            StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreUnsafe, NotPermitted, StoreInUse
        """
        return cls(Engine.open(
            path, read_only=read_only, lock_timeout=lock_timeout, on_wait=on_wait, program=program, clock=clock
        ))  # fmt: skip

    def close(self) -> None:
        """Close the store. The next writer ends open consumers and transactions, as after the death of the process."""
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
        """The id and incarnation of the store: restoring a backup makes another incarnation."""
        from storage.reports.store_info import identity

        return identity(self.connection)

    @cached_property
    def reports(self) -> Reports:
        """Read-only answers, each from one view."""
        from storage.reports.reports import Reports

        return Reports(self.engine)

    @cached_property
    def admin(self) -> Admin:
        """Audited changes by operators: delete, seek, skip, evict, abort and the like."""
        from storage.admin.admin import Admin

        return Admin(self.engine)

    @cached_property
    def maintenance(self) -> Maintenance:
        """Verification, backup, compaction, upgrade and garbage collection."""
        from storage.maintenance.maintenance import Maintenance

        return Maintenance(self.engine)

    # Topics

    def topics(self) -> list[str]:
        """The names of all topics, in order."""
        with self.connection.view() as view:
            return [topic.name for topic in topics.every(view)]

    def has_topic(self, name: str) -> bool:
        with self.connection.view() as view:
            return topics.find(view, name) is not None

    def create_topic(
        self, name: str, *, ledger_entries_max: int | None = None, ledger_bytes_max: int | None = None,
        ledger_age_max_ms: int | None = None,
    ) -> None:  # fmt: skip
        """Create an empty topic.

        Args:
            ledger_entries_max, ledger_bytes_max, ledger_age_max_ms: when the open ledger rolls over.

        Raises:
            AlreadyExists, InvalidName, InvalidValue
        """
        limits = topics.LedgerLimits(ledger_entries_max, ledger_bytes_max, ledger_age_max_ms)
        self.connection.write(lambda batch: topics.create(batch, name, limits))

    # Producing and reading

    def create_producer(
        self, topic: str, *, producer_name: str | None = None, access_mode: AccessMode | str | None = None,
        timeout: float | None = None, txn: Txn | None = None, topic_epoch: int | None = None,
        resume: str | None = None, connected: bool = True, create_topic: bool = False,
        create_late: bool = False, on_wait: OnTurn | None = None,
    ) -> Producer:  # fmt: skip
        """Connect a producer to a topic, until the producer is closed or this process dies.

        Args:
            producer_name: the name under which sequence ids are deduplicated; a new unique name if None.
            access_mode: Shared if None (PIP-68).
            timeout: seconds that WaitForExclusive waits for its turn; None waits for ever.
            txn: an open transaction that is not fenced when the producer becomes the owner, but goes on with it.
            topic_epoch: the epoch of the previous connection, which must still be the epoch of the topic.
            resume: the previous session's token. Its epoch is resumed unless another producer owned or produced since.
            connected: False, for Shared only, connects during each send instead.
            create_topic, create_late: create a missing topic, now or with the first message, which then connects.
            on_wait: called once with the producers before this one, if the producer has to wait.

        Raises:
            TopicNotFound, InvalidName, InvalidValue
            ProducerBusy: a producer is connected, waits, or has this name.
            ProducerFenced: the epoch or session is over.
            WaitTimeout
        """
        check_flags(connected=connected, create_topic=create_topic, create_late=create_late)
        from storage.client import connect_options as connecting, create_producer as producing, transaction

        spare = 0 if txn is None else transaction.txn_number(self.connection, txn)
        mode = connecting.access_mode_of(access_mode, AccessMode.SHARED)
        request = connecting.access_request(mode, producer_name, topic_epoch, resume, spare)
        waiting = connecting.WaitOptions(timeout, on_wait)
        options = connecting.ConnectOptions(topic, request, waiting, create_topic=create_topic)
        options.create_late = create_late
        create = producing.create if connected else producing.create_passing
        return create(self.connection, self.engine.coordinator, options)

    def session_producer(self, topic: str, session: str) -> Producer:
        """Make a producer that publishes through a session of `open_session` or `producers lead`.

        Raises:
            TopicNotFound, InvalidValue, SessionNotFound, ProducerFenced
        """
        from storage.client import create_producer as producing

        return producing.borrow(self.connection, self.engine.coordinator, topic, session)

    def open_session(
        self, topic: str, *, lease: float = SESSION_LEASE_MS / 1000,
        access_mode: AccessMode | str | None = None, producer_name: str | None = None,
        timeout: float | None = None, txn: Txn | None = None, topic_epoch: int | None = None,
        resume: str | None = None, create_topic: bool = False, on_wait: OnTurn | None = None,
    ) -> SessionRow:  # fmt: skip
        """Connect a producer by a lease instead of a process, and return its row, with the token as `session`.

        Args:
            lease: seconds that the session lives without being used.
            access_mode: Exclusive if None. The rest, and the errors, as `create_producer`.
        """
        from storage.client import admission_wait, connect_options as connecting, transaction
        from storage.reports import producers

        spare = 0 if txn is None else transaction.txn_number(self.connection, txn)
        mode = connecting.access_mode_of(access_mode, AccessMode.EXCLUSIVE)
        request = connecting.access_request(mode, producer_name, topic_epoch, resume, spare)
        waiting = connecting.WaitOptions(timeout, on_wait)
        options = connecting.ConnectOptions(topic, request, waiting, create_topic=create_topic, lease=lease)
        granted = admission_wait.connect(self.connection, self.engine.coordinator, options)
        return producers.granted(self.engine, *granted)

    def reader(
        self, topic: str, *, start: Start = EARLIEST,
        isolation_level: IsolationLevel | str = IsolationLevel.READ_COMMITTED, read_compacted: bool = False,
    ) -> Reader:  # fmt: skip
        """Make a reader from `start` on, of the compacted view first if asked. A reader leaves nothing in the store.

        Raises:
            TopicNotFound, InvalidName, InvalidValue
        """
        from storage.client.reader import Reader
        from storage.txn.aborted import AbortedSet

        with self.connection.view() as view:
            entry = topics.get(view, topic)
        # An aborted transaction stays aborted, so that all readers of a topic share one set.
        aborted = self._aborted_sets.setdefault(entry.topic_id, AbortedSet())
        level = named(IsolationLevel, isolation_level, "isolation level") or IsolationLevel.READ_COMMITTED
        return Reader(self.connection, entry, start_of(start), level, aborted, read_compacted=read_compacted)

    def subscribe(
        self, topic: str, subscription_name: str, *, subscription_type: SubscriptionType | None = None,
        subscription_isolation_level: IsolationLevel | None = None, on_open: OnOpen | str | None = None,
        initial_position: Start = LATEST, consumer_name: str | None = None,
        receiver_queue_size: int = RECEIVER_QUEUE_SIZE, dead_letter_topic: str | None = None,
        max_redeliver_count: int | None = None, read_compacted: bool = False,
    ) -> Consumer:  # fmt: skip
        """Attach a consumer to a subscription, which is created if missing.

        None means as the subscription has it; a new subscription is Exclusive, READ_COMMITTED, and blocks.

        Args:
            on_open: `block` or `skip`: whether READ_COMMITTED stops at an open transaction or, on Shared and
                Key_Shared, delivers committed messages behind it.
            initial_position: the start of a new subscription.
            receiver_queue_size: most messages delivered in one store transaction.
            max_redeliver_count: redeliveries after which a message goes to the dead-letter topic; never if None.
            read_compacted: as `reader` has it, on Exclusive and Failover; messages compacted away are acknowledged.

        Raises:
            TopicNotFound, InvalidName
            InvalidValue: skip with another type or level.
            SubscriptionBusy: attached consumers have another type, level or on-open, or the type is Exclusive.
        """
        from storage.client.attachment import Attachment
        from storage.client.consumer import Consumer
        from storage.subscription import attach

        check_count("the size of a receiver queue", receiver_queue_size, 1)
        mode = SubscriptionMode(subscription_type, subscription_isolation_level, on_open)
        dead_letters = attach.DeadLetterPolicy(dead_letter_topic, max_redeliver_count)
        options = attach.SubscribeOptions(topic, subscription_name, mode, initial_position, dead_letters)
        options.reads_compacted = read_compacted
        attached = attach.attach(self.connection, self.engine.coordinator, options, consumer_name)
        return Consumer(Attachment(self.connection, self.engine.coordinator, *attached), receiver_queue_size)

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

    def table(self, name: str, *, create: bool = False) -> Table:
        """Open a table to read and write; with `create` a missing table is created by the first write, in its commit.

        Raises:
            TableNotFound, InvalidName
        """
        from storage.client.table import Table

        return Table.open(self.engine, name, create=create)

    # Transactions

    def transaction(
        self, *, timeout: float | None = None, labels: dict[str, str] | None = None,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None, priority: Priority | str = Priority.MEDIUM,
    ) -> Transaction:  # fmt: skip
        """Begin a transaction attached to this process: when it dies, the next writer aborts the transaction.

        Args:
            timeout: seconds until the deadline; 10 minutes if None, 24 hours at most.
            isolation: read-committed only reads tables, and never conflicts.
            check: the handling of write intents by read-committed; minimal if None.
            priority: decides which of two transactions in conflict over a key is aborted.

        Raises:
            InvalidValue, InvalidName
        """
        from storage.client.transaction import Transaction
        from storage.client.work.beginning import request_of

        request = request_of(timeout, labels, options_of(isolation, check, priority))
        return Transaction.begin(self.connection, self.engine.coordinator, request)

    def begin_transaction(
        self, *, timeout: float | None = None, labels: dict[str, str] | None = None,
        isolation: TransactionIsolation | str = TransactionIsolation.SERIALIZABLE,
        check: CheckMode | str | None = None, priority: Priority | str = Priority.MEDIUM,
    ) -> TxnID:  # fmt: skip
        """Begin a detached transaction, which only the deadline ends: for a series of shell commands.

        Args and raises as `transaction`.
        """
        from storage.txn.begin import NewTransaction, timeout_ms_of

        new = NewTransaction(timeout_ms_of(timeout), labels, options_of(isolation, check, priority))
        coordinator, process = self.engine.coordinator, self.connection.identity
        return self.connection.write(lambda batch: coordinator.begin(batch, process, 0, new)).id

    def use_transaction(self, txn: Txn) -> None:
        """Check that a transaction is open and its deadline not passed, before work in the transaction.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionTimedOut
        """
        from storage.client import transaction

        transaction.use(self.connection, self.engine.coordinator, txn)

    def commit_transaction(self, txn: Txn) -> bool:
        """Commit a transaction; return False if the transaction was committed before.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionTimedOut, LostConflict, RequestTooOld
        """
        from storage.client import transaction

        return transaction.commit(self.connection, self.engine.coordinator, txn)
