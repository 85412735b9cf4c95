"""Several workers settle the same requests and are killed at random: each is applied once, to everything or nothing."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.processes.child import PATIENCE_S, Child, Children
from tests.processes.memory import store_in_memory
from tests.processes.table_settlement import REQUESTS, RESULTS, SUBSCRIPTION, TABLE
from tests.row_json import row_json
from tests.waiting import moment_of_chance, wait_for

COUNT, ACCOUNTS, WORKERS, KILLS = 150, 4, 3, 8


@pytest.fixture
def path() -> Iterator[str]:
    """A bank without requests yet; it is verified at the end."""
    with store_in_memory() as place:
        with Store.open(place) as store:
            store.create_table(TABLE)
            for topic in (REQUESTS, RESULTS):
                store.create_topic(topic, ledger_entries_max=20)
            store.admin.subscriptions.create_subscription(
                REQUESTS, SUBSCRIPTION, subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
            )
        yield place


def start(children: Children, path: str, chance: random.Random) -> Child:
    child = children.module("table_settlement", path, chance.randrange(1 << 30))
    child.expect("started")
    return child


def settled(store: Store) -> list[tuple[bytes, bytes, int]]:
    """Request, account and balance of each result that has been committed."""
    rows = [(message.value or b"").split() for message in store.reader(RESULTS)]
    return [(request, account, int(balance)) for request, account, balance in rows]


def test_every_request_is_applied_once_however_many_workers_are_killed(path: str, children: Children):
    """Accounts, results and the subscription agree with the requests, and each balance with the order of results."""
    chance = random.Random(4)
    requests = [
        (b"r%d" % n, b"B%d" % chance.randrange(ACCOUNTS), chance.randint(-50, 100)) for n in range(COUNT)
    ]
    with Store.open(path) as store:
        producer = store.create_producer(REQUESTS)
        producer.send_batch([b"%s %s %d" % request for request in requests])
        workers = [start(children, path, chance) for _ in range(WORKERS)]
        for _ in range(KILLS):
            # The moments of the kills are chance itself.
            moment_of_chance(chance, 0.02, 0.3)
            victim = workers.pop(chance.randrange(WORKERS))
            assert victim.is_running, victim.complaint()
            victim.kill()
            workers.append(start(children, path, chance))

        def is_settled() -> bool:
            assert all(worker.is_running for worker in workers), [each.complaint() for each in workers]
            store.admin.transactions.reap_transactions()
            return len(settled(store)) >= COUNT

        wait_for(is_settled, "the requests are settled", 2 * PATIENCE_S)
        for worker in workers:
            worker.say("enough")
        for worker in workers:
            worker.succeed()
        results = settled(store)
        assert Counter(request for request, _, _ in results) == Counter(name for name, _, _ in requests)
        amounts = {name: amount for name, _, amount in requests}
        orders: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for request, account, balance in results:
            orders[account].append((amounts[request], balance))
        table = store.table(TABLE)
        for account, booked in orders.items():
            # Positions are append order; the accounts have an order of their own, in which each follows the last.
            assert int(table.get(account) or b"") == sum(amount for amount, _ in booked)
            assert can_follow(booked), f"{account} has no order in which its balances come about: {booked}"
        assert {row.key[8:] for row in table.scan(prefix=b"applied ")} == set(amounts)
        stats = row_json(store.reports.subscription_stats(REQUESTS, SUBSCRIPTION))
        assert (stats["msgBacklog"], stats["pending"]) == (0, 0)


def can_follow(booked: list[tuple[int, int]]) -> bool:
    """Whether these amounts can be booked one after the other so that each leads to its balance."""
    before = Counter(balance - amount for amount, balance in booked)
    after = Counter(balance for _, balance in booked)
    end = list(accumulate(amount for amount, _ in booked))[-1]
    # Each balance but the last is where another one begins; the first begins at nothing.
    return after + Counter([0]) == before + Counter([end])
