"""man/txnctl-transactions.7: every command of it runs, step by step, against a store that is really stuck.

At once there are: an idle transaction of no process, a transaction of a killed process, one of a stopped process, a
consumer stopped with messages in flight, acknowledgements pending, a producer that keeps others out, and keys held.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from tests.txnctl.an_hour_ago import an_hour_ago

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "man" / "txnctl-transactions.7"


def sections() -> dict[str, list[str]]:
    """The commands of the page, by the title of their section."""
    found: dict[str, list[str]] = {}
    title, inside = "", False
    for line in PAGE.read_text().splitlines():
        if line.startswith((".SS ", ".SH ")):
            title = line[4:]
        elif line in (".EX", ".EE"):
            inside = line == ".EX"
        elif inside:
            found.setdefault(title, []).append(line)
    return found


PROGRAMS = {
    "killed": "hold(store.transaction(timeout=3600))",
    "stopped": "hold(store.transaction(timeout=3600))",
    "consumer": (
        "taken = store.subscribe('payments', 'settle', subscription_type='Shared').receive_batch(2)\n"
        "print('ready', flush=True); sys.stdin.read()"
    ),
}
_TWO_MINUTES_AGO = (
    "import sys\n"
    "from storage import Store\n"
    "from tests.txnctl.an_hour_ago import ago\n"
    "store = Store.open(sys.argv[1], clock=ago(120))\n"
)
IDLE = {
    "living": _TWO_MINUTES_AGO + (
        "txn = store.transaction(timeout=3600)\n"
        "producer = store.create_producer('refunds')\n"
        "producer.send(b'half', txn=txn)\n"
        "txn.flush()\n"
        "producer.send(b'whole')\n"
        "print('ready', txn.id, flush=True)\n"
        "sys.stdin.read()"
    ),
    "quiet": _TWO_MINUTES_AGO + (
        "taken = store.subscribe('payments', 'settle', consumer_name='worker').receive_batch(5)\n"
        "print('ready', flush=True); sys.stdin.read()"
    ),
}  # fmt: skip
"""Processes that live and do nothing."""

_HOLD = (
    "import sys\n"
    "from storage import Store\n"
    "store = Store.open(sys.argv[1])\n"
    "def hold(txn):\n"
    "    store.create_producer('orders').send(b'half', txn=txn)\n"
    "    print('ready', txn.id, flush=True)\n"
    "    sys.stdin.read()\n"
    "    txn.commit()\n"
)


class Stuck:
    """The store, and the processes that hold it up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ids: dict[str, str] = {}

    def start(self, name: str, program: str) -> None:
        """Start a program; it is ready when this returns."""
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        self.processes[name] = process
        assert process.stdout is not None
        ready, *txn = process.stdout.readline().decode().split()
        assert ready == "ready"
        self.ids[name] = txn[0] if txn else ""

    def send(self) -> None:
        """A message that waits behind whatever is open."""
        with Store.open(self.path) as store, store.create_producer("orders") as producer:
            producer.send(b"whole")


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    """Stuck in all these ways at once; sound when it is over."""
    path = tmp_path / "store"
    Store.create(path, clock=an_hour_ago())
    monkeypatch.setenv("TXNCTL_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settle.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "settle.sh").chmod(0o700)
    found = Stuck(path)
    with Store.open(path, clock=an_hour_ago()) as store:
        store.admin.settings.set_reap_policy("manual")
        for topic, name, kind in (
            ("orders", "billing", SubscriptionType.EXCLUSIVE),
            ("payments", "settle", SubscriptionType.SHARED),
        ):
            store.create_topic(topic)
            store.admin.subscriptions.create_subscription(
                topic, name, subscription_type=kind, initial_position=EARLIEST
            )
        store.create_table("balances")
        store.create_topic("led")
        store.create_topic("refunds")
        store.create_producer("payments").send_batch([b"in"] * 5)
        idle = store.begin_transaction(timeout=7200, labels={"job": "loader"})
        found.ids["idle"] = str(idle)
        store.table("balances").put(b"B1", b"1", txn=idle)
        with store.create_producer("orders", producer_name="loader") as producer:
            producer.send_batch([b"half"] * 3, txn=idle)
    # Before the clock of the store is that of now.
    found.start("living", IDLE["living"])
    found.send()
    for name, program in PROGRAMS.items():
        found.start(name, _HOLD + program)
        found.send()
    found.processes["killed"].kill()
    found.processes["killed"].wait(timeout=30)
    for name in ("stopped", "consumer"):
        os.kill(found.processes[name].pid, signal.SIGSTOP)
        os.waitpid(found.processes[name].pid, os.WUNTRACED)
    yield found
    for process in found.processes.values():
        process.kill()
        process.communicate(timeout=30)
    with Store.open(path) as store:
        assert store.maintenance.verify_store(full=True) == []


class Operator:
    """Types the commands of one section after the other, with what the page leaves open filled in."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._left = sections()

    def section(self, title: str, codes: dict[str, int] | None = None, **words: str) -> list[str]:
        """What the commands of a section print; each exits with 0, or as `codes` says of what stands in it."""
        found = []
        for line in self._left.pop(title):
            filled = line.replace('"..."', '"as the runbook says"')
            for name, word in words.items():
                filled = re.sub(rf"\b{name}\b", word, filled)
            found.append(self._type(filled, codes or {}))
        return found

    def _type(self, line: str, codes: dict[str, int]) -> str:
        expected = next((code for part, code in codes.items() if part in line), 0)
        if not line.startswith("txnctl "):
            subprocess.run(["sh", "-c", line], check=True, timeout=30)
            return ""
        outcome = self._run(*shlex.split(line)[1:])
        assert outcome.status == expected, f"{line}: {outcome}"
        return str(outcome.out)

    def finish(self) -> None:
        """No section was left out."""
        assert self._left == {}


def test_the_runbook_frees_a_stuck_store(run: Any, stuck: Stuck) -> None:
    """Step by step, to the last message; no command of the page is left out."""
    operator, ids = Operator(run), stuck.ids
    (lag,) = operator.section("1. Slow, or blocked?", TOPIC="orders")
    assert f"billing waits behind transaction {ids['idle']}" in lag
    chain, drawing = operator.section("2. Which transaction blocks?", TOPIC="orders")
    assert [line.split()[1] for line in chain.splitlines()[3:6]] == [
        ids[name] for name in ("idle", "killed", "stopped")
    ]
    assert "4 messages blocked" in drawing
    (why,) = operator.section("3. Why, and is ending the transaction safe?", ID=ids["idle"])
    command = why.rpartition("Next: txnctl ")[2].strip()
    (dry,) = operator.section("4. Effects of an abort", ID=ids["idle"])
    assert command == f"transactions abort {ids['idle']} --dry-run"
    assert "releases" in dry
    assert "unblocks     1 of 4" in dry
    version = dry.rpartition("--if-version ")[2].split()[0]
    operator.section("A page for colleagues")
    assert "1 open transaction is late" in (stuck.path.parent / "incident.html").read_text()
    do_it(operator, run, stuck, version)
    the_rest(operator, run, stuck)
    for name in ("consumer", "living", "quiet"):
        stuck.processes[name].kill()
        stuck.processes[name].wait(timeout=30)
    operator.section("To move a store to a larger disk", DIR=str(stuck.path.parent / "larger"))
    operator.finish()
    assert run("subscriptions", "lag", "orders", "billing", "-o", "json").json["blocked"] == 0
    assert run("transactions", "list", "-o", "json").json == []


def do_it(operator: Operator, run: Any, stuck: Stuck, version: str) -> None:
    """The idle one is aborted, once; its producer loses its session; then the orphan and the stopped one go."""
    ids = stuck.ids
    done, again, trail, history = operator.section(
        "5. Abort", {"--fence": 4}, ID=ids["idle"], TOPIC="orders", N=version
    )
    assert done.startswith(f"Aborted {ids['idle']}")
    assert again == ""
    assert "as the runbook says" in trail
    assert history.splitlines()[1].startswith(ids["idle"])
    orphans, plan, reaped = operator.section("When the owner is dead")
    for text in (orphans, plan, reaped):
        assert ids["killed"] in text
    stopped = stuck.processes["stopped"]
    assert f"kill -CONT {stopped.pid}" in run("transactions", "explain", ids["stopped"]).out
    assert stopped.stdin is not None
    stopped.stdin.close()
    stopped.stdin = None
    *_, waited = operator.section("When the owner is stopped", ID=ids["stopped"], PID=str(stopped.pid))
    assert f"{ids['stopped']} was committed at" in waited
    words = {"ID": stuck.ids["living"], "PID": str(stuck.processes["living"].pid), "N": "2"}
    why, _, plan, done = operator.section("When the owner lives and does nothing", **words)
    assert "lives and does nothing with it" in why
    assert "its next use of the transaction fails" in plan
    assert done.startswith(f"Aborted {words['ID']}")


def the_rest(operator: Operator, run: Any, stuck: Stuck) -> None:
    """The other ways to be stuck: consumers, pending acknowledgements, locks, readers, producers, keys; and cron."""
    settle = {"TOPIC": "payments", "SUBSCRIPTION": "settle"}
    shown, plan, evicted = operator.section("When messages are visible and do not come", **settle)
    assert "stopped" in shown
    assert "5 messages in flight" in plan
    assert "5 messages in flight" in evicted
    stuck.start("quiet", IDLE["quiet"])
    words = {"CONSUMER": "worker", "PID": str(stuck.processes["quiet"].pid)}
    found, _, plan, _ = operator.section("When a living consumer acknowledges nothing", **settle, **words)
    assert "has acknowledged none for 2m" in " ".join(found.split())
    assert "5 messages in flight" in plan
    with Store.open(stuck.path) as store:
        with store.subscribe("payments", "settle") as consumer:
            txn = store.begin_transaction()
            consumer.acknowledge(list(consumer.receive_batch(5, timeout=0)), txn=txn)
        owner = store.create_producer("led", access_mode=AccessMode.EXCLUSIVE)
        (pending,) = operator.section(
            "When messages were acknowledged and are neither gone nor delivered again", **settle
        )
        assert str(txn) in pending
        store.admin.transactions.abort_transaction(txn)
        overdue = store.begin_transaction(timeout=0.001)
        (locks,) = operator.section("When nothing can be written at all")
        assert "lease" in locks
        operator.section("When the file grows although everything is consumed")
        held, plan, fenced = operator.section("When a producer cannot connect", TOPIC="led")
        assert owner.producer_name in held
        assert owner.producer_name in plan
        assert "Fenced the producers of led" in fenced
    claims = {"TOPIC": "claims", "SUBSCRIPTION": "settle"}
    with Store.open(stuck.path) as store:
        store.create_topic("claims")
        with store.subscribe("claims", "settle", max_redeliver_count=0) as consumer:
            store.create_producer("claims").send_batch([b"poison", b"poison"])
            for message in consumer.receive_batch(2, timeout=1):
                consumer.negative_acknowledge(message, delay=0)
            assert not consumer.receive_batch(1, timeout=0)
    letters, plan, one, rest = operator.section("When messages went to the dead-letter topic", **claims)
    assert letters.count("poison") == 2
    for text, number in ((plan, "2 dead letters"), (one, "1 dead letter "), (rest, "1 dead letter ")):
        assert number in text
    with Store.open(stuck.path) as store:
        txn = store.begin_transaction()
        _, space, *_ = operator.section("When the disk is full", TABLE="balances", TXN=str(txn), **claims)
        assert "claims" in space
        store.admin.transactions.abort_transaction(txn, force=True)
    operator.section("When transactions lose keys of tables", TABLE="balances")
    assert str(overdue) in operator.section("From cron")[0]
