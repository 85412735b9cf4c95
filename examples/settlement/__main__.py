"""A bank whose requests are settled by two workers while somebody kills them, and the audit afterwards.

The bank is that of the demo, made up or read from a file (`--data`): each line of its data is a request, and says what
the balance of its account is afterwards. Now and then, when some more requests are booked, one of the two
workers is killed wherever it is in its work, and another one started. At the end each request must have been booked
once, with the balance that the data say, and all accounts must agree with the data.

    python examples/settlement STORE
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from time import sleep

from worker import ACCOUNTS, BOOKINGS, REQUESTS, SUBSCRIPTION, settlement_account

from storage import Store
from storage.errors import TxnctlError
from storage.json_form import to_json
from txnctl.demo.csv_file import read_bank_csv
from txnctl.demo.generator import generate
from txnctl.demo.transaction import BankTransaction

WORKER = Path(__file__).with_name("worker.py")
WORKERS = 2
PATIENCE_S = 60.0
"""How long the next booking may take; one that takes longer will not come."""

DELAY_S = 0.1
"""A kill comes up to so long after a booking, and so anywhere in the work on others."""


class Workers:
    """The processes that settle, until the block ends."""

    def __init__(self, store_path: str) -> None:
        self._command = [sys.executable, str(WORKER), store_path]
        self._running = [subprocess.Popen(self._command) for _ in range(WORKERS)]

    def kill_one(self, chance: Random) -> int:
        """Kill one (SIGKILL), and start another in its place; the pid of the dead one."""
        victim = self._running.pop(chance.randrange(WORKERS))
        victim.kill()
        victim.wait()
        self._running.append(subprocess.Popen(self._command))
        return victim.pid

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill them all: that is as good an end as any."""
        for each in self._running:
            each.kill()
            each.wait()


def first_of_each(data: Iterable[BankTransaction], count: int) -> list[BankTransaction]:
    """The first so many lines of each account, all accounts side by side."""
    return sorted((line for line in data if line.acct_seq <= count), key=lambda line: line.acct_seq)


def other_bank(line: BankTransaction) -> str | None:
    """The bank that a remittance goes to; None for what stays in the house."""
    return line.bank if line.is_remittance else None


def prepare(path: str, lines: list[BankTransaction]) -> None:
    """Make the store, with one request a line, each under the account whose balance changes."""
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic(BOOKINGS)
        store.create_table(ACCOUNTS)
        with store.create_producer(REQUESTS, create_topic=True) as producer:
            producer.send_batch(
                [
                    json.dumps({"id": line.trans_id, "delta": line.delta, "bank": other_bank(line)}).encode()
                    for line in lines
                ],
                keys=[str(line.account_id) for line in lines],
            )


def settle(path: str, count: int, kills: int, chance: Random) -> None:
    """Have the workers settle until so many requests are booked, and kill one now and then."""
    moments = Counter(chance.randrange(count) for _ in range(kills))
    with Store.open(path, read_only=True) as store, Workers(path) as workers:
        bookings = store.reader(BOOKINGS)
        for booked in range(count):
            bookings.read_next(timeout=PATIENCE_S)
            for _ in range(moments[booked]):
                sleep(chance.random() * DELAY_S)
                print(f"killed worker {workers.kill_one(chance)}", flush=True)


def expected_accounts(lines: list[BankTransaction]) -> dict[bytes, int]:
    """What every account has at the end, by the data: the customers', and what is owed to other banks."""
    found: dict[bytes, int] = {}
    for line in lines:
        found[str(line.account_id).encode()] = line.balance
        if bank := other_bank(line):
            found[settlement_account(bank)] = found.get(settlement_account(bank), 0) - line.delta
    return found


def audit(store: Store, lines: list[BankTransaction]) -> Iterator[tuple[bool, str]]:
    """Compare what the workers did with the data: for each check whether it holds, and what was seen."""
    bookings = [json.loads(message.value or b"") for message in store.reader(BOOKINGS)]
    booked = Counter((each["id"], each["balance"]) for each in bookings)
    agrees = booked == Counter((line.trans_id, line.balance) for line in lines)
    yield agrees, f"{len(bookings):,} bookings, one for each request, with the balance that the data say"
    accounts = {row.key: int(row.value) for row in store.table(ACCOUNTS).scan()}
    yield accounts == expected_accounts(lines), f"{len(accounts):,} accounts, which agree with the data"
    left = to_json(store.reports.subscription_stats(REQUESTS, SUBSCRIPTION))["msgBacklog"]
    yield left == 0, f"{left:,} requests left"
    problems = to_json(store.maintenance.verify_store())
    yield not problems, f"{len(problems):,} problems found in the store"


def main() -> int:
    """Prepare, settle, audit; the exit code."""
    parser = argparse.ArgumentParser(
        description="Two workers settle the requests of a bank while they are killed."
    )
    parser.add_argument("store", help="directory of the store, which is made")
    parser.add_argument("--accounts", type=int, default=50, help="accounts to make up")
    parser.add_argument("--data", metavar="FILE", help="a file of the Czech bank data (CSV) instead")
    parser.add_argument("--each", type=int, default=20, help="requests of each account, from its first on")
    parser.add_argument("--kills", type=int, default=6, help="how often a worker is killed")
    parser.add_argument("--seed", type=int, default=1, help="of when, and which")
    asked = parser.parse_args()
    try:
        data = read_bank_csv(asked.data) if asked.data else generate(asked.accounts)
        lines = first_of_each(data, asked.each)
        prepare(asked.store, lines)
        print(f"{len(lines):,} requests, {WORKERS} workers", flush=True)
        settle(asked.store, len(lines), asked.kills, Random(asked.seed))
        with Store.open(asked.store) as store:
            print(f"conflicts lost, and run again: {len(to_json(store.reports.list_conflicts())):,}")
            checks = list(audit(store, lines))
    except TxnctlError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    for holds, seen in checks:
        print("ok " if holds else "BAD", seen)
    return 0 if all(holds for holds, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
