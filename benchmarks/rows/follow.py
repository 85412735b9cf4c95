"""C3: the delay from a commit in one process to the printed line in a process that follows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from benchmarks import command, machine
from benchmarks.bench import Bench
from benchmarks.bursts import Sample
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC
from benchmarks.report import Comparison
from storage import Store

_WARMUP = 5

# The producer prints when each send returned, on the machine's common clock. The pauses are uneven, so that a
# follower that polls cannot keep step.
_PRODUCER = f"""
import random, sys, time
from storage import Store
chance = random.Random(1)
with Store.open(sys.argv[1]) as store:
    producer = store.create_producer({TOPIC!r})
    for number in range(int(sys.argv[2])):
        time.sleep(chance.uniform(0.005, 0.025))
        producer.send(b"%0100d" % number)
        print(time.monotonic(), flush=True)
"""


def commit_to_line(bench: Bench) -> Iterator[Comparison]:
    """C3. Our figure is the p99, the peer's the median flush of the same disk, taken before and after."""
    [target] = targets_of("C3")
    with bench.scratch() as directory:
        store = directory / "store"
        Store.create(str(store))
        with Store.open(str(store)) as opened:
            opened.create_topic(TOPIC)
        before = machine.fsync_seconds(directory)
        sample = Sample(_latencies(store, bench.sizes.follow_messages + _WARMUP)[_WARMUP:])
        flush = (before + machine.fsync_seconds(directory)) / 2
    yield Comparison(target, sample.p99, flush, {"ours": sample.figures()})


def _latencies(store: Path, count: int) -> list[float]:
    variables = command.environment(store)
    follow = [*command.txnctl(), "consume", TOPIC, "--follow", "-o", "ndjson", "-n", str(count)]
    with subprocess.Popen(follow, env=variables, stdout=subprocess.PIPE) as follower:
        produce = [sys.executable, "-c", _PRODUCER, str(store), str(count)]
        with subprocess.Popen(produce, env=variables, stdout=subprocess.PIPE, text=True) as producer:
            assert follower.stdout is not None
            assert producer.stdout is not None
            arrivals = [monotonic() for _line in follower.stdout]
            commits = [float(line) for line in producer.stdout]
    assert len(arrivals) == len(commits) == count, f"{len(commits)} commits, {len(arrivals)} lines"
    # A line may appear before `send` has returned: count no delay.
    return [max(0.0, arrival - commit) for arrival, commit in zip(arrivals, commits, strict=True)]
