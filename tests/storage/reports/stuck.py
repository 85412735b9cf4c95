"""Topics on which transactions are stuck, at random, and what lies behind them counted from the log itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType, TxnID
from storage.errors import NotDeliverable, TransactionConflict
from tests.row_json import row_json
from tests.storage.ending import end_transaction

RC, RU = IsolationLevel
Script = list[tuple[Any, ...]]

_steps = st.one_of(
    st.tuples(st.just("plain"), st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.just("in"), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.sampled_from(["commit", "abort"]), st.integers(0, 3)),
    st.tuples(st.just("receive"), st.integers(0, 6), st.integers(1, 4)),
    st.tuples(st.just("cumulative"), st.integers(0, 1), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.just("level"), st.integers(0, 4)),
)
scripts = st.lists(_steps, max_size=25)

SUBSCRIPTIONS = (
    ("exclusive", SubscriptionType.EXCLUSIVE, RC, "block"),
    ("failover", SubscriptionType.FAILOVER, RC, "block"),
    ("shared", SubscriptionType.SHARED, RC, "block"),
    ("keyed", SubscriptionType.KEY_SHARED, RC, "block"),
    ("dirty", SubscriptionType.SHARED, RU, "block"),
    ("skipping", SubscriptionType.SHARED, RC, "skip"),
    ("keyed-skipping", SubscriptionType.KEY_SHARED, RC, "skip"),
)
_KEYS = (None, "k", "l")


def play(store: Store, topic: str, script: Script, txns: list[TxnID] | None = None) -> list[TxnID]:
    """Play random steps: send, begin, end, acknowledge alone or in a transaction, change levels.

    Args:
        txns: the four transactions to begin with, which are changed; new ones are begun if there are none.

    Returns:
        The four that are open at the end.
    """
    store.create_topic(topic, ledger_entries_max=4)
    for name, kind, level, on_open in SUBSCRIPTIONS:
        store.admin.subscriptions.create_subscription(
            topic,
            name,
            subscription_type=kind,
            subscription_isolation_level=level,
            on_open=on_open,
            initial_position=EARLIEST,
        )
    producer = store.create_producer(topic)
    if txns is None:
        txns = [store.begin_transaction() for _ in range(4)]
    for what, *numbers in script:
        if what == "plain":
            producer.send_batch([b"plain"] * numbers[0], keys=[_KEYS[numbers[1]]] * numbers[0])
        elif what == "in":
            keys = [_KEYS[numbers[2]]] * numbers[1]
            producer.send_batch([b"in"] * numbers[1], keys=keys, txn=txns[numbers[0]])
        elif what in ("commit", "abort"):
            end_transaction(store, what, txns[numbers[0]])
            txns[numbers[0]] = store.begin_transaction()
        elif what in ("receive", "cumulative"):
            _receive(store, topic, what, numbers, txns)
        else:
            name = SUBSCRIPTIONS[numbers[0]][0]
            now = row_json(store.reports.subscription_stats(topic, name))["subscriptionIsolationLevel"]
            store.admin.subscriptions.update_subscription(
                topic, name, subscription_isolation_level=RU if now == RC.value else RC
            )
    producer.close()
    return txns


def _receive(store: Store, topic: str, what: str, numbers: list[int], txns: list[TxnID]) -> None:
    """Acknowledge some of what comes, alone or in transactions, as far as nothing stands against it."""
    with store.subscribe(topic, SUBSCRIPTIONS[numbers[0]][0]) as consumer:
        batch = list(consumer.receive_batch(numbers[1], timeout=0))
        with suppress(TransactionConflict, NotDeliverable):
            if what == "cumulative" and batch:
                consumer.acknowledge_cumulative(batch[-1], txn=txns[numbers[2]])
            for index, message in enumerate(batch if what == "receive" else []):
                if index != 1:
                    consumer.acknowledge(message, txn=txns[index % 4] if index else None)


def recount(store: Store, topic: str) -> dict[str, int]:
    """Committed messages from the first message of each open transaction to that of the next, from the log itself."""
    frees: dict[str, int] = {}
    current = None
    for entry in row_json(store.reports.topic_log(topic)):
        if entry["kind"] != "messages":
            continue
        state = entry["txnState"]
        if state == "OPEN" and entry["txnId"] not in frees:
            frees[entry["txnId"]], current = 0, entry["txnId"]
        elif state in (None, "COMMITTED") and current is not None:
            frees[current] += entry["messages"]
    return frees
