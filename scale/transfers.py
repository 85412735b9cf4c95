"""The acceptance run on transfers: `python -m scale.transfers [--transfers N] [--share F] [--kills N] [--dir DIR]`.

    1  files       four shapes of CSV by a seed
    2  ingest      on Spark, each file in one transaction; every byte is compared
    3  send        a bank sends the lines on: transactions of up to 37 messages, some aborted
    4  settle      the local engine, in batches of 37, killed at random moments
    5  turns       a second table: Spark is killed too, settles its share, and the local engine goes on
    6  audit       both tables, with the sum of all balances at every version; on Spark as well
    7  and again   the topic is exported in three formats and ingested again; every byte, every balance

Exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from subprocess import PIPE, Popen
from typing import Any, TextIO

from scale.command import Disagreement, run_in_directory
from scale.processes import kill_tree, wait_until
from scale.transfer_data import SHAPES, TRANSFERS, Transfer, balances, prepare, transfers, write_files
from scale.transfer_jobs import BATCH, FORMATS, LOADED, LOCAL, SENT, TURNS, settled
from storage import EARLIEST, IsolationLevel, MessageId, Store
from storage.values.names import full_topic_name
from txnctl.pipelines.settler import settled_through

ROOT = Path(__file__).parents[1]
_WAIT_S = 3600.0
_ABORTED = 50
"""After so many transactions, one is aborted."""

_FIELDS = ("--debit", "from_account", "--credit", "to_account", "--amount", "amount")


class Acceptance:
    """One run, in a directory of its own."""

    def __init__(self, directory: Path, options: argparse.Namespace, out: TextIO) -> None:
        self._directory = directory
        self._options = options
        self._out = out
        self._random = Random(options.seed)
        self._path = str(directory / "store")
        self._began = time.monotonic()
        self._checks = 0

    def run(self) -> None:
        """Run all parts.

        Raises:
            Disagreement, TimeoutError, subprocess.CalledProcessError
        """
        parts = prepare(list(transfers(self._options.transfers, self._options.seed)))
        lines = [line for part in parts for line in part]
        write_files(parts, self._directory)
        sizes = ", ".join(f"{shape.file} {len(part):,}" for shape, part in zip(SHAPES, parts, strict=True))
        self._say(f"wrote {len(lines):,} transfers: {sizes}")
        Store.create(self._path)
        with Store.open(self._path, program="transfers") as store:
            for topic in (LOADED, SENT):
                store.create_topic(topic)
            for table in (LOCAL, TURNS, "exported"):
                store.create_table(table)
            self._ingest(store, lines)
            self._send(store, lines)
            self._settle_locally(store, LOCAL)
            self._settle_in_turns(store, len(lines))
            self._audit(store, lines)
            self._compare_copies(store, lines)
            problems = store.maintenance.verify_store(full=True)
            self._check("problems that the full verification finds", 0, len(problems))
        self._say(f"{self._checks} checks, all of them held")

    def _ingest(self, store: Store, lines: Sequence[Transfer]) -> None:
        self._check("messages ingested", len(lines), self._spark("load")["load"])
        self._compare_values(store, LOADED, lines)

    def _send(self, store: Store, lines: Sequence[Transfer]) -> None:
        """Send the lines on, in transactions of 37; a further transaction is aborted now and then."""
        with store.create_producer(SENT) as producer:
            for number, at in enumerate(range(0, len(lines), BATCH)):
                values = [line.value() for line in lines[at : at + BATCH]]
                with store.transaction() as txn:
                    producer.send_batch(values, txn=txn)
                if not number % _ABORTED:
                    with store.transaction() as txn:
                        producer.send_batch(values[:5], txn=txn)
                        txn.abort("recalled")
        self._say(f"sent {len(lines):,} transfers on, in {number + 1:,} transactions")
        self._compare_values(store, SENT, lines)

    def _settle_locally(self, store: Store, table: str) -> None:
        """Settle what is there without Spark; kill the process at random moments, a number of times.

        Every second time the process is killed from its first batch on, the other times from its start on.
        """
        words = ["pipeline", "settle", SENT, "--table", table, *_FIELDS, "--once", "--engine", "local"]
        command = [*words, "--max-messages", str(BATCH), "-o", "json"]
        began, kills, batches = time.monotonic(), 0, 0
        while True:
            before = _settled_through(store, table)
            with self._start("-m", "txnctl", *command, "--store", self._path) as process:
                if kills < self._options.kills:
                    if kills % 2:
                        _wait_until_moved(store, table, before, process)
                    if self._is_killed(process, 0.0, 1.0):
                        kills += 1
                        batches += _settled_through(store, table) != before
                        continue
                out, said = process.communicate(timeout=_WAIT_S)
            if process.returncode:
                raise Disagreement(f"settle ended with {process.returncode}: {said.decode()}")
            self._check("engine", "local", json.loads(out)["engine"])
            break
        self._say(
            f"settled into {table} without Spark in {time.monotonic() - began:,.1f} s; {kills} kills, "
            f"{batches} of them of a process that had settled something"
        )

    def _settle_in_turns(self, store: Store, count: int) -> None:
        """Let Spark settle its share, killed on the way, and the local engine the rest; audit and copy on Spark."""
        share = max(BATCH, int(count * self._options.share))
        began, kills = time.monotonic(), 0
        most = self._options.spark_kills
        for number in range(most):
            kills += self._kill_spark(store, count, settled(store) + share // (most + 1))
            self._say(f"killed Spark {number + 1} of {most} times; {settled(store):,} messages are settled")
        done = self._spark(f"settle={share}", "audit", "copy")
        by_spark = settled(store)
        self._say(
            f"Spark settled {by_spark:,} messages into {TURNS} in {time.monotonic() - began:,.1f} s, {kills} kills"
        )
        self._check("accounts that differ, as Spark audits the table of the local engine", 0, done["audit"])
        self._check("messages exported and ingested again", len(FORMATS) * count, done["copy"])
        self._settle_locally(store, TURNS)

    def _kill_spark(self, store: Store, count: int, goal: int) -> bool:
        """Kill a driver in the middle of settling, when so many messages are settled; False if it has ended before."""
        with self._start("-m", "scale.transfer_jobs", *self._of_jobs(f"settle={count}")) as process:
            wait_until(
                lambda: process.poll() is not None or settled(store) >= goal,
                _WAIT_S,
                f"Spark had settled {goal}",
            )
            return self._is_killed(process, 0.0, 0.5)

    def _audit(self, store: Store, lines: Sequence[Transfer]) -> None:
        expected = balances(lines)
        for table in (LOCAL, TURNS):
            words = ["pipeline", "audit", SENT, "--table", table, *_FIELDS, "--conserved"]
            found = self._json(*words, "--engine", "local")
            summary = {name: found[name] for name in ("differing", "skipped", "sumChanges", "sumInTable")}
            self._check(
                f"audit of {table}",
                {"differing": 0, "skipped": 0, "sumChanges": 0, "sumInTable": "0.00"},
                summary,
            )
            self._say(f"{found['versions']:,} versions of {table} have the same sum")
            self._check(f"balances of {table} that are wrong", 0, _differing(_rows(store, table), expected))

    def _compare_copies(self, store: Store, lines: Sequence[Transfer]) -> None:
        for format_ in FORMATS:
            self._compare_values(store, f"again-{format_}", lines)
            words = ("pipeline", "settle", f"again-{format_}", "--table", f"again_{format_}", *_FIELDS)
            store.create_table(f"again_{format_}")
            self._json(*words, "--once", "--engine", "local")
            found = _rows(store, f"again_{format_}")
            self._check(f"balances from {format_} that are wrong", 0, _differing(found, balances(lines)))
        exported = self._run("-m", "txnctl", "tables", "export", LOCAL, "--store", self._path)
        self._run("-m", "txnctl", "tables", "import", "exported", "--store", self._path, given=exported)
        found = _rows(store, "exported")
        self._check("balances that came back wrong", 0, _differing(found, balances(lines)))

    def _compare_values(self, store: Store, topic: str, lines: Sequence[Transfer]) -> None:
        values = _values(store, topic)
        wrong = sum(found != line.value() for found, line in zip(values, lines, strict=False))
        self._check(f"messages of {topic}, all bytes the same", (len(lines), 0), (len(lines), wrong))
        self._check(f"further messages of {topic}", None, next(values, None))

    def _of_jobs(self, *jobs: str) -> tuple[str, ...]:
        return (self._path, str(self._directory), *jobs)

    def _spark(self, *jobs: str) -> dict[str, int]:
        """Run jobs on Spark to their end; return the result of each."""
        out = self._run("-m", "scale.transfer_jobs", *self._of_jobs(*jobs))
        told = [json.loads(line) for line in out.splitlines()]
        return {line["job"]: line["result"] for line in told}

    def _json(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self._run("-m", "txnctl", *words, "-o", "json", "--store", self._path)
        )
        return found

    def _run(self, *words: str, given: bytes | None = None) -> bytes:
        with self._start(*words) as process:
            out, said = process.communicate(given, timeout=_WAIT_S)
        if process.returncode:
            raise Disagreement(
                f"{' '.join(words[:4])} ended with {process.returncode}: {said.decode()[-2000:]}"
            )
        return out

    def _start(self, *words: str) -> _Killed:
        paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(self._directory)}
        return _Killed([sys.executable, *words], stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)

    def _is_killed(self, process: Popen[bytes], least_s: float, most_s: float) -> bool:
        """Kill a process with all below it after a random time; False if it has ended before."""
        try:
            process.wait(least_s + self._random.random() * (most_s - least_s))
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            process.wait()
            return True
        return False

    def _check(self, name: str, expected: object, actual: object) -> None:
        if expected != actual:
            raise Disagreement(f"{name}: expected {expected!r}, and found {actual!r}")
        self._checks += 1

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:8.1f} s  {text}", file=self._out, flush=True)


def _settled_through(store: Store, table: str) -> MessageId | None:
    return settled_through(store, full_topic_name(SENT), table)


def _wait_until_moved(store: Store, table: str, before: MessageId | None, process: Popen[bytes]) -> None:
    """Wait until a process has settled a batch, or has ended."""
    wait_until(
        lambda: process.poll() is not None or _settled_through(store, table) != before,
        _WAIT_S,
        f"a batch was settled into {table}",
    )


class _Killed(Popen[bytes]):
    """A process that is gone, with all below it, when its block ends."""

    def __exit__(self, *exc: Any) -> None:
        if self.poll() is None:
            kill_tree(self.pid)
        super().__exit__(*exc)


def _values(store: Store, topic: str) -> Iterator[bytes | None]:
    reader = store.reader(topic, start=EARLIEST, isolation_level=IsolationLevel.READ_COMMITTED)
    for entry in reader.entries():
        yield from entry.values


def _rows(store: Store, table: str) -> dict[bytes, bytes | None]:
    return {row.key: row.value for row in store.table(table).scan()}


def _differing(found: dict[bytes, bytes | None], expected: dict[bytes, bytes]) -> int:
    """Count the accounts that either side has, and the other has not, or otherwise."""
    return sum(found.get(account) != expected.get(account) for account in found.keys() | expected.keys())


def main(arguments: list[str] | None = None) -> int:
    """Run the acceptance; return 1 if a check failed."""
    parser = argparse.ArgumentParser(
        prog="python -m scale.transfers", description="Settle transfers by both engines, under kills."
    )
    parser.add_argument("--transfers", type=int, default=TRANSFERS, help="how many [default: 117,805]")
    parser.add_argument(
        "--seed", type=int, default=16, help="another seed makes other transfers [default: 16]"
    )
    parser.add_argument(
        "--share", type=float, default=0.02, help="of the second table, by Spark [default: 0.02]"
    )
    parser.add_argument("--kills", type=int, default=31, help="of each run of the local engine [default: 31]")
    parser.add_argument("--spark-kills", type=int, default=3, help="of Spark [default: 3]")
    parser.add_argument("--dir", type=Path, help="where; needs about 1.5 KB a transfer [default: TMPDIR]")
    options = parser.parse_args(arguments)
    return run_in_directory(
        lambda directory: Acceptance(directory, options, sys.stdout).run(), "transfers", options.dir
    )


if __name__ == "__main__":
    sys.exit(main())
