"""Tables through the public Python API: accounts of equal balance, and transfers among them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from benchmarks.contention import pair
from storage import Store
from storage.errors import TxnctlError

TABLE = "accounts"
BALANCE = b"%0100d" % 1000
"""A value of 100 bytes."""


def key(number: int) -> bytes:
    """The key of an account."""
    return b"account-%08d" % number


def rows(count: int) -> Iterable[tuple[bytes, bytes]]:
    """`count` accounts with their balance."""
    return ((key(number), BALANCE) for number in range(count))


def create(directory: Path, count: int) -> None:
    """Create a store with one table of `count` accounts, and remove the intents of the bulk import by gc."""
    Store.create(directory)
    with Store.open(directory) as store:
        store.create_table(TABLE)
        store.table(TABLE).import_rows(rows(count))
        store.maintenance.collect_garbage()


class Transfers:
    """`Work`: 2 get, 2 put and commit of an attached transaction; one durable commit."""

    def __init__(self, directory: Path, count: int, number: int) -> None:
        self._store = Store.open(directory, lock_timeout=60)
        self._table = self._store.table(TABLE)
        self._chance = random.Random(number)
        self._number, self._count = number, count
        self._source = self._target = b""

    def choose(self, load: str) -> None:
        source, target = pair(load, self._chance, self._number, self._count)
        self._source, self._target = key(source), key(target)

    def attempt(self) -> bool:
        table = self._table
        try:
            with self._store.transaction() as txn:
                source, target = table.get(self._source, txn=txn), table.get(self._target, txn=txn)
                assert source is not None and target is not None, "all accounts are there"
                table.put(self._source, b"%0100d" % (int(source) - 1), txn=txn)
                table.put(self._target, b"%0100d" % (int(target) + 1), txn=txn)
        except TxnctlError as error:
            return _must_retry(error)
        return True

    def close(self) -> None:
        self._store.close()


class Writes:
    """`Work`: read one key, write it and commit. Each writer has separate keys, so that writers never conflict."""

    def __init__(self, directory: Path, count: int, writers: int, number: int) -> None:
        self._store = Store.open(directory, lock_timeout=60)
        self._table = self._store.table(TABLE)
        self._chance = random.Random(number)
        self._own_accounts = range(number, count, writers)
        self._key = b""

    def choose(self, load: None) -> None:  # noqa: ARG002
        self._key = key(self._chance.choice(self._own_accounts))

    def attempt(self) -> bool:
        try:
            with self._store.transaction() as txn:
                before = self._table.get(self._key, txn=txn)
                assert before is not None, "all accounts are there"
                self._table.put(self._key, b"%0100d" % (int(before) + 1), txn=txn)
        except TxnctlError as error:
            return _must_retry(error)
        return True

    def close(self) -> None:
        self._store.close()


class Reads:
    """`Work`: one transaction of `READS` point reads, at the isolation level of the load."""

    READS = 10

    def __init__(self, directory: Path, count: int, number: int) -> None:
        self._store = Store.open(directory, lock_timeout=60)
        self._table = self._store.table(TABLE)
        self._chance = random.Random(number)
        self._count = count
        self._keys: list[bytes] = []
        self._isolation = ""

    def choose(self, load: str) -> None:
        self._isolation = load
        self._keys = [key(self._chance.randrange(self._count)) for _ in range(self.READS)]

    def attempt(self) -> bool:
        try:
            with self._store.transaction(isolation=self._isolation) as txn:
                for name in self._keys:
                    assert self._table.get(name, txn=txn) is not None, "all accounts are there"
        except TxnctlError as error:
            return _must_retry(error)
        return True

    def close(self) -> None:
        self._store.close()


def _must_retry(error: TxnctlError) -> bool:
    """Report a lost conflict, which the caller retries; raise any different error, which ends the benchmark."""
    if not error.retryable:
        raise error
    return False
