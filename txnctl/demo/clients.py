"""Who acts in the story of PIP-298: clients A1 and A2, the monitoring D and the business processing E.

A1 sends deposits and withdrawals, each plain; it is a process of its own, `txnctl produce`. A2 sends remittances, each
two requests in one transaction. D watches all requests at once and may see what is never committed: READ_UNCOMMITTED,
acknowledging as it goes. E books: READ_COMMITTED, and exactly once. It receives requests, puts each account's new
balance into the table `accounts`, tells of every booking on the topic `balances` and acknowledges the requests, all in
one serializable transaction; so the three are there together or not at all, and an E that starts anew finds in the
table where the one before it stopped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from tempfile import TemporaryFile

from storage import EARLIEST, IsolationLevel, Message, Store, SubscriptionType, Transaction
from txnctl.demo import child
from txnctl.demo.request import Request, is_settlement, read_request, requests_of
from txnctl.demo.transaction import BankTransaction
from txnctl.pipelines.hellers import format_hellers, parse_hellers

REQUESTS = "requests"
ACCOUNTS = "accounts"
BALANCES = "balances"
BUSINESS = "business-E"
MONITOR = "monitor-D"
BATCH = 500
"""Messages that are received, or sent, at once."""

_NO_WAIT = 0.0
_OPEN_S = 3600.0


class ClientA1:
    """Sends deposits, withdrawals and all else that changes one account alone, while it is entered as a context.

    A process of its own, fed NDJSON: `txnctl produce requests --input ndjson`. Leaving the context waits for its end.
    """

    def __init__(self, store_path: str, lines: list[BankTransaction]) -> None:
        words = (
            "produce",
            REQUESTS,
            "--input",
            "ndjson",
            "--batch",
            str(BATCH),
            "--producer",
            "client-A1",
            "--quiet",
        )
        with TemporaryFile() as ndjson:
            for line in lines:
                ndjson.writelines(_as_ndjson(request) for request in requests_of(line))
            ndjson.seek(0)
            self._process = child.start("txnctl", *words, "--store", store_path, stdin=ndjson)

    def __enter__(self) -> ClientA1:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._process as process:
            if kind is None and process.wait() != 0:
                raise child.failure("client A1", process)


def _as_ndjson(request: Request) -> bytes:
    fields = {"key": request.key, "value": request.value.decode(), "eventTimeMs": request.event_time}
    return json.dumps(fields).encode() + b"\n"


class ClientA2:
    """Sends remittances: the account minus and the partner bank's settlement account plus, or neither."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._producer = store.create_producer(REQUESTS, producer_name="client-A2")

    def remit(self, line: BankTransaction) -> int:
        """Send a remittance and commit it; give the number of its requests."""
        with self._store.transaction() as txn:
            return self._send(line, txn)

    def leave_open(self, line: BankTransaction) -> Transaction:
        """Send a remittance and do not commit it; its deadline leaves an audience time to look."""
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
    """Watches every request as soon as it is written, and keeps a running total of the customers' money."""

    def __init__(self, store: Store) -> None:
        self._consumer = store.subscribe(
            REQUESTS,
            MONITOR,
            subscription_type=SubscriptionType.EXCLUSIVE,
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
            initial_position=EARLIEST,
        )
        self.seen: Counter[str] = Counter()
        """How often each message id came."""
        self.by_state: Counter[str] = Counter()
        """Messages by the state of their transaction when they came; `plain` for none."""
        self.customers_money = 0

    def watch(self) -> int:
        """Receive all there is now, at once; give its number."""
        count = 0
        while messages := self._consumer.receive_batch(BATCH, timeout=_NO_WAIT):
            for message in messages:
                self._note(message)
            self._consumer.acknowledge_cumulative(messages[-1])
            count += len(messages)
        return count

    def _note(self, message: Message) -> None:
        key, _, delta = read_request(message.key, message.value)
        self.seen[str(message.message_id)] += 1
        self.by_state[message.txn_state.name if message.txn_state is not None else "plain"] += 1
        if not is_settlement(key):
            self.customers_money += delta

    def close(self) -> None:
        """Detach; the subscription stays."""
        self._consumer.close()


class BusinessE:
    """Books every committed request exactly once. It remembers nothing: balances are in the table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.consumer = store.subscribe(
            REQUESTS,
            BUSINESS,
            subscription_type=SubscriptionType.EXCLUSIVE,
            subscription_isolation_level=IsolationLevel.READ_COMMITTED,
            initial_position=EARLIEST,
        )
        self._accounts = store.table(ACCOUNTS)
        self._producer = store.create_producer(BALANCES, producer_name=BUSINESS)
        self.received: Counter[str] = Counter()
        """How often each message id came to this E."""

    def work(self, *, wait: float = _NO_WAIT) -> int:
        """Book all there is, waiting `wait` seconds for the first; give the number of requests."""
        count = 0
        while messages := self.consumer.receive_batch(BATCH, timeout=wait):
            wait = _NO_WAIT
            # It begins when it has received: a transaction that uses tables may consume what is older than itself.
            with self._store.transaction() as txn:
                self.book(messages, txn)
            count += len(messages)
        return count

    def book(self, messages: Sequence[Message], txn: Transaction) -> int:
        """Book requests in a transaction, which counts once it is committed; give how many accounts that changes."""
        changed: dict[str, int] = {}
        keys: list[str] = []
        values: list[bytes | None] = []
        for message in messages:
            key, trans_id, delta = read_request(message.key, message.value)
            if key not in changed:
                changed[key] = _money(self._accounts.get(key.encode(), txn=txn))
            changed[key] += delta
            self.received[str(message.message_id)] += 1
            keys.append(key)
            values.append(_booking(trans_id, delta, changed[key]))
        for key, balance in changed.items():
            self._accounts.put(key.encode(), format_hellers(balance).encode(), txn=txn)
        self._producer.send_batch(values, keys=keys, txn=txn)
        self.consumer.acknowledge_cumulative(messages[-1], txn=txn)
        return len(changed)

    def take(self) -> Sequence[Message]:
        """Receive one batch and do nothing with it."""
        return self.consumer.receive_batch(BATCH, timeout=_NO_WAIT)

    def flush(self, txn: Transaction) -> None:
        """Write to the store what was put and sent so far."""
        self._producer.flush()
        txn.flush()

    def close(self) -> None:
        """Detach; the subscription stays."""
        self.consumer.close()
        self._producer.close()


def balances(store: Store) -> dict[str, int]:
    """Read every balance that is committed from the table."""
    return {row.key.decode(): _money(row.value) for row in store.table(ACCOUNTS).scan()}


def _money(value: bytes | None) -> int:
    """An account that is not there yet has nothing."""
    return 0 if value is None else parse_hellers(value.decode())


class Booking:
    """What E made of a request: a message of the topic `balances`."""

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
    """Read all bookings that are committed, in their order."""
    found = []
    reader = store.reader(BALANCES, start=EARLIEST, isolation_level=IsolationLevel.READ_COMMITTED)
    while messages := reader.read_batch(BATCH):
        for message in messages:
            key = (message.key or b"").decode()
            facts = json.loads(message.value or b"")
            delta, balance = parse_hellers(facts["delta"]), parse_hellers(facts["balance"])
            found.append(Booking(key, facts["id"], delta, balance))
    return found
