"""The actors of the story of PIP-298: clients A1 and A2, the monitoring D and the business processing E.

A1 sends deposits and withdrawals, each plain; A1 is a process of its own, `txnctl produce`. A2 sends remittances, each
two requests in one transaction. D watches all requests at once and may see requests that are never committed:
READ_UNCOMMITTED, acknowledged at once. E books: READ_COMMITTED, and exactly once. E receives requests, puts each
account's new balance into the table `accounts`, sends every booking to the topic `balances` and acknowledges the
requests, all in one serializable transaction. All three effects are committed together or not at all, and a new E finds
in the table where the previous E stopped. A batch of E may end between the two messages of a remittance: the first is a
posting of both legs, so the balances always agree.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from tempfile import TemporaryFile

from storage import EARLIEST, Consumer, IsolationLevel, Message, Store, SubscriptionType, Transaction
from storage.errors import SubscriptionBusy
from txnctl.demo import child
from txnctl.demo.request import BalanceChange, is_settlement, read_legs, read_request, requests_of
from txnctl.demo.transaction import BankTransaction
from txnctl.pipelines.hellers import format_hellers, parse_hellers

REQUESTS = "requests"
ACCOUNTS = "accounts"
BALANCES = "balances"
BUSINESS = "business-E"
MONITOR = "monitor-D"
BATCH = 500
"""Messages received, or sent, at once."""

_NO_WAIT = 0.0
_OPEN_S = 3600.0
_NOTICED_S = 10.0
_LOOK_S = 0.05


class ClientA1:
    """Sends every change of a single account, such as deposits, while entered as a context.

    A process of its own, fed NDJSON: `txnctl produce requests --input ndjson`. Leaving the context waits for its end.
    """

    def __init__(
        self,
        store_path: str,
        lines: list[BankTransaction],
        *,
        sequence_id: int | None = None,
        batch: int = BATCH,
    ) -> None:
        """Args:
        sequence_id: of the first request; the same lines may then be sent again, and are stored once.
        batch: requests of one commit.
        """
        arguments = [
            "produce",
            REQUESTS,
            "--input",
            "ndjson",
            "--batch",
            str(batch),
            "--producer",
            "client-A1",
            "--quiet",
        ]
        if sequence_id is not None:
            arguments += "--sequence-id", str(sequence_id)
        with TemporaryFile() as ndjson:
            for line in lines:
                ndjson.writelines(_as_ndjson(request) for request in requests_of(line))
            ndjson.seek(0)
            self._process = child.start("txnctl", *arguments, "--store", store_path, stdin=ndjson)

    def __enter__(self) -> ClientA1:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._process as process:
            if kind is None and process.wait() != 0:
                raise child.failure("client A1", process)


def _as_ndjson(request: BalanceChange) -> bytes:
    fields = {"key": request.key, "value": request.value.decode(), "eventTimeMs": request.event_time}
    return json.dumps(fields).encode() + b"\n"


class ClientA2:
    """Sends remittances: the account minus and the partner bank's settlement account plus, or neither."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._producer = store.create_producer(REQUESTS, producer_name="client-A2")

    def remit(self, line: BankTransaction) -> int:
        """Send a remittance and commit; return the number of its requests."""
        with self._store.transaction() as txn:
            return self._send(line, txn)

    def leave_open(self, line: BankTransaction) -> Transaction:
        """Send a remittance without a commit; the long timeout leaves an audience time to look."""
        txn = self._store.transaction(timeout=_OPEN_S)
        self._send(line, txn)
        self._producer.flush()
        return txn

    def _send(self, line: BankTransaction, txn: Transaction) -> int:
        requests = requests_of(line)
        self._producer.send_batch(
            [request.value for request in requests],
            keys=[request.key for request in requests],
            event_times=[request.event_time for request in requests],
            txn=txn,
        )
        return len(requests)

    def close(self) -> None:
        """Leave the topic."""
        self._producer.close()


class MonitorD:
    """Watches every request as soon as it is written, and sums up the customers' money."""

    def __init__(self, store: Store) -> None:
        self._consumer = store.subscribe(
            REQUESTS,
            MONITOR,
            subscription_type=SubscriptionType.EXCLUSIVE,
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
            initial_position=EARLIEST,
        )
        self.seen: Counter[str] = Counter()
        """How often each message id was received."""
        self.by_state: Counter[str] = Counter()
        """Messages by the state of their transaction when received; `plain` without a transaction."""
        self.customers_money = 0

    def watch(self) -> int:
        """Receive all present messages without waiting; return their number."""
        count = 0
        while messages := self._consumer.receive_batch(BATCH, timeout=_NO_WAIT):
            for message in messages:
                self._count_message(message)
            self._consumer.acknowledge_cumulative(messages[-1])
            count += len(messages)
        return count

    def _count_message(self, message: Message) -> None:
        key, _, delta = read_request(message.key, message.value)
        self.seen[str(message.message_id)] += 1
        self.by_state[message.txn_state.name if message.txn_state is not None else "plain"] += 1
        if not is_settlement(key):
            self.customers_money += delta

    def close(self) -> None:
        """Detach; the subscription stays."""
        self._consumer.close()


def _take_over(store: Store) -> Consumer:
    """Attach E; an E that was killed a moment ago keeps its place on a server until the server has noticed.

    Raises:
        SubscriptionBusy: another E lives.
    """
    clock = store.connection.clock
    until_ns = clock.boot_ns() + int(_NOTICED_S * 1e9)
    while True:
        try:
            return store.subscribe(
                REQUESTS,
                BUSINESS,
                subscription_type=SubscriptionType.EXCLUSIVE,
                subscription_isolation_level=IsolationLevel.READ_COMMITTED,
                initial_position=EARLIEST,
            )
        except SubscriptionBusy:
            if clock.boot_ns() > until_ns:
                raise
            clock.sleep(_LOOK_S)


class BusinessE:
    """Books every committed request exactly once. E has no state of its own: balances are in the table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.consumer = _take_over(store)
        self._accounts = store.table(ACCOUNTS)
        self._producer = store.create_producer(BALANCES, producer_name=BUSINESS)
        self.received: Counter[str] = Counter()
        """How often this E received each message id."""

    def work(self, *, wait: float = _NO_WAIT) -> int:
        """Book all present requests, waiting `wait` seconds for the first; return their number."""
        count = 0
        while messages := self.consumer.receive_batch(BATCH, timeout=wait):
            wait = _NO_WAIT
            # The transaction begins after the receive: with tables it may consume only messages older than itself.
            with self._store.transaction() as txn:
                self.book(messages, txn)
            count += len(messages)
        return count

    def book(self, messages: Sequence[Message], txn: Transaction) -> int:
        """Book requests in a transaction, effective with its commit; return how many accounts change."""
        changed: dict[str, int] = {}
        keys: list[str] = []
        values: list[bytes | None] = []
        for message in messages:
            key, trans_id, delta = read_request(message.key, message.value)
            for account, amount in read_legs(message.value):
                if account not in changed:
                    changed[account] = _money(self._accounts.get(account.encode(), txn=txn))
                changed[account] += amount
            self.received[str(message.message_id)] += 1
            keys.append(key)
            values.append(_booking(trans_id, delta, changed[key]))
        for key, balance in changed.items():
            self._accounts.put(key.encode(), format_hellers(balance).encode(), txn=txn)
        self._producer.send_batch(values, keys=keys, txn=txn)
        self.consumer.acknowledge_cumulative(messages[-1], txn=txn)
        return len(changed)

    def receive_unprocessed(self) -> Sequence[Message]:
        """Receive one batch without processing."""
        return self.consumer.receive_batch(BATCH, timeout=_NO_WAIT)

    def flush_writes(self, txn: Transaction) -> None:
        """Write buffered puts and sends to the store."""
        self._producer.flush()
        txn.flush()

    def close(self) -> None:
        """Detach; the subscription stays."""
        self.consumer.close()
        self._producer.close()


def balances(store: Store) -> dict[str, int]:
    """Read every committed balance from the table."""
    return {row.key.decode(): _money(row.value) for row in store.table(ACCOUNTS).scan()}


def _money(value: bytes | None) -> int:
    """Parse a balance; a missing account has nothing."""
    return 0 if value is None else parse_hellers(value.decode())


class Booking:
    """E's record of a request: a message of the topic `balances`."""

    __slots__ = ("balance", "delta", "key", "trans_id")

    def __init__(self, key: str, trans_id: int, delta: int, balance: int) -> None:
        self.key = key
        self.trans_id = trans_id
        self.delta = delta
        self.balance = balance


def _booking(trans_id: int, delta: int, balance: int) -> bytes:
    facts = {"id": trans_id, "delta": format_hellers(delta), "balance": format_hellers(balance)}
    return json.dumps(facts, separators=(",", ":")).encode()


def bookings(store: Store) -> list[Booking]:
    """Read all committed bookings, in their order."""
    committed = []
    reader = store.reader(BALANCES, start=EARLIEST, isolation_level=IsolationLevel.READ_COMMITTED)
    while messages := reader.read_batch(BATCH):
        for message in messages:
            key = (message.key or b"").decode()
            facts = json.loads(message.value or b"")
            delta, balance = parse_hellers(facts["delta"]), parse_hellers(facts["balance"])
            committed.append(Booking(key, facts["id"], delta, balance))
    return committed
