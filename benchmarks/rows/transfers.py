"""K2: transfers of money by one process and by several, from no contention at all to one key that all want."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import accounts, crew
from benchmarks.bench import Bench
from benchmarks.contention import LEVELS
from benchmarks.contract import targets_of
from benchmarks.crew import Crew, Turn
from benchmarks.peers import sqlite_accounts
from benchmarks.report import Comparison

_ACCOUNTS = 10_000
_PROCESSES = (1, 2, 4, 8)


def transfers(bench: Bench) -> Iterator[Comparison]:
    """K2. A refused transfer is retried at once; its time counts until the transfer is durable."""
    loads = [(count, level) for count in _PROCESSES for level in LEVELS]
    turns: dict[tuple[int, str], tuple[list[Turn], list[Turn]]] = {load: ([], []) for load in loads}
    size, seconds = bench.sizes.processes_max, bench.sizes.crew_seconds
    with bench.scratch() as directory:
        place, other = directory / "store", directory / "sqlite"
        accounts.create(place, _ACCOUNTS)
        sqlite_accounts.create(other, accounts.rows(_ACCOUNTS), bench.sizes.sqlite_warmup)
        with (
            Crew(partial(accounts.Transfers, place, _ACCOUNTS), size) as ours,
            Crew(partial(sqlite_accounts.SqliteTransfers, other, _ACCOUNTS), size) as peer,
        ):
            for turn in range(bench.sizes.crew_rounds):
                for (count, level), (mine, theirs) in turns.items():
                    pairs = [(ours, mine), (peer, theirs)]
                    for each, found in pairs if turn % 2 else reversed(pairs):
                        found.append(each.burst(seconds, level, min(count, size)))
    for target, (mine, theirs) in zip(targets_of("K2"), turns.values(), strict=True):
        details = {"ours": crew.figures(mine), "peer": crew.figures(theirs)}
        yield Comparison(target, crew.median_each(mine), crew.median_each(theirs), details)
