"""A worker that settles requests: consumes, puts accounts, produces results and acknowledges in one transaction.

    python -m tests.processes.table_settlement STORE SEED

It works until the test lets go of it and nothing is left; the transactions are attached or detached, of a few requests
each. A request that had been applied before would stop it with an error.
"""

from __future__ import annotations

import random
import sys

from storage import Consumer, Message, Store, SubscriptionType, Transaction, TxnctlError, TxnID
from storage.errors import TransactionNotOpen
from tests.processes.parent import has_let_go, say

REQUESTS, RESULTS, SUBSCRIPTION, TABLE = "requests", "results", "settlement", "accounts"
PRIORITIES = ["medium", "high", "highest"]


class Worker:
    """See the module."""

    def __init__(self, store: Store, consumer: Consumer, chance: random.Random) -> None:
        self._store = store
        self._consumer = consumer
        self._chance = chance
        self._table = store.table(TABLE)
        self._results = store.create_producer(RESULTS, connected=False)
        self._losses = 0

    def work(self) -> None:
        while True:
            found = list(self._consumer.receive_batch(self._chance.randint(1, 3), timeout=0.2))
            if found:
                self._settle(found)
            elif has_let_go():
                return

    def _begin(self) -> Transaction | TxnID:
        """After receiving, and more urgent after each loss."""
        priority = PRIORITIES[min(self._losses, 2)]
        if self._chance.random() < 0.5:
            return self._store.transaction(priority=priority)
        # Nobody proves its owner dead: the deadline gives back what a kill leaves.
        return self._store.begin_transaction(priority=priority, timeout=2)

    def _settle(self, found: list[Message]) -> None:
        txn = self._begin()
        try:
            for message in found:
                self._apply(message, txn)
            self._consumer.acknowledge(found, txn=txn)
            self._store.commit_transaction(txn)
        except TxnctlError as error:
            if not error.retryable and not isinstance(error, TransactionNotOpen):
                raise
            self._losses += 1
            for message in found:
                self._consumer.negative_acknowledge(message, delay=0)
        else:
            self._losses = 0

    def _apply(self, message: Message, txn: Transaction | TxnID) -> None:
        request, account, amount = (message.value or b"").split()
        balance = int(self._table.get(account, txn=txn) or b"0") + int(amount)
        self._table.put(b"applied " + request, b"", txn=txn, if_absent=True)
        self._table.put(account, b"%d" % balance, txn=txn)
        self._results.send(b"%s %s %d" % (request, account, balance), txn=txn)


def main(path: str, seed: str) -> None:
    """See the module."""
    with (
        Store.open(path, lock_timeout=60) as store,
        store.subscribe(REQUESTS, SUBSCRIPTION, subscription_type=SubscriptionType.SHARED) as consumer,
    ):
        say("started")
        Worker(store, consumer, random.Random(int(seed))).work()


if __name__ == "__main__":
    main(*sys.argv[1:])
