"""A transaction as an application holds it.

    with store.transaction(timeout=30) as txn:
        producer.send(b"-100", key="B1", txn=txn)
        producer.send(b"+100", key="B2", txn=txn)
        accounts.put(b"B2", b"100", txn=txn)

It commits when the block ends and aborts when the block raises. It is attached: if the process dies, however, the
next writer aborts it. What it sends and puts is kept in the process, and is one store transaction with the commit. A
read-committed one only reads tables: it has no record, no number, and writes nothing at all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from storage.audit_trail import check_reason
from storage.errors import InvalidTxnId, TransactionNotOpen, TxnctlError
from storage.txn.errors import read_only
from storage.txn.options import CheckMode, Priority, TransactionIsolation
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

if TYPE_CHECKING:
    from storage.client.work.handle import Begun
    from storage.client.work.write_set import TableWork
    from storage.disk.connection import Connection
    from storage.txn.coordinator import Coordinator


class Transaction:
    """Made by `Store.transaction`. For one thread at a time.

    Attributes:
        work: what it does in tables; None for a read-committed one.
        start: the last timestamp that was issued when a read-committed one began; 0 for others.
        is_open_reader: whether it is read-committed and has not ended.
    """

    def __init__(self, begun: Begun, work: TableWork | None, start: int = 0) -> None:
        self._begun = begun
        self._read_only_state = TransactionState.OPEN
        self._aborted_here = False
        self.work = work
        self.start = start
        self.is_open_reader = work is None

    @classmethod
    def begin(cls, connection: Connection, coordinator: Coordinator, begun: Begun) -> Transaction:
        """Begin as asked.

        Raises:
            InvalidValue, InvalidName
        """
        if begun.options.isolation is TransactionIsolation.SERIALIZABLE:
            from storage.client.work.write_set import TableWork

            return cls(begun, TableWork.begin(connection, coordinator, begun))
        with connection.view() as view:
            issued = connection.environment.read_cache.peek_issued(view.superblock)
            return cls(begun, None, max(view.superblock.last_timestamp, issued))

    @property
    def id(self) -> TxnID:
        """Its number, by which others may use it: what it kept in this process is written, nothing is kept after it.

        Raises:
            ReadOnlyTransaction: a read-committed transaction has none.
            WriteTooOld, LostConflict, RequestTooOld, ProducerFenced, SequenceConflict: as `flush`
        """
        work = work_of(self)
        work.share()
        return TxnID(work.txn_id)

    @property
    def known_id(self) -> TxnID | None:
        """Its number if it has one by now; nothing is written for the answer."""
        return TxnID(self.work.txn_id) if self.work is not None and self.work.txn_id else None

    @property
    def number(self) -> int:
        """Its number for this process: what it has sent is written; its puts, and what comes, are still kept here.

        Raises:
            ReadOnlyTransaction, and as `Producer.flush`
        """
        return work_of(self).number()

    @property
    def isolation(self) -> TransactionIsolation:
        return self._begun.options.isolation

    @property
    def check(self) -> CheckMode | None:
        """What its reads do on an intent; None for a serializable one, which pushes."""
        return self._begun.options.check

    @property
    def priority(self) -> Priority:
        return self._begun.options.priority

    @property
    def timestamp(self) -> int:
        """At which it reads tables, and the version of all that it writes.

        Raises:
            ReadOnlyTransaction: a read-committed transaction has none.
        """
        return work_of(self).known_timestamp()

    @property
    def message_bound(self) -> int | None:
        """Messages are received for it only if they were there to be read at this timestamp; None: whichever."""
        return work_of(self).message_bound

    @property
    def state(self) -> TransactionState:
        """Its state now."""
        return self._read_only_state if self.work is None else self.work.state

    def flush(self) -> None:
        """Write what it keeps in this process: its messages, and the intents of its puts. Conflicts show here.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld, ProducerFenced: it is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound: nothing was written, and all is kept.
            TransactionNotOpen, TransactionTimedOut, WriterBusy, StoreFull
        """
        if self.work is not None:
            self.work.flush()

    def commit(self) -> None:
        """Make everything visible at one instant; repeating it succeeds.

        Raises:
            TransactionNotOpen: it was aborted; the message says when, why and by whom.
            WriteTooOld, LostConflict, RequestTooOld: it lost a conflict over a table and is aborted; run it again.
            ProducerFenced: a producer that has sent in it has lost its topic; it is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound: nothing was written, and it is open still.
            TransactionTimedOut, WriterBusy, StoreFull
        """
        if self.work is not None:
            self.work.commit()
        else:
            self._end_reader(TransactionState.COMMITTED, "committed")

    def abort(self, reason: str | None = None) -> None:
        """Drop everything; repeating it succeeds.

        Raises:
            TransactionNotOpen: it was committed.
            InvalidValue: the reason cannot be kept.
            WriterBusy: it is open still, with all that was done in it; abort it again.
        """
        check_reason(reason)
        if self.work is not None:
            self.work.abort(reason)
        else:
            self._end_reader(TransactionState.ABORTED, "aborted")
        self._aborted_here = True

    def _end_reader(self, asked: TransactionState, word: str) -> None:
        """End a read-committed transaction: of this process alone, so that nothing is written."""
        if self._read_only_state not in (TransactionState.OPEN, asked):
            raise reader_not_open(word, self._read_only_state)
        self._read_only_state, self.is_open_reader = asked, False

    def __str__(self) -> str:
        return "(read-committed)" if self.work is None else str(self.id)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._give_up(kind, "in the program")
        elif not self._aborted_here:
            self._commit_or_leave_nothing()

    def _commit_or_leave_nothing(self) -> None:
        """Commit. One that is refused may be repeated; one that is interrupted leaves nothing open behind the block."""
        try:
            self.commit()
        except Exception:
            raise
        except BaseException as interrupt:
            self._give_up(type(interrupt), "in its commit")
            raise

    def _give_up(self, kind: type[BaseException], where: str) -> None:
        """Abort over an exception. An interrupt is raised as such also where the store is too busy to abort in."""
        hidden = () if issubclass(kind, Exception) else (TxnctlError,)
        with suppress(*hidden):
            if self.state is TransactionState.OPEN:
                self.abort(f"{kind.__name__} {where}")


def use(connection: Connection, coordinator: Coordinator, txn: Transaction | TxnID | str) -> None:
    """See that a transaction is open, however it is named; see `Store.use_transaction`."""
    txn_id, owner = txn_number(txn), connection.owner
    connection.write(lambda batch: coordinator.use(batch, txn_id, owner), naming=txn_id)


def commit(connection: Connection, coordinator: Coordinator, txn: Transaction | TxnID | str) -> bool:
    """Commit a transaction, however it is named; see `Store.commit`."""
    if isinstance(txn, Transaction):
        if txn.work is None:
            was_open = txn.is_open_reader
            txn.commit()
            return was_open
        ended = txn.work.commit()
        return ended is None or not ended.already
    from storage.table.write import commit_in

    txn_id, owner = txn_number(txn), connection.owner
    return not connection.write(
        lambda batch: commit_in(coordinator, batch, txn_id, owner), naming=txn_id
    ).already


def work_of(txn: Transaction) -> TableWork:
    """What a transaction does, and keeps, in this process.

    Raises:
        ReadOnlyTransaction: a read-committed transaction only reads.
    """
    if txn.work is None:
        raise read_only("(read-committed)")
    return txn.work


def reader_not_open(asked: str, state: TransactionState) -> TransactionNotOpen:
    """The error for what only an open read-committed transaction of this process can do."""
    return TransactionNotOpen(
        f"this read-committed transaction cannot be {asked}: it was {state.value.lower()}",
        hint="Begin a new one.",
        state=state.value,
    )


def txn_number(txn: Transaction | TxnID | str) -> int:
    """The number of a transaction however it is named.

    Raises:
        InvalidTxnId
        ReadOnlyTransaction: a read-committed transaction of this process has none.
    """
    if isinstance(txn, Transaction):
        return txn.number
    if isinstance(txn, TxnID) and txn.most == 0 and 0 < txn.least < 1 << 63:
        return txn.least
    if isinstance(txn, str):
        return TxnID.parse(txn).least
    raise InvalidTxnId(f"{txn!r} is not a transaction")
