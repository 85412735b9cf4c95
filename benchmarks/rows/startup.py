"""S1, S2, S3: whole processes, in turns with a bare Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import command
from benchmarks.bench import Bench
from benchmarks.bursts import interleave
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC, Engine
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare

_TRANSACTIONS = f"""
import os
from storage import Store
with Store.open(os.environ["TXNCTL_STORE"]) as store:
    producer = store.create_producer({TOPIC!r})
    for number in range(100):
        with store.transaction() as transaction:
            producer.send(b"%0100d" % number, txn=transaction)
"""


def stats_command(bench: Bench) -> Iterator[Comparison]:
    """S1: a report on a topic with a thousand messages and a subscription."""
    return _beside_bare_python("S1", bench, [*command.txnctl(), "topics", "stats", TOPIC, "-o", "json"])


def produce_command(bench: Bench) -> Iterator[Comparison]:
    """S2: one durable message, as a shell script sends it."""
    message = "m" * 100
    return _beside_bare_python("S2", bench, [*command.txnctl(), "produce", TOPIC, "-m", message])


def transactions_script(bench: Bench) -> Iterator[Comparison]:
    """S3: a hundred transactions of one message each through the Python API."""
    return _beside_bare_python("S3", bench, [sys.executable, "-c", _TRANSACTIONS])


def _beside_bare_python(row: str, bench: Bench, ours: Sequence[str]) -> Iterator[Comparison]:
    [target] = targets_of(row)
    with bench.scratch() as directory:
        store = directory / "store"
        _fill(store)
        variables = command.environment(store)
        samples = interleave(
            {
                "ours": partial(command.run, ours, variables),
                "bare": partial(command.run, command.BARE_PYTHON, variables),
            },
            rounds=bench.sizes.process_rounds,
        )
    yield compare(target, samples["ours"], samples["bare"])


def _fill(store: Path) -> None:
    engine = Engine(store)
    engine.append(Payload(1000).batch())
    engine.close()
