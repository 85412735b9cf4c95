"""The example of a bank that settles: real workers that lose conflicts and are killed, and accounts that agree.

Nothing here waits for a time to pass: what is waited for is a booking, or the end of a process.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store
from storage.errors import AlreadyExists, StoreNotFound, TxnctlError
from tests.processes.child import PATIENCE_S, ROOT, Child
from tests.row_json import row_json
from txnctl.demo.generator import generate

EXAMPLE = str(ROOT / "examples" / "settlement")
WORKER = str(ROOT / "examples" / "settlement" / "worker.py")
KILLED_AT = """
import os, runpy, signal, sys
from storage import faults
_, program, path, point = sys.argv
sys.argv = [program, path]
faults.arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
runpy.run_path(program, run_name="__main__")
"""
Start = Callable[..., Child]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the store will lie, beside an example that finds the engine; it is verified at the end if it was made."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    place = str(tmp_path / "bank")
    yield place
    if Path(place).exists():
        with Store.open(place) as store:
            assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def start(path: str) -> Iterator[Start]:
    """Starts a program of the example; all are gone before the store is verified."""
    started: list[Child] = []

    def run(*command: str) -> Child:
        started.append(Child(list(command)))
        return started[-1]

    yield run
    for child in started:
        child.close()


@pytest.fixture
def bank(path: str, start: Start) -> Iterator[Store]:
    """A bank without accounts and requests, open in the process of the test."""
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("requests")
        store.create_topic("bookings")
        store.create_table("accounts")
        yield store


def ask(store: Store, account: str, number: int, delta: int, bank: str | None = None) -> None:
    """Send a request."""
    with store.create_producer("requests") as producer:
        producer.send(json.dumps({"id": number, "delta": delta, "bank": bank}).encode(), key=account)


def bookings(store: Store, count: int) -> list[tuple[str, int, int]]:
    """Account, request and balance of every booking, once there are so many."""
    reader = store.reader("bookings")
    messages = [reader.read_next(timeout=PATIENCE_S) for _ in range(count)]
    messages += list(reader)
    facts = [json.loads(message.value or b"") for message in messages]
    return [
        ((message.key or b"").decode(), each["id"], each["balance"])
        for message, each in zip(messages, facts, strict=True)
    ]


def balances(store: Store) -> dict[str, int]:
    return {row.key.decode(): int(row.value) for row in store.table("accounts").scan()}


def test_two_workers_that_are_killed_settle_everything_once(start: Start, path: str):
    """Whatever the kills hit, every booking has the balance that the data say, and all accounts agree with the data."""
    kills, each = 6, 16
    play = start(EXAMPLE, path, "--accounts", "40", "--each", str(each), "--kills", str(kills))
    said = []
    while (line := play.line(2 * PATIENCE_S)) is not None:
        said.append(line)
    assert play.wait() == 0, (said, play.complaint())
    assert sum(line.startswith("killed worker ") for line in said) == kills
    assert sum(line.startswith("ok ") for line in said) == 4

    data = [line for line in generate(40) if line.acct_seq <= each]
    accounts: Counter[str] = Counter()
    for line in data:
        accounts[str(line.account_id)] += line.delta
        if line.is_remittance:
            accounts[f"bank:{line.bank}"] -= line.delta
    with Store.open(path) as store:
        assert balances(store) == dict(accounts)
        assert sorted(bookings(store, len(data))) == sorted(
            (str(line.account_id), line.trans_id, line.balance) for line in data
        )
        stats = row_json(store.reports.subscription_stats("requests", "settlement"))
        assert (stats["msgBacklog"], stats["pending"]) == (0, 0)


@pytest.mark.parametrize("point", ["ledger.before_append", "table.before_write", "txn.before_record"])
def test_what_a_killed_worker_left_undone_is_done_by_the_next(
    start: Start, bank: Store, path: str, point: str
):
    """One dies before it reports, while it writes the accounts, in the middle of its commit: nothing of it shows."""
    ask(bank, "1", 1, 500)
    ask(bank, "1", 2, -100, "AB")
    victim = start("-c", KILLED_AT, WORKER, path, point)
    assert victim.wait() == -9, victim.complaint()
    assert (balances(bank), list(bank.reader("bookings"))) == ({}, [])
    start(WORKER, path)
    assert bookings(bank, 2) == [("1", 1, 500), ("1", 2, 400)]
    assert balances(bank) == {"1": 400, "bank:AB": 100}


def test_a_worker_that_loses_a_conflict_wins_it_with_a_higher_priority(start: Start, bank: Store, path: str):
    """It loses to one of high priority that is before it; its second try has the same, is younger, and goes on."""
    rival = bank.begin_transaction(priority="high")
    bank.table("accounts").put(b"bank:AB", b"7", txn=rival)
    ask(bank, "1", 1, 500)
    ask(bank, "1", 2, -100, "AB")
    start(WORKER, path)
    assert bookings(bank, 2) == [("1", 1, 500), ("1", 2, 400)]
    assert balances(bank) == {"1": 400, "bank:AB": 100}
    second, first = bank.reports.list_conflicts()
    assert (first.kind, str(first.winner), first.key) == ("held", str(rival), b"bank:AB")
    assert (second.kind, str(second.loser), second.key) == ("push", str(rival), b"bank:AB")


@pytest.mark.parametrize(
    ("program", "error"), [(WORKER, StoreNotFound), (EXAMPLE, AlreadyExists)], ids=["worker", "bank"]
)
def test_a_store_that_cannot_be_used_is_an_error_in_words(
    start: Start, path: str, program: str, error: type[TxnctlError]
):
    """A worker needs one that is there, the bank makes its own; each ends as txnctl does."""
    if error is AlreadyExists:
        Store.create(path)
    child = start(program, path)
    assert child.wait() == error.exit_code
    assert child.complaint().startswith("error: ")
