"""Runs an interleaving on a real store, in one process: a handle of its own for each transaction.

detached  begun by one call and named by its id; every put is an intent at once
attached  kept in the process as far as it goes; puts are judged at the commit
flushed   attached, and every put is written at once
"""

from __future__ import annotations

from collections.abc import Callable

from storage import Store, Transaction, TransactionState, TxnctlError, TxnID
from storage.process.clock import Clock
from tests.row_json import row_json
from tests.storage.table.history import Get, Operation, Put, Recorded, Scan
from tests.storage.table.interleavings import START, Row

KINDS = ("detached", "attached", "flushed")
SHOWN_NOTHING = "ok"


class Running:
    """One transaction, through a handle of its own."""

    def __init__(self, store: Store, table: str, name: str, kind: str, **options: object) -> None:
        self._store = store
        self._table = store.table(table)
        self._is_flushed = kind == "flushed"
        begin: Callable[..., TxnID | Transaction] = (
            store.begin_transaction if kind == "detached" else store.transaction
        )
        self.name = name
        self.txn = begin(**options)
        self.operations: list[Operation] = []

    def step(self, verb: str, *words: str) -> str:
        """Do it; what it comes to, in the words of the interleavings."""
        try:
            return getattr(self, f"_{verb}")(*words) or SHOWN_NOTHING
        except TxnctlError as error:
            return f"!{error.code}"

    def _get(self, key: str) -> str:
        row = self._table.get_row(key.encode(), txn=self.txn)
        value = None if row is None else row.value.decode()
        self.operations.append(Get(key, row.version if row else 0, value))
        return value or "-"

    def _scan(self) -> str:
        rows = [Get(r.key.decode(), r.version, r.value.decode()) for r in self._table.scan(txn=self.txn)]
        self.operations.append(Scan("", None, rows))
        return " ".join(f"{row.key}={row.value}" for row in rows)

    def _put(self, key: str, value: str) -> None:
        self._table.put(key.encode(), value.encode(), txn=self.txn)
        self.operations.append(Put(key, value))
        if self._is_flushed:
            assert isinstance(self.txn, Transaction), "only an attached one is flushed"
            self.txn.flush()

    def _commit(self) -> None:
        if isinstance(self.txn, Transaction):
            self.txn.commit()
        else:
            self._store.commit_transaction(self.txn)

    def _abort(self) -> None:
        if isinstance(self.txn, Transaction):
            self.txn.abort()
        else:
            self._store.admin.transactions.abort_transaction(self.txn)

    def recorded(self) -> Recorded:
        """What it did, and whether it committed."""
        shown = row_json(self._store.reports.show_transaction(self.txn))
        is_committed = shown["state"] == TransactionState.COMMITTED.value
        return Recorded(self.name, int(shown["timestamp"]), is_committed, self.operations)


class Interleaved:
    """The transactions of one interleaving over one fresh table."""

    def __init__(self, path: str, clock: Clock, table: str) -> None:
        self._path = path
        self._clock = clock
        self._name = table
        self._handles: list[Store] = []
        store = self._open()
        store.create_table(table)
        self._table = store.table(table)
        with store.transaction() as first:
            for key, value in START.items():
                self._table.put(key.encode(), value.encode(), txn=first)
        self._first = Recorded("T0", first.timestamp, True, [Put(key, value) for key, value in START.items()])
        self.running: dict[str, Running] = {}

    def _open(self) -> Store:
        self._handles.append(Store.open(self._path, clock=self._clock))
        return self._handles[-1]

    def begin(self, name: str, kind: str, **options: object) -> None:
        self.running[name] = Running(self._open(), self._name, name, kind, **options)

    def run(self, rows: list[Row]) -> list[str]:
        """All steps; what each came to."""
        return [self.running[row.txn].step(*row.words) for row in rows]

    def end(self) -> str:
        """What stands in the table for everybody."""
        return " ".join(f"{row.key.decode()}={row.value.decode()}" for row in self._table.scan())

    def recorded(self) -> list[Recorded]:
        return [self._first, *(each.recorded() for each in self.running.values())]

    def close(self) -> None:
        for handle in self._handles:
            handle.close()
