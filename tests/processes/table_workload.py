"""A worker of the serializability test: random transactions over few keys of one table, several of them at a time.

    python -m tests.processes.table_workload STORE LOGS NAME SEED BOOT

Keys are read, written, deleted and scanned, by attached and detached transactions of all priorities, by plain puts,
with conditions; beside them read-committed reads in every check mode, gc, and the file of reads removed. A detached transaction may be left
half-way for any other worker to go on with. What was done stands in LOGS/NAME (see `table_log`).

BOOT is the number of the machine's life: with another one the worker finds itself after a reboot.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

from storage import CheckMode, Store, Table, Transaction, TxnID
from storage.errors import ConditionFailed, TxnctlError
from storage.process.clock import Clock
from storage.table.visibility import Row
from tests.processes.parent import has_let_go, say
from tests.processes.table_log import UNKNOWN, Log, decode, encode
from tests.row_json import row_json
from tests.storage.table.history import Get, Operation, Put, Scan
from tests.storage.table.recency import CommittedRead

TABLE = "accounts"
KEYS = [f"{group}{number}" for group in "abc" for number in range(6)]
MANY = 70
"""Keys of a transaction whose commit leaves them all as they are."""
SLOTS = 3
ALL_KEYS = KEYS + [f"m{slot}{number:02}" for slot in range(SLOTS) for number in range(MANY)]
AT_A_TIME = 3

EXPECTED = {
    "write-too-old", "lost-conflict", "request-too-old", "transaction-not-open", "transaction-timed-out",
}  # fmt: skip
PRIORITIES = ["medium"] * 8 + ["highest", "high", "low", "lowest"]


class Life(Clock):
    """The machine's clocks in its n-th life: the same wall, another boot."""

    __slots__ = ("_life",)

    def __init__(self, life: int) -> None:
        super().__init__()
        self._life = md5(b"%d" % life, usedforsecurity=False).digest()

    def boot_id(self) -> bytes:
        return self._life

    def shared_id(self) -> bytes:
        return self._life


class Running:
    """A transaction under way."""

    def __init__(
        self, txn: Transaction | TxnID, version: int, began: int, steps: int, operations: list[Operation]
    ) -> None:
        self.txn = txn
        self.version = version
        self.began = began
        self.steps = steps
        self.operations = operations
        self.asked = 0

    @property
    def is_attached(self) -> bool:
        return isinstance(self.txn, Transaction)


class Worker:
    """See the module."""

    def __init__(self, store: Store, logs: Path, name: str, chance: random.Random) -> None:
        self._store = store
        self._table: Table = store.table(TABLE)
        self._log = Log(str(logs / name))
        self._left = logs / "left"
        self._name = name
        self._chance = chance
        self._values = 0
        self._running: list[Running] = []

    def work(self) -> None:
        """Until the test lets go; then end what is under way."""
        while not has_let_go():
            self._step()
        while self._running:
            self._go_on(self._running[-1])

    def _step(self) -> None:
        chance = self._chance.random()
        if chance < 0.12:
            self._read_committed()
        elif chance < 0.16:
            self._put_plainly()
        elif chance < 0.161:
            self._store.maintenance.collect_garbage()
        elif chance < 0.163:
            # As if by somebody who tidies up: what was read is forgotten under everybody.
            (Path(self._store.path) / "reads.cache").unlink(missing_ok=True)
        elif len(self._running) < AT_A_TIME:
            self._begin()
        else:
            self._go_on(self._chance.choice(self._running))

    def _value(self) -> str:
        self._values += 1
        return f"{self._name}/{self._values}"

    # Transactions

    def _begin(self) -> None:
        if self._chance.random() < 0.1 and self._take_over():
            return
        began, priority = time.monotonic_ns(), self._chance.choice(PRIORITIES)
        steps = self._chance.randint(1, 5)
        if self._chance.random() < 0.6:
            txn = self._store.transaction(priority=priority, timeout=60)
            self._running.append(Running(txn, txn.timestamp, began, steps, []))
            return
        number = self._store.begin_transaction(priority=priority, timeout=self._chance.choice([2, 60]))
        version = int(row_json(self._store.reports.show_transaction(number))["timestamp"])
        self._running.append(Running(number, version, began, steps, []))

    def _go_on(self, running: Running) -> None:
        """One more operation, or the end."""
        try:
            if running.steps > 0:
                running.steps -= 1
                self._operate(running)
            elif not running.is_attached and self._chance.random() < 0.1 and not has_let_go():
                self._leave(running)
            else:
                self._end(running)
        except TxnctlError as error:
            if error.code not in EXPECTED:
                raise
            txn = None if running.is_attached else str(running.txn)
            self._log.drop(running.version, txn, running.asked, error.code, running.operations)
            self._running.remove(running)

    def _operate(self, running: Running) -> None:
        steps: list[tuple[Callable[[Running], None], int]] = [
            (self._get, 8), (self._put, 8), (self._scan, 4), (self._put_if, 3), (self._flush, 1), (self._put_many, 1),
        ]  # fmt: skip
        step = self._chance.choices([each for each, _ in steps], [weight for _, weight in steps])[0]
        step(running)

    def _end(self, running: Running) -> None:
        if self._chance.random() < 0.05:
            (running.txn.abort if isinstance(running.txn, Transaction) else self._abort_detached(running))()
            txn = None if running.is_attached else str(running.txn)
            self._log.drop(running.version, txn, 0, "asked", running.operations)
        else:
            running.asked = self._log.ask(running.version, running.began, running.operations)
            if isinstance(running.txn, Transaction):
                running.txn.commit()
            else:
                self._store.commit_transaction(running.txn)
            self._log.answer(running.asked, running.version)
        self._running.remove(running)

    def _abort_detached(self, running: Running) -> Callable[[], object]:
        # Its last user may be the worker that left it, alive: only the taker knows that nobody goes on with it.
        return lambda: row_json(self._store.admin.transactions.abort_transaction(running.txn, force=True))

    def _leave(self, running: Running) -> None:
        """For any other worker, or for nobody."""
        self._running.remove(running)
        place = self._left / f"{running.version}"
        state = [str(running.txn), running.version, running.began, encode(running.operations)]
        place.with_suffix(".new").write_text(json.dumps(state))
        place.with_suffix(".new").rename(place)

    def _take_over(self) -> bool:
        """Go on with a transaction that somebody left, if there is one."""
        for place in self._left.iterdir():
            mine = place.with_suffix(f".{self._name}")
            if place.suffix:
                continue
            try:
                place.rename(mine)
            except FileNotFoundError:
                continue
            txn, version, began, operations = json.loads(mine.read_text())
            mine.unlink()
            steps = self._chance.randint(0, 2)
            self._running.append(Running(TxnID.parse(txn), version, began, steps, decode(operations)))
            return True
        return False

    # Operations

    def _key(self) -> str:
        return self._chance.choice(KEYS if self._chance.random() < 0.9 else ALL_KEYS)

    def _see(self, running: Running, key: str) -> Get:
        found = _get(key, self._table.get_row(key.encode(), txn=running.txn))
        running.operations.append(found)
        return found

    def _get(self, running: Running) -> None:
        self._see(running, self._key())

    def _put(self, running: Running) -> None:
        key = self._key()
        value = None if self._chance.random() < 0.15 else self._value()
        if value is None:
            self._table.delete(key.encode(), txn=running.txn)
        else:
            self._table.put(key.encode(), value.encode(), txn=running.txn)
        running.operations.append(Put(key, value))

    def _put_if(self, running: Running) -> None:
        """A condition, right or wrong; either way the key has been read."""
        key, value = self._key(), self._value()
        if self._chance.random() < 0.5:
            found, wanted = Get(key, 0, None), {"if_absent": True}
        else:
            found = self._see(running, key)
            wanted = {"if_version": found.version}
        has: object = None
        try:
            self._table.put(key.encode(), value.encode(), txn=running.txn, **wanted)
        except ConditionFailed as error:
            has = error.details["version"]
        if has is None:
            running.operations += [found, Put(key, value)]
        else:
            assert "if_absent" in wanted, "a version that was read is there as long as the transaction is"
            assert str(self._see(running, key).version) == has

    def _put_many(self, running: Running) -> None:
        """So many keys that the commit does not finalise them."""
        if self._chance.random() < 0.8:
            return
        slot = self._chance.randrange(SLOTS)
        value = self._value()
        for number in range(MANY):
            key = f"m{slot}{number:02}"
            self._table.put(key.encode(), value.encode(), txn=running.txn)
            running.operations.append(Put(key, value))

    def _flush(self, running: Running) -> None:
        if isinstance(running.txn, Transaction):
            running.txn.flush()

    def _bounds(self) -> tuple[str, str | None, dict[str, bytes]]:
        """A range, as keys and as the store takes it."""
        if self._chance.random() < 0.5:
            prefix = self._chance.choice(["a", "b", "c", "m0", "a1", ""])
            end = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else None
            return prefix, end, {"prefix": prefix.encode()}
        start, end = sorted(self._chance.sample(KEYS, 2))
        return start, end, {"start": start.encode(), "end": end.encode()}

    def _scan(self, running: Running) -> None:
        start, end, bounds = self._bounds()
        is_reverse, limit = self._chance.random() < 0.5, self._chance.choice([None, None, 1, 3])
        rows = [
            _get(row.key.decode(), row)
            for row in self._table.scan(**bounds, reverse=is_reverse, limit=limit, txn=running.txn)  # type: ignore[arg-type]
        ]
        assert [row.key for row in rows] == sorted((row.key for row in rows), reverse=is_reverse)
        if limit is not None and len(rows) == limit:
            # What lies beyond was not asked for.
            start, end = (rows[-1].key, end) if is_reverse else (start, rows[-1].key + "\0")
        running.operations.append(Scan(start, end, rows))

    # Beside transactions

    def _put_plainly(self) -> None:
        key, value, began = self._key(), self._value(), time.monotonic_ns()
        operations: list[Operation] = [Put(key, value)]
        asked = self._log.ask(0, began, operations)
        try:
            version = self._table.put(key.encode(), value.encode())
        except TxnctlError as error:
            if error.code not in EXPECTED:
                raise
            self._log.drop(0, None, asked, error.code, operations)
        else:
            self._log.answer(asked, version)

    def _read_committed(self) -> None:
        """Keys, or the rows of a range: each page of it is a moment of its own, between those before and after."""
        check = self._chance.choice(list(CheckMode))
        began = time.monotonic_ns()
        chance, key = self._chance.random(), self._key()
        if chance < 0.3:
            value = self._table.get(key.encode(), check=check)
            found = [Get(key, 0, None) if value is None else Get(key, UNKNOWN, value.decode())]
        elif chance < 0.6:
            found = [_get(key, self._table.get_row(key.encode(), check=check))]
        else:
            _, _, bounds = self._bounds()
            found = [_get(row.key.decode(), row) for row in self._table.scan(**bounds, check=check)]  # type: ignore[arg-type]
        ended = time.monotonic_ns()
        self._log.read([CommittedRead(check.value, *each, began, ended) for each in found])


def _get(key: str, row: Row | None) -> Get:
    return Get(key, 0, None) if row is None else Get(key, row.version, row.value.decode())


def main(path: str, logs: str, name: str, seed: str, life: str) -> None:
    """See the module."""
    with Store.open(path, lock_timeout=120, clock=Life(int(life))) as store:
        worker = Worker(store, Path(logs), name, random.Random(int(seed)))
        say("started")
        worker.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
