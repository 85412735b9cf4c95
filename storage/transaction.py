"""A transaction as an application holds it.

    with store.transaction(timeout=30) as txn:
        producer.send(b"-100", key="B1", txn=txn)
        producer.send(b"+100", key="B2", txn=txn)

It commits when the block ends and aborts when the block raises. It is attached: if the process dies, however, the
next writer aborts it.
"""

from __future__ import annotations

from storage.connection import Connection
from storage.errors import InvalidTxnId
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn_id import TxnID
from storage.txn_state import AbortReason, TransactionState


class Transaction:
    """Made by `Store.transaction`. For one thread at a time."""

    def __init__(self, connection: Connection, coordinator: Coordinator, txn_id: TxnID) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self.id = txn_id
        self._aborted_here = False

    @property
    def state(self) -> TransactionState:
        """Its state now."""
        with self._connection.view() as view:
            return records.state_of(view, self.id.least)

    def commit(self) -> None:
        """Make everything visible at one instant; repeating it succeeds.

        Raises:
            TransactionNotOpen: it was aborted; the message says when, why and by whom.
            TransactionTimedOut, WriterBusy
        """
        owner = self._connection.owner
        self._connection.write(
            lambda batch: self._coordinator.commit(batch, self.id.least, owner), naming=self.id.least
        )

    def abort(self, reason: str | None = None) -> None:
        """Drop everything; repeating it succeeds.

        Raises:
            TransactionNotOpen: it was committed.
            WriterBusy
        """
        owner = self._connection.owner
        self._connection.write(
            lambda batch: self._coordinator.abort(batch, self.id.least, owner, AbortReason.ASKED, reason),
            naming=self.id.least,
        )
        self._aborted_here = True

    def __str__(self) -> str:
        return str(self.id)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            if not self._aborted_here:
                self.commit()
        elif self.state is TransactionState.OPEN:
            self.abort(f"{kind.__name__} in the program")


def txn_number(txn: Transaction | TxnID | str) -> int:
    """The number of a transaction however it is named.

    Raises:
        InvalidTxnId
    """
    if isinstance(txn, Transaction):
        return txn.id.least
    if isinstance(txn, TxnID) and txn.most == 0 and 0 < txn.least < 1 << 63:
        return txn.least
    if isinstance(txn, str):
        return TxnID.parse(txn).least
    raise InvalidTxnId(f"{txn!r} is not a transaction")
