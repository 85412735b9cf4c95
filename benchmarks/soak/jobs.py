"""The processes of a soak: `python -m benchmarks.soak.jobs JOB STORE SPEED ORIGIN ORIGIN_WALL`.

Each works at a steady pace until a signal ends it, and writes a line once it is at work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

from benchmarks.soak.fast_clock import FastClock
from storage import EARLIEST, LATEST, Store
from storage.errors import TxnctlError

TOPIC = "soak"
SUBSCRIPTION = "soak"
TABLE = "soak"
KEYS = 200
DAY_S = 24 * 3600.0
BATCH = [b"%0100d" % number for number in range(100)]
_PACE_S = 0.02


def open_store(path: str, clock: FastClock) -> Store:
    """Open the store of a soak. The wait for the gate is told by the fast clock, and so is long."""
    return Store.open(path, clock=clock, lock_timeout=30 * DAY_S)


def _paced() -> Iterator[int]:
    """Count turns, a fixed time apart."""
    turn, due = 0, time.monotonic()
    while True:
        yield turn
        turn, due = turn + 1, max(due + _PACE_S, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))


def _at_work() -> None:
    print("at work", flush=True)


def produce(store: Store) -> None:
    """Send batches: one of three outside transactions, one committed, one aborted."""
    with store.create_producer(TOPIC) as producer:
        _at_work()
        for turn in _paced():
            if turn % 3 == 0:
                producer.send_batch(BATCH)
                continue
            with store.transaction(timeout=DAY_S) as txn:
                producer.send_batch(BATCH, txn=txn)
                if turn % 3 == 2:
                    txn.flush()
                    txn.abort()


def consume(store: Store) -> None:
    """Receive and acknowledge, every other batch in a transaction; give a message back now and then."""
    consumer = store.subscribe(TOPIC, SUBSCRIPTION, initial_position=EARLIEST)
    _at_work()
    for turn in _paced():
        messages = consumer.receive_batch(1000, timeout=0)
        if not messages:
            continue
        if turn % 2:
            with store.transaction(timeout=DAY_S) as txn:
                consumer.acknowledge(messages, txn=txn)
        else:
            consumer.acknowledge(messages)


def update(store: Store) -> None:
    """Change rows of a table, after serializable reads of a key and of a range."""
    table = store.table(TABLE)
    _at_work()
    for turn in _paced():
        key = b"key-%d" % (turn % KEYS)
        try:
            with store.transaction(timeout=DAY_S) as txn:
                before = table.get(key, txn=txn)
                for _ in table.scan(start=b"key-1", end=b"key-11", limit=5, txn=txn):
                    pass
                table.put(key, b"%d" % (int(before or b"0") + 1), txn=txn)
        except TxnctlError as error:
            print(f"update: {error.message}", file=sys.stderr, flush=True)


def read(store: Store) -> None:
    """Follow the topic without a subscription; begin anew at the end where retention was faster."""
    _at_work()
    while True:
        with store.reader(TOPIC, start=LATEST) as reader:
            try:
                for _ in _paced():
                    reader.read_batch(1000)
            except TxnctlError:
                continue


def hold(store: Store) -> None:
    """Keep a view open for a tenth of a second, again and again: to be stopped and killed inside."""
    _at_work()
    while True:
        with store.connection.view() as view:
            assert view.superblock.commits
            time.sleep(0.1)
        time.sleep(0.01)


JOBS: dict[str, Callable[[Store], None]] = {
    "produce": produce, "consume": consume, "update": update, "read": read, "hold": hold,
}  # fmt: skip


def main() -> None:
    """Run the named job."""
    job, path, *clock = sys.argv[1:]
    JOBS[job](open_store(path, FastClock.of(clock)))


if __name__ == "__main__":
    main()
