"""Stores in memory that control nothing, on which anomalies happen: what the checker of histories is tested with.

dirty      writes in place; whoever reads sees what was written last, by whomever
committed  writes at commit; each read sees what was committed last
snapshot   writes at commit; reads are of what was committed at begin; nobody looks whether others wrote
"""

from __future__ import annotations

from tests.storage.table.history import Get, Operation, Put, Recorded, Scan
from tests.storage.table.interleavings import START, Row

Contents = dict[str, tuple[int, str | None]]
"""Key to version and value."""


class _Running:
    """A transaction on such a store."""

    def __init__(self, name: str, version: int, snapshot: Contents) -> None:
        self.name = name
        self.version = version
        self.snapshot = snapshot
        self.operations: list[Operation] = []
        self.own: Contents = {}
        self.before: Contents = {}
        self.is_committed = False


class Uncontrolled:
    """One such store, with the transactions of an interleaving."""

    def __init__(self, kind: str, transactions: list[str]) -> None:
        self._kind = kind
        self._contents: Contents = {key: (1, value) for key, value in START.items()}
        self.orders: dict[str, list[int]] = {key: [1] for key in START}
        self._running = {
            name: _Running(name, number, dict(self._contents)) for number, name in enumerate(transactions, 2)
        }

    def run(self, rows: list[Row]) -> None:
        """All steps, whatever is expected of them."""
        for row in rows:
            txn, (verb, *words) = self._running[row.txn], row.words
            getattr(self, f"_{verb}")(txn, *words)

    def recorded(self) -> list[Recorded]:
        """The history, with the transaction that wrote what was there at the start."""
        first = Recorded("T0", 1, True, [Put(key, value) for key, value in START.items()])
        return [
            first,
            *(Recorded(t.name, t.version, t.is_committed, t.operations) for t in self._running.values()),
        ]

    def _visible(self, txn: _Running) -> Contents:
        contents = txn.snapshot if self._kind == "snapshot" else self._contents
        return contents if self._kind == "dirty" else {**contents, **txn.own}

    def _get(self, txn: _Running, key: str) -> None:
        version, value = self._visible(txn).get(key, (0, None))
        txn.operations.append(Get(key, version if value is not None else 0, value))

    def _scan(self, txn: _Running) -> None:
        rows = [
            Get(key, version, value)
            for key, (version, value) in sorted(self._visible(txn).items())
            if value is not None
        ]
        txn.operations.append(Scan("", None, rows))

    def _put(self, txn: _Running, key: str, value: str) -> None:
        txn.operations.append(Put(key, value))
        if self._kind == "dirty":
            txn.before.setdefault(key, self._contents.get(key, (0, None)))
            self._install(txn, key, value)
        else:
            txn.own[key] = (txn.version, value)

    def _install(self, txn: _Running, key: str, value: str | None) -> None:
        self._contents[key] = (txn.version, value)
        order = self.orders.setdefault(key, [])
        if txn.version not in order:
            order.append(txn.version)

    def _commit(self, txn: _Running) -> None:
        txn.is_committed = True
        for key, (_, value) in txn.own.items():
            self._install(txn, key, value)

    def _abort(self, txn: _Running) -> None:
        for key, before in txn.before.items():
            self._contents[key] = before
            self.orders[key].remove(txn.version)
