"""A transaction in the hands of an application.

    with store.transaction(timeout=30) as txn:
        producer.send(b"-100", key="B1", txn=txn)
        producer.send(b"+100", key="B2", txn=txn)
        accounts.put(b"B2", b"100", txn=txn)

The transaction commits when the block ends and aborts when the block raises. It is attached: however the process dies,
the next writer aborts the transaction. Messages and puts are buffered in the process, and are one store transaction
with the commit. A read-committed transaction only reads tables: it has no record and no number, and writes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING

from storage.audit_trail import check_reason
from storage.client.block_end import BlockEnd
from storage.client.same_store import check_same_store
from storage.errors import InvalidTxnId, InvalidValue, StoreClosed, TxnctlError
from storage.txn.options import CheckMode, Priority, TransactionIsolation
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

if TYPE_CHECKING:
    from storage.client.table_reader import ReadCommitted
    from storage.client.work.beginning import BeginRequest
    from storage.client.work.work import Work
    from storage.disk.connection import Connection
    from storage.txn.coordinator import Coordinator


class Transaction(ABC):
    """Made by `Store.transaction`. For one thread at a time.

    Attributes:
        connection: the handle of the store that the transaction was begun through.
        start: the last timestamp issued when a read-committed transaction began; 0 for a serializable one.
        own_work: the work of a serializable transaction; None of one that only reads.
        commits_at_once: within a group too, a commit comes back when it is durable, with the group's queue before it.
    """

    def __init__(self, connection: Connection, request: BeginRequest) -> None:
        self.connection = connection
        self.start = 0
        self.own_work: Work | None = None
        self._options = request.options
        self._aborted_here = False
        self.commits_at_once = False

    @staticmethod
    def begin(connection: Connection, coordinator: Coordinator, request: BeginRequest) -> Transaction:
        """Begin as asked.

        Raises:
            InvalidValue, InvalidName
        """
        if request.options.isolation is not TransactionIsolation.SERIALIZABLE:
            from storage.client.read_committed import ReadCommittedTransaction

            return ReadCommittedTransaction(connection, request)
        from storage.client.work.work import begin_work

        work = begin_work(connection, coordinator, request)
        return SerializableTransaction(connection, work, request)

    @property
    @abstractmethod
    def work(self) -> Work:
        """The work of the transaction in this process.

        Raises:
            ReadOnlyTransaction: a read-committed transaction only reads.
        """

    def work_in(self, connection: Connection) -> Work:
        """The work of the transaction, for an object that was made through a connection.

        Raises:
            InvalidValue: the object is of a different store.
            ReadOnlyTransaction: a read-committed transaction only reads.
        """
        if connection is not self.connection:
            check_same_store(connection, self.connection)
        return self.work

    @property
    def id(self) -> TxnID:
        """The number, for any process. The buffers are written, and nothing is buffered afterwards.

        Where the store is closed, or unusable after an unknown outcome, the number by which to ask for the outcome. A
        first commit that was lost gave its number to nobody: no transaction has it, or one of another owner.

        Raises:
            ReadOnlyTransaction: a read-committed transaction has none.
            WriteTooOld, LostConflict, RequestTooOld, ProducerFenced, SequenceConflict: as `flush`
            StoreClosed: the store is closed, and the transaction has no number.
        """
        try:
            return TxnID(self.work.share())
        except StoreClosed:
            if not self.work.txn_id_in_doubt:
                raise
            return TxnID(self.work.txn_id_in_doubt)

    @property
    @abstractmethod
    def known_id(self) -> TxnID | None:
        """The number if the transaction has one by now; nothing is written for the answer."""

    @property
    def number(self) -> int:
        """The number, for this process. Buffered messages are stored; puts stay buffered.

        Raises:
            ReadOnlyTransaction, and as `Producer.flush`
        """
        return self.work.number()

    @property
    def is_readable(self) -> bool:
        """Whether the transaction is read-committed, and has neither ended nor passed its deadline."""
        return False

    @property
    def isolation(self) -> TransactionIsolation:
        return self._options.isolation

    @property
    def check(self) -> CheckMode | None:
        """The treatment of an intent by a read; None for a serializable transaction, which pushes."""
        return self._options.check

    @property
    def priority(self) -> Priority:
        return self._options.priority

    @property
    def timestamp(self) -> int:
        """At which the transaction reads tables, and the version of all its writes.

        Raises:
            ReadOnlyTransaction: a read-committed transaction has none.
        """
        return self.work.known_timestamp()

    @property
    def message_bound(self) -> int | None:
        """Only messages readable at this timestamp are received for the transaction; None: any message.

        Raises:
            ReadOnlyTransaction
        """
        return self.work.message_bound

    @property
    @abstractmethod
    def state(self) -> TransactionState:
        """The state now."""

    @abstractmethod
    def table_reader(self, connection: Connection, check: CheckMode | None) -> Work | ReadCommitted:
        """Reads tables in the transaction, through a connection to the same store.

        Raises:
            InvalidValue: a check mode in a serializable transaction, or a connection to a different store.
            TransactionNotOpen: a read-committed transaction that has ended.
        """

    @abstractmethod
    def flush(self) -> None:
        """Write the buffered messages, and the intents of the buffered puts. Conflicts show here.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld, ProducerFenced: the transaction is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound: nothing was written, and all stays buffered.
            TransactionNotOpen, TransactionTimedOut, WriterBusy, StoreFull
        """

    def commit(self) -> None:
        """Make everything visible at one instant; repeating it succeeds. Within a group, queue that; see `EndGroup`.

        Raises:
            TransactionNotOpen: the transaction was aborted; the message gives time, reason and process.
            WriteTooOld, LostConflict, RequestTooOld: a conflict over a table was lost; run the transaction again.
            ProducerFenced: a producer that has sent in the transaction has lost its topic; it is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound: nothing was written, and the transaction is open still.
            TransactionTimedOut, WriterBusy, StoreFull
        """
        self.commit_now()

    @abstractmethod
    def commit_now(self) -> bool:
        """Commit, as `commit`; False if the transaction was committed before."""

    def abort(self, reason: str | None = None) -> None:
        """Drop everything; repeating it succeeds.

        Raises:
            TransactionNotOpen: the transaction was committed.
            InvalidValue: the reason cannot be recorded.
            WriterBusy: the transaction is open still, with all that was done in it; abort it again.
        """
        check_reason(reason)
        self._abort(reason)
        self._aborted_here = True

    @abstractmethod
    def _abort(self, reason: str | None) -> None:
        """Abort, with a reason that is checked."""

    def __enter__(self) -> Transaction:
        return self

    def _end_block(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._give_up(kind, "in the program")
        elif not self._aborted_here:
            try:
                self.commit_now()
            except Exception:
                raise  # A refused commit may be repeated; an interrupted one leaves nothing open behind the block.
            except BaseException as interrupt:
                self._give_up(type(interrupt), "in its commit")
                raise

    @abstractmethod
    def _abandon(self) -> None:
        """Have the transaction aborted soon, if it is open: the end of its block was cut off."""

    __exit__ = BlockEnd(_end_block, lambda txn: txn._abandon())

    def _give_up(self, kind: type[BaseException], where: str) -> None:
        """Abort over an exception. An interrupt is raised as such even where the store is too busy to abort.

        So is an unknown outcome, after which the handle aborts nothing any more.
        """
        with suppress(StoreClosed if issubclass(kind, Exception) else TxnctlError):
            if self.state is TransactionState.OPEN:
                self.abort(f"{kind.__name__} {where}")


class SerializableTransaction(Transaction):
    """Reads and writes tables, sends and acknowledges; see `Work`."""

    work: Work = None  # type: ignore[assignment]
    is_readable = False

    def __init__(self, connection: Connection, work: Work, request: BeginRequest) -> None:
        super().__init__(connection, request)
        self.work = self.own_work = work

    @property
    def known_id(self) -> TxnID | None:
        return TxnID(self.work.txn_id) if self.work.txn_id else None

    @property
    def state(self) -> TransactionState:
        return self.work.state

    def table_reader(self, connection: Connection, check: CheckMode | None) -> Work:
        if check is not None:
            raise InvalidValue("a serializable transaction has no check mode")
        return self.work if connection is self.connection else self.work_in(connection)

    def flush(self) -> None:
        self.work.flush_buffers()

    def commit_now(self) -> bool:
        return self.work.commit(self, may_queue=not self.commits_at_once)

    def _abort(self, reason: str | None) -> None:
        self.work.abort(reason)

    def _abandon(self) -> None:
        self.work.abandon()

    def __str__(self) -> str:
        return str(self.id)


def use(connection: Connection, coordinator: Coordinator, txn: Transaction | TxnID | str) -> None:
    """See that a transaction is open, however it is named; see `Store.use_transaction`."""
    txn_id, owner = txn_number(connection, txn), connection.identity
    connection.write(lambda batch: coordinator.use(batch, txn_id, owner), naming=txn_id)


def commit(connection: Connection, coordinator: Coordinator, txn: Transaction | TxnID | str) -> bool:
    """Commit a transaction, however it is named; see `Store.commit`."""
    if isinstance(txn, Transaction):
        check_same_store(connection, txn.connection)
        return txn.commit_now()
    from storage.table.write import commit_in

    txn_id, owner = txn_number(connection, txn), connection.identity
    return not connection.write(
        lambda batch: commit_in(coordinator, batch, txn_id, owner), naming=txn_id
    ).already


def txn_number(connection: Connection, txn: Transaction | TxnID | str) -> int:
    """The number, in the store of a connection, of a transaction, however the transaction is named.

    Raises:
        InvalidTxnId
        InvalidValue: a transaction object of a different store.
        ReadOnlyTransaction: a read-committed transaction of this process has none.
    """
    if isinstance(txn, Transaction):
        check_same_store(connection, txn.connection)
        return txn.number
    if isinstance(txn, TxnID) and txn.most == 0 and 0 < txn.least < 1 << 63:
        return txn.least
    if isinstance(txn, str):
        return TxnID.parse(txn).least
    raise InvalidTxnId(f"{txn!r} is not a transaction")
