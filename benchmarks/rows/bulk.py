"""P4, C2: a million messages through the command, in and out, beside the `sqlite3` program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks import command
from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC
from benchmarks.payload import write_lines
from benchmarks.peers import sqlite_shell
from benchmarks.report import Comparison, compare
from storage import Store


def produce_lines(bench: Bench) -> Iterator[Comparison]:
    """P4. Each turn fills a new topic, or a new database."""
    sqlite3 = _sqlite3("P4", bench)
    if sqlite3 is None:
        return
    [target] = targets_of("P4")
    with bench.scratch() as directory:
        lines = directory / "lines"
        write_lines(lines, bench.sizes.bulk_messages)
        samples = interleave(
            {"ours": _our_import(directory, lines), "sqlite3": _sqlite_import(sqlite3, directory, lines)},
            rounds=bench.sizes.bulk_rounds,
        )
    yield compare(target, samples["ours"], samples["sqlite3"])


def consume_ndjson(bench: Bench) -> Iterator[Comparison]:
    """C2. Both print to /dev/null."""
    sqlite3 = _sqlite3("C2", bench)
    if sqlite3 is None:
        return
    [target] = targets_of("C2")
    with bench.scratch() as directory:
        lines = directory / "lines"
        write_lines(lines, bench.sizes.bulk_messages)
        store, database = directory / "store", directory / "log.db"
        _new_store(store)
        variables = command.environment(store)
        command.run([*command.txnctl(), "produce", TOPIC, str(lines)], variables)
        command.run(sqlite_shell.import_command(sqlite3, database, lines), variables)
        samples = interleave(
            {
                "ours": partial(
                    command.run, [*command.txnctl(), "consume", TOPIC, "-o", "ndjson"], variables
                ),
                "sqlite3": partial(command.run, sqlite_shell.json_command(sqlite3, database), variables),
            },
            rounds=bench.sizes.bulk_rounds,
        )
    yield compare(target, samples["ours"], samples["sqlite3"])


def _sqlite3(row: str, bench: Bench) -> str | None:
    sqlite3 = sqlite_shell.program()
    if sqlite3 is None:
        bench.note(f"{row} is left out: {sqlite_shell.HOW_TO_GET_IT}")
        return None
    bench.versions["sqlite3 program"] = sqlite_shell.shell_version(sqlite3)
    return sqlite3


def _our_import(directory: Path, lines: Path) -> Operation:
    store = directory / "store"
    _new_store(store)
    variables = command.environment(store)
    numbers = count()

    def produce() -> None:
        topic = f"{TOPIC}-{next(numbers)}"
        command.run([*command.txnctl(), "produce", "--create", topic, str(lines)], variables)

    return produce


def _sqlite_import(sqlite3: str, directory: Path, lines: Path) -> Operation:
    numbers = count()
    variables = command.environment(directory)

    def produce() -> None:
        database = directory / f"{next(numbers)}.db"
        command.run(sqlite_shell.import_command(sqlite3, database, lines), variables)

    return produce


def _new_store(path: Path) -> None:
    Store.create(str(path))
    with Store.open(str(path)) as store:
        store.create_topic(TOPIC)
