"""Settles requests against accounts: exactly once, by as many workers as you like, whatever becomes of them.

A request is a message whose key is an account. Its balance changes by `delta`, and if the money goes to another bank,
that bank's settlement account changes the other way. To consume the request, change both balances and report the new
one is one transaction: a worker that is killed leaves all of it or nothing, and what it left undone is handed to
another at once. Four rules make it so:

1. *Receive, then begin.* A transaction sees the accounts as they were when it began, and consumes nothing newer.
2. *Acknowledge in the transaction, and first.* However it ends, its requests are done, or come again to whoever asks.
3. *Read in the transaction what you change in it.* When it commits, nobody has changed that since it was read.
4. *Who loses begins anew*, with all that it read, after a wait and with a higher priority, so that it does not lose
   for ever: `store.run_transaction` sees to that.

What leaves the store (a mail, a call to another bank) is not part of it: docs/EXACTLY_ONCE.md says what to do.

    python examples/settlement/worker.py STORE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from storage import EARLIEST, Message, Priority, Store, SubscriptionType, Transaction
from storage.errors import TxnctlError

REQUESTS, BOOKINGS, ACCOUNTS = "requests", "bookings", "accounts"
SUBSCRIPTION = "settlement"
BATCH = 10
"""Requests that are settled in one transaction."""


def settlement_account(bank: str) -> bytes:
    """The key of what another bank is owed."""
    return f"bank:{bank}".encode()


class Worker:
    """One of those who settle. Each is a process of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts = store.table(ACCOUNTS)
        self._bookings = store.create_producer(BOOKINGS)
        # Key_Shared: the requests of one account are settled in their order, those of others meanwhile. Nothing is
        # taken ahead: what waits here, no other worker can settle meanwhile.
        self._requests = store.subscribe(
            REQUESTS,
            SUBSCRIPTION,
            subscription_type=SubscriptionType.KEY_SHARED,
            initial_position=EARLIEST,
            receiver_queue_size=BATCH,
        )

    def work(self) -> None:
        """Settle what comes, for ever."""
        while True:
            self._store.run_transaction(self._settle, receive=lambda: self._requests.receive_batch(BATCH))

    def _settle(self, txn: Transaction, requests: Sequence[Message]) -> None:
        """Settle requests in a transaction, of which each try receives its own."""
        self._requests.acknowledge(requests, txn=txn)
        bookings = [self._book(request, txn) for request in requests]
        if txn.priority is not Priority.MEDIUM:
            txn.flush()  # a further try: from here on others see what we want, and give way to our priority
        self._bookings.send_batch(bookings, keys=[request.key for request in requests], txn=txn)

    def _book(self, request: Message, txn: Transaction) -> bytes:
        """Change the balances that a request asks for; the booking that reports it."""
        facts = json.loads(request.value or b"")
        balance = self._change(request.key or b"", facts["delta"], txn)
        if facts["bank"]:
            self._change(settlement_account(facts["bank"]), -facts["delta"], txn)
        return json.dumps({"id": facts["id"], "balance": balance}).encode()

    def _change(self, account: bytes, delta: int, txn: Transaction) -> int:
        """Change one balance, of which the first change makes the account; what it is then."""
        balance = int(self._accounts.get(account, txn=txn) or 0) + delta
        self._accounts.put(account, b"%d" % balance, txn=txn)
        return balance


def main() -> int:
    """Work until something ends it; the exit code."""
    try:
        with Store.open(sys.argv[1], program="settlement worker") as store:
            Worker(store).work()
    except TxnctlError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
