"""A dozen processes on one store, some of them killed at random: what they saw keeps the invariants."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from storage import IsolationLevel, MessageId, Store, TransactionState
from storage.topic.message import Message
from tests.processes import traffic
from tests.processes.child import Child, Children
from tests.processes.journal import Line, read
from tests.processes.traffic import SOURCE, SUBSCRIPTIONS, TARGET
from tests.row_json import row_json
from tests.waiting import moment_of_chance

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "0"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
KILLS = 14
SECONDS_PER_KILL = 0.3

PARTS = {
    "plain-1": "produce", "plain-2": "produce", "plain-3": "produce",
    "txn-1": "produce_transactions", "txn-2": "produce_transactions", "txn-3": "produce_transactions",
    "shared-1": "consume", "shared-2": "consume", "keyed-1": "consume", "keyed-2": "consume",
    "standby-1": "consume", "standby-2": "consume", "transfer-1": "transfer", "transfer-2": "transfer",
}  # fmt: skip


class Traffic:
    """The running parts, and afterwards what they have written down."""

    def __init__(self, path: str, directory: Path, children: Children, chance: random.Random) -> None:
        self._path = path
        self._directory = directory
        self._children = children
        self._chance = chance
        self._running: dict[str, Child] = {}

    def start(self, name: str) -> None:
        journal, part = self._directory / name, PARTS[name]
        self._running[name] = self._children.module(
            "traffic", self._path, journal, part, self._chance.random()
        )

    def kill_one(self) -> None:
        """Kill any of them, and start it anew."""
        name = self._chance.choice(sorted(self._running))
        child = self._running[name]
        child.expect("started")
        assert child.is_running, f"{name} ended by itself:\n{child.complaint()}"
        child.kill()
        self.start(name)

    def let_go(self) -> None:
        """Let the producers end, then the consumers when they find nothing more."""
        for with_prefix in (("plain", "txn"), ("transfer",), tuple(SUBSCRIPTIONS)):
            chosen = [name for name in self._running if name.startswith(with_prefix)]
            for name in chosen:
                self._running[name].expect("started")
                self._running[name].say("enough")
            for name in chosen:
                self._running.pop(name).succeed(60)
        assert not self._running

    def journals(self) -> dict[str, list[Line]]:
        return {name: read(str(self._directory / name)) for name in PARTS}


class Seen:
    """What the journals say about one subscription: when each value was received and by whom, when acknowledged."""

    def __init__(self, subscription: str, journals: dict[str, list[Line]], committed: set[str]) -> None:
        self.received: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.tried: dict[str, int] = {}
        self.done: dict[str, int] = {}
        for name, lines in journals.items():
            if not name.startswith(subscription):
                continue
            run = 0
            for line in lines:
                run += line["kind"] == "started"
                for value in line.get("values", ()) if line["kind"] in ("received", "acknowledge") else ():
                    if line["kind"] == "received":
                        self.received[value].append((line["ns"], f"{name} in run {run}"))
                    elif line["event"] == "try":
                        self.tried[value] = min(line["ns"], self.tried.get(value, line["ns"]))
                    else:
                        assert line["txn"] is None or line["txn"] in committed
                        assert value not in self.done, (
                            f"{value} was acknowledged twice on {subscription} (20)"
                        )
                        self.done[value] = line["ns"]

    def first_receipts(self) -> list[str]:
        """Values in the order in which they were first received by anybody."""
        return sorted(self.received, key=lambda value: min(self.received[value]))


def texts(messages: list[Message]) -> list[str]:
    return [(message.value or b"").decode() for message in messages]


def read_levels(store: Store, topic: str) -> tuple[list[Message], list[Message]]:
    """A topic READ_COMMITTED, and then READ_UNCOMMITTED."""
    return list(store.reader(topic)), list(
        store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    )


def check_subsequence(some: list[Message], every: list[Message]) -> None:
    """That `some` are among `every`, in order."""
    rest = iter(str(message.message_id) for message in every)
    missing = [message for message in some if str(message.message_id) not in rest]
    assert missing == []


def check_dense(store: Store, topic: str) -> None:
    """Entries count from 0 in each ledger, and ledgers from 1 (5)."""
    positions = [MessageId.parse(row["position"])[:2] for row in row_json(store.reports.topic_log(topic))]
    assert positions[0] == (1, 0)
    for (ledger, entry), following in pairwise(positions):
        assert following in ((ledger, entry + 1), (ledger + 1, 0))


def check_sent(journals: dict[str, list[Line]], topic: str, stored: list[Message]) -> None:
    """What was acknowledged is there, in its transaction; what producers sent is there at most once (15, 20)."""
    found = {(message.value or b"").decode(): message for message in stored}
    assert [v for v, n in Counter(texts(stored)).items() if n > 1 and not v.startswith("done ")] == []
    for lines in journals.values():
        for (to, value), txn in traffic.sends(lines).items():
            if to == topic:
                message = found[value]
                assert txn == (None if message.txn_id is None else str(message.txn_id))


def check_decided(journals: dict[str, list[Line]], store: Store) -> set[str]:
    """Acknowledged commits are commits, and nothing is left open (16); the committed transactions."""
    states = {row["txnId"]: row["state"] for row in row_json(store.reports.list_transactions(ended=True))}
    committed = {txn for txn, state in states.items() if state == TransactionState.COMMITTED.value}
    tried = set()
    for lines in journals.values():
        for line in lines:
            if line["kind"] in ("commit", "acknowledge") and line["txn"] is not None:
                tried.add(line["txn"])
                assert line["event"] == "try" or line["txn"] in committed, line
    assert committed <= tried, "nothing is committed that nobody asked for"
    return committed


def check_delivered(seen: Seen, visible: list[str]) -> None:
    """Every committed message was received, none after it was acknowledged (7, 19)."""
    assert set(seen.received) == set(visible)
    for value, at in seen.done.items():
        assert max(seen.received[value])[0] < at, f"{value} came again after it was acknowledged"


def check_key_order(seen: Seen, visible: list[Message]) -> None:
    """A message comes when each earlier one of its key is being acknowledged or is in flight right there (21)."""
    earlier: dict[object, list[str]] = defaultdict(list)
    for message in visible:
        value = (message.value or b"").decode()
        for ns, consumer in seen.received[value]:
            for before in earlier[message.key]:
                has_it = any(at <= ns and who == consumer for at, who in seen.received[before])
                assert has_it or seen.tried.get(before, ns) < ns, f"{value} overtook {before} of its key"
        earlier[message.key].append(value)
    by_key: dict[object, list[str]] = defaultdict(list)
    keys = {(message.value or b"").decode(): message.key for message in visible}
    for value in seen.first_receipts():
        by_key[keys[value]].append(value)
    assert by_key == earlier


def check_effects(results: list[Message], requests: list[str]) -> None:
    """Each committed request has had exactly one committed effect."""
    effects = [value.removeprefix("done ") for value in texts(results) if value.startswith("done ")]
    assert Counter(effects) == Counter(requests)


@pytest.fixture
def path(empty: str) -> str:
    """Where the store of the traffic lies; it is verified at the end."""
    with Store.open(empty) as store:
        traffic.prepare(store)
    return empty


@pytest.mark.crash_sweep
@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, ROUNDS // KILLS)))
def test_what_many_processes_saw_of_one_store_agrees_with_the_invariants(
    seed: int, path: str, tmp_path: Path, children: Children
):
    """Producers, transactions, consumers of all types: nothing is lost, doubled, dirty or out of order."""
    chance = random.Random(seed)
    (tmp_path / "journals").mkdir()
    running = Traffic(path, tmp_path / "journals", children, chance)
    for name in PARTS:
        running.start(name)
    with Store.open(path, read_only=True) as store:
        for _ in range(KILLS):
            # The moments of the kills are chance itself.
            moment_of_chance(chance, 0.2 * SECONDS_PER_KILL, 1.8 * SECONDS_PER_KILL)
            running.kill_one()
            for topic in (SOURCE, TARGET):
                check_subsequence(*read_levels(store, topic))
        running.let_go()
        journals = running.journals()
        committed = check_decided(journals, store)
        visible, stored = {}, {}
        for topic in (SOURCE, TARGET):
            visible[topic], stored[topic] = read_levels(store, topic)
            check_subsequence(visible[topic], stored[topic])
            check_sent(journals, topic, stored[topic])
            check_dense(store, topic)
        requests = texts(visible[SOURCE])
        for name in SUBSCRIPTIONS:
            seen = Seen(name, journals, committed)
            check_delivered(seen, requests)
            if name == "standby":
                assert seen.first_receipts() == requests, "a Failover subscription is in order (4)"
            if name == "keyed":
                check_key_order(seen, visible[SOURCE])
            assert row_json(store.reports.subscription_stats(SOURCE, name))["msgBacklog"] == 0
        check_effects(visible[TARGET], requests)
        assert row_json(store.reports.list_transactions()) == []
        assert len(requests) > 20, "there was traffic to speak of"
