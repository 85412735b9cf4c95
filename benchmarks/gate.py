"""`python -m benchmarks.gate [--in-flight N ...] [--batch N ...] [--dir DIR]`: the hold of the writer gate by changes.

Messages are sent one by one, so each is an entry of its own, or in batches, which are an entry each. All are in flight
at a consumer, pending in a transaction, or given back; or delayed; or the topic has a tenth as many subscriptions. The
directory is on a memory file system by default, where a flush costs nothing: the goal, 100 ms, does not count the
flush. Operations of LMDB under the gate are counted in a second run.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

from benchmarks.changes import delays, dispatches, ends, limits
from benchmarks.changes.scene import TOPIC, Scenarios, Scene
from storage import Store
from storage.process.writer_gate import WriterGate
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages

_GOAL_MS = 100.0

SCENARIOS: Scenarios = {
    **ends.SCENARIOS,
    **limits.SCENARIOS,
    **dispatches.SCENARIOS,
    **delays.SCENARIOS,
}

SIZELESS = {*delays.SCENARIOS, *limits.OF_MANY_SUBSCRIPTIONS}
"""Scenarios that the number of messages in an entry does not change: measured for the first number alone."""


class Held:
    """The longest hold of the gate in ms: by the clock, and in processor time, which does not depend on other load."""

    def __init__(self) -> None:
        self.longest_ms = self.longest_cpu_ms = 0.0


@contextmanager
def _timed() -> Iterator[Held]:
    held, enter, leave = Held(), WriterGate.enter, WriterGate.leave
    began: list[tuple[float, float]] = []

    def timed_enter(gate: WriterGate, *args: Any) -> None:
        enter(gate, *args)
        began.append((perf_counter(), thread_time()))

    def timed_leave(gate: WriterGate) -> None:
        leave(gate)
        if began:
            clock, cpu = began.pop()
            held.longest_ms = max(held.longest_ms, (perf_counter() - clock) * 1000)
            held.longest_cpu_ms = max(held.longest_cpu_ms, (thread_time() - cpu) * 1000)

    WriterGate.enter, WriterGate.leave = timed_enter, timed_leave  # type: ignore[method-assign,assignment]
    try:
        yield held
    finally:
        WriterGate.enter, WriterGate.leave = enter, leave  # type: ignore[method-assign]


def _write_messages(path: Path, number: int, size: int) -> None:
    Store.create(str(path))
    with Store.open(str(path)) as store:
        store.create_topic(TOPIC)
        write_messages(store, TOPIC, number, size=size)


def measure(path: Path, name: str, number: int, size: int) -> tuple[float, Held, int]:
    """Run a scenario on a copy of a store: processor time of the call in ms, hold of the gate, operations."""
    type_, scenario = SCENARIOS[name]
    scene_path = path.with_name("scene")
    shutil.copytree(path, scene_path)
    try:
        with Store.open(str(scene_path)) as store:
            change = scenario(Scene(store, number, size, type_))
            gc.collect()  # else the garbage of the scene, millions of messages, is collected under the gate
            gc.freeze()
            with counted(store) as operations, _timed() as held:
                began = thread_time()
                change()
                call_ms = (thread_time() - began) * 1000
            return call_ms, held, operations.total
    finally:
        gc.unfreeze()
        shutil.rmtree(scene_path)


def main(arguments: list[str] | None = None) -> int:
    """Measure; return 1 if a hold was longer than the goal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__.split("\n")[0])
    parser.add_argument("--in-flight", type=int, nargs="+", default=[20_000, 100_000], metavar="N")
    parser.add_argument(
        "--batch", type=int, nargs="+", default=[1, 10, 100], metavar="N", help="messages of an entry"
    )
    parser.add_argument(
        "--messages-max",
        type=int,
        default=2_000_000,
        metavar="N",
        help="leave out larger stores",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios with this text in their name")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), metavar="DIR")
    options, is_over = parser.parse_args(arguments), False
    print(
        f"{'change':44} {'entries':>9}  of {'call cpu':>9} {'gate cpu':>9} {'gate ms':>9} {'operations':>10}"
    )
    for size, entries in product(options.batch, options.in_flight):
        if entries * size > options.messages_max:
            continue
        with tempfile.TemporaryDirectory(prefix="txnctl-gate-", dir=options.dir) as directory:
            path = Path(directory) / "store"
            _write_messages(path, entries * size, size)
            for name in SCENARIOS:
                if options.only in name and (size == options.batch[0] or name not in SIZELESS):
                    call_ms, held, operations = measure(path, name, entries * size, size)
                    is_over = is_over or held.longest_cpu_ms > _GOAL_MS
                    print(
                        f"{name:44} {entries:9,} {size:3} {call_ms:9.1f} {held.longest_cpu_ms:9.1f} "
                        f"{held.longest_ms:9.1f} {operations:10,}",
                        flush=True,
                    )
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
