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
        directory_of_store, directory_of_peer = directory / "store", directory / "sqlite"
        accounts.create(directory_of_store, _ACCOUNTS)
        sqlite_accounts.create(directory_of_peer, accounts.rows(_ACCOUNTS), bench.sizes.sqlite_warmup)
        with (
            Crew(partial(accounts.Transfers, directory_of_store, _ACCOUNTS), size) as own_crew,
            Crew(partial(sqlite_accounts.SqliteTransfers, directory_of_peer, _ACCOUNTS), size) as peer_crew,
        ):
            for turn in range(bench.sizes.crew_rounds):
                for (count, level), (own_turns, peer_turns) in turns.items():
                    pairs = [(own_crew, own_turns), (peer_crew, peer_turns)]
                    for one_crew, crew_turns in pairs if turn % 2 else reversed(pairs):
                        crew_turns.append(one_crew.burst(seconds, level, min(count, size)))
    for target, (own_turns, peer_turns) in zip(targets_of("K2"), turns.values(), strict=True):
        details = {"ours": crew.figures(own_turns), "peer": crew.figures(peer_turns)}
        yield Comparison(target, crew.median_each(own_turns), crew.median_each(peer_turns), details)
