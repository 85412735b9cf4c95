"""`python -m benchmarks.calls [OPERATION ...] [--functions N]`: the calls of an operation on a warm store.

A call is a function entry that cProfile sees: of a Python function (each resumption of a generator too), or of a
function or method in C. Making an object of a type in C (`int()`, `dict()`) is none. Calls do not depend on the
machine: the store lies on a memory file system, and `tests/benchmarks/test_calls.py` holds the figures.

Each operation runs until it is warm, then a fixed number of times, each counted by itself. The median leaves out the
calls of a few operations: of the prologue of a batch, of the preallocation of a file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from cProfile import Profile
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median
from types import CodeType
from typing import NamedTuple

from benchmarks import accounts
from benchmarks.bursts import Operation
from benchmarks.engine import TOPIC
from benchmarks.options import add_names, all_known
from benchmarks.payload import Payload
from benchmarks.report import Comparison
from storage import EARLIEST, Store
from tests.storage.many_messages import write_messages

HEADINGS = ("operation", "calls", "Python", "LMDB", "system")
MEMORY = Path("/dev/shm")
_WINDOW = 2000
_ROWS = 1000
_ACCOUNTS = 2000
_LMDB_TYPES = ("'Cursor'", "'Environment'", "'Transaction'")
_SYSTEM_MODULES = ("fcntl.", "posix.")


class Calls(NamedTuple):
    """The calls of one operation, or of one message or row of the operation.

    Attributes:
        calls: all of them.
        python: of Python functions.
        lmdb: of methods of LMDB's transactions, cursors and environment.
        system: of functions of `os` and `fcntl`; LMDB's own system calls are not seen.
    """

    calls: float
    python: float
    lmdb: float
    system: float


class Counting(NamedTuple):
    """An operation to be counted.

    Attributes:
        run: the operation.
        units: messages or rows that it handles, by which its calls are divided.
        warmup, rounds: how often it runs first, and how often it is counted.
    """

    run: Operation
    units: int = 1
    warmup: int = 20
    rounds: int = 21


Scene = Callable[[Path], AbstractContextManager[Counting]]
"""Makes a store in an empty directory, and the operation on it."""


@contextmanager
def _topic(directory: Path) -> Iterator[Store]:
    """Open a store of one topic."""
    Store.create(directory / "store")
    with Store.open(directory / "store") as store:
        store.create_topic(TOPIC)
        yield store


@contextmanager
def _table(directory: Path) -> Iterator[tuple[Store, list[bytes]]]:
    """Open a store of one table, and name the keys of its rows."""
    accounts.create(directory / "store", _ACCOUNTS)
    with Store.open(directory / "store") as store:
        yield store, [accounts.key(number) for number in range(_ACCOUNTS)]


@contextmanager
def _send(directory: Path) -> Iterator[Counting]:
    with _topic(directory) as store:
        producer = store.create_producer(TOPIC)
        value = Payload(1).batch()[0]
        yield Counting(lambda: producer.send(value))


@contextmanager
def _transaction(directory: Path) -> Iterator[Counting]:
    with _topic(directory) as store:
        producer = store.create_producer(TOPIC)
        values = Payload(10).batch()

        def run() -> None:
            with store.transaction() as txn:
                for _ in range(3):
                    producer.send_batch(values, txn=txn)

        yield Counting(run)


@contextmanager
def _begin_abort(directory: Path) -> Iterator[Counting]:
    with _topic(directory) as store:
        yield Counting(lambda: store.transaction().abort())


@contextmanager
def _transfer(directory: Path) -> Iterator[Counting]:
    with _table(directory) as (store, keys):
        table, turns = store.table(accounts.TABLE), cycle(keys)

        def run() -> None:
            source, target = next(turns), next(turns)
            with store.transaction() as txn:
                table.get(source, txn=txn)
                table.get(target, txn=txn)
                table.put(source, accounts.BALANCE, txn=txn)
                table.put(target, accounts.BALANCE, txn=txn)

        yield Counting(run)


@contextmanager
def _put(directory: Path) -> Iterator[Counting]:
    with _table(directory) as (store, keys):
        table, turns = store.table(accounts.TABLE), cycle(keys)
        yield Counting(lambda: table.put(next(turns), accounts.BALANCE))


@contextmanager
def _scan(directory: Path) -> Iterator[Counting]:
    with _table(directory) as (store, _keys):
        table = store.table(accounts.TABLE)

        def run() -> None:
            for _row in table.scan(limit=_ROWS):
                pass

        yield Counting(run, _ROWS, warmup=1, rounds=3)


def _receive(size: int, entry: int) -> Scene:
    """Receive and acknowledge a consumer's whole window, `size` messages a batch, of entries of `entry` messages."""

    @contextmanager
    def scene(directory: Path) -> Iterator[Counting]:
        with _topic(directory) as store:
            counting = Counting(lambda: None, _WINDOW, warmup=1, rounds=3)
            write_messages(store, TOPIC, (counting.warmup + counting.rounds) * _WINDOW, size=entry)
            consumer = store.subscribe(TOPIC, "calls", initial_position=EARLIEST, receiver_queue_size=_WINDOW)

            def run() -> None:
                for _ in range(_WINDOW // size):
                    messages = consumer.receive_batch(size)
                    assert len(messages.values) == size, "the topic has them all"
                    consumer.acknowledge(messages)

            yield counting._replace(run=run)
            consumer.close()

    return scene


OPERATIONS: dict[str, Scene] = {
    "send": _send,
    "transaction of 3 x 10 messages": _transaction,
    "begin + abort": _begin_abort,
    "transfer": _transfer,
    "put": _put,
    "scan, per row": _scan,
    "receive + ack by 100 of single messages, per message": _receive(100, 1),
    "receive + ack by 1,000 of single messages, per message": _receive(1000, 1),
    "receive + ack by 1,000 of batches of 1,000, per message": _receive(1000, 1000),
}

_OF_ROWS = {
    "P1": "send",
    "T1": "transaction of 3 x 10 messages",
    "C1": "receive + ack by 1,000 of batches of 1,000, per message",
    "K2": "transfer",
    "read-committed scan of 1,000 rows, 10 % intents": "scan, per row",
    "put of one key, one durable commit": "put",
}
"""The operation of a row, or of one comparison of a row, whose calls are printed beside the times."""


def count(name: str) -> Calls:
    """Count the calls of an operation."""
    return counted(name)[0]


def with_calls(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with the calls of our operations, each counted once."""
    names = [_OF_ROWS.get(of.target.row) or _OF_ROWS.get(of.target.what) for of in comparisons]
    calls = {name: count(name).calls for name in dict.fromkeys(names) if name is not None}
    return [
        comparison if name is None else replace(comparison, calls=calls[name])
        for comparison, name in zip(comparisons, names, strict=True)
    ]


def counted(name: str) -> tuple[Calls, list[tuple[float, str]]]:
    """Count the calls of an operation, and those of each function in a round of the middle, most first."""
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made, OPERATIONS[name](Path(made)) as counting:
        for _ in range(counting.warmup):
            counting.run()
        rounds = [_profiled(counting.run) for _ in range(counting.rounds)]
    sums = [_sums(functions) for functions in rounds]
    calls = Calls(*(median(column) / counting.units for column in zip(*sums, strict=True)))
    middle = min(rounds, key=lambda functions: abs(functions.total() / counting.units - calls.calls))
    return calls, [(number / counting.units, _name(function)) for function, number in middle.most_common()]


def _profiled(run: Operation) -> Counter[CodeType | str]:
    """The calls of each function in one run; a function in C is a text. The functions of this module are left out."""
    profile = Profile()
    profile.enable()
    run()
    profile.disable()
    functions: Counter[CodeType | str] = Counter()
    for entry in profile.getstats():
        code = entry.code
        is_ours = code.co_filename == __file__ if isinstance(code, CodeType) else "_lsprof" in code
        if not is_ours:
            functions[code] += entry.callcount
    return functions


def _sums(functions: Counter[CodeType | str]) -> Calls:
    in_c = {function: number for function, number in functions.items() if isinstance(function, str)}
    return Calls(
        functions.total(),
        functions.total() - sum(in_c.values()),
        sum(number for name, number in in_c.items() if any(word in name for word in _LMDB_TYPES)),
        sum(number for name, number in in_c.items() if any(word in name for word in _SYSTEM_MODULES)),
    )


def _name(function: CodeType | str) -> str:
    if isinstance(function, str):
        return function
    path = Path(function.co_filename)
    return f"{path.parent.name}/{path.name}:{function.co_firstlineno} {function.co_qualname}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the calls of the requested operations; return the exit code (2: no such operation)."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calls", description=(__doc__ or "").split("\n\n")[1]
    )
    add_names(parser, "operation")
    parser.add_argument(
        "--functions", type=int, default=0, metavar="N", help="print the N functions with most calls too"
    )
    options = parser.parse_args(arguments)
    if not all_known("operation", options.names, OPERATIONS):
        return 2
    names = options.names or list(OPERATIONS)
    print(_line(*HEADINGS))
    for name in names:
        calls, functions = counted(name)
        print(_line(name, *(f"{number:,.1f}" for number in calls)), flush=True)
        for number, function in functions[: options.functions]:
            print(f"    {number:8,.1f}  {function}")
    return 0


def _line(*cells: str) -> str:
    name, *figures = cells
    return name.ljust(56) + "".join(figure.rjust(10) for figure in figures)


if __name__ == "__main__":
    sys.exit(main())
