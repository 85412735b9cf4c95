"""A run: the processes of a busy store, some killed and stopped on the way, and samples of all that might grow."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak.fast_clock import FastClock
from benchmarks.soak.jobs import BATCH, DAY_S, JOBS, SUBSCRIPTION, TABLE, TOPIC, open_store
from benchmarks.soak.samples import Rule, Series, anonymous_bytes
from storage import Store

RUN_HOURS = 96
"""The time that passes in a run, by its fast clock: four days, as outcomes of transactions are kept for one."""

_PROJECT = Path(__file__).resolve().parents[2]
_HOUR_MS = 3600 * 1000
_RETENTION_MS = 2 * _HOUR_MS
_LEDGER_ENTRIES = 100
_STOPPED_PARTS = 30
_LATENCY_RUNS = 7
_SIZE, _MEMORY, _LATENCY = Rule(1.15, 2.0), Rule(1.1, 2.0), Rule(1.5, 1.0)
_PROJECT_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(_PROJECT)}


class Soak:
    """See the module.

    Args:
        say: is told of progress.
        hours: pass in the run, by its fast clock.
        samples: of everything; at each one a reader is killed or stopped.
    """

    def __init__(
        self,
        directory: Path,
        minutes: float,
        say: Callable[[str], None],
        hours: int = RUN_HOURS,
        samples: int = 120,
    ) -> None:
        self._path = directory / "store"
        self._seconds = minutes * 60
        self._samples = samples
        self._clock = FastClock(max(1, int(hours * 3600 / self._seconds)))
        self._say = say
        self._chance = random.Random(1)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.series: dict[str, Series] = {}
        self.killed = self.stopped = 0

    def run(self) -> list[Series]:
        """Run for the time given; return the samples. No process is left behind."""
        self._create()
        try:
            for job in JOBS:
                self._start(job)
            self._watch()
        finally:
            for process in self._processes.values():
                _kill(process)
        self._verify()
        return list(self.series.values())

    def _create(self) -> None:
        Store.create(self._path, clock=self._clock)
        with open_store(str(self._path), self._clock) as store:
            store.create_topic(TOPIC, ledger_entries_max=_LEDGER_ENTRIES)
            store.admin.subscriptions.create_subscription(TOPIC, SUBSCRIPTION)
            store.table(TABLE, create=True).put(b"key-0", b"0")
            store.admin.settings.set_retention(time_ms=_RETENTION_MS)
            store.admin.settings.set_table_retention(_HOUR_MS)

    def _start(self, job: str) -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.soak.jobs",
            job,
            str(self._path),
            *self._clock.arguments(),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=_PROJECT_ENVIRONMENT)
        assert process.stdout is not None, "it is a pipe"
        if not process.stdout.readline():
            raise RuntimeError(f"the job {job} ended with {process.wait()}")
        self._processes[job] = process

    def _watch(self) -> None:
        """Sample, collect garbage as cron would, and disturb the readers, in turn until the end."""
        began = time.monotonic()
        with open_store(str(self._path), self._clock) as store:
            for turn in range(self._samples):
                due = began + self._seconds * (turn + 1) / self._samples
                self._disturb(turn, min(self._seconds / _STOPPED_PARTS, max(0.0, due - time.monotonic())))
                time.sleep(max(0.0, due - time.monotonic()))
                self._check_alive()
                if turn % 4 == 3:
                    store.maintenance.collect_garbage()
                self._sample(store, (time.monotonic() - began) / 60)
                if turn % 10 == 9:
                    size, records = (self.series[name].points[-1][1] for name in ("data.mdb", "records"))
                    share = (turn + 1) * 100 // self._samples
                    self._say(f"{share} %: data.mdb {size:.1f} MiB, records {records:.1f} MiB")

    def _check_alive(self) -> None:
        for job, process in self._processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"the job {job} ended with {process.returncode}")

    def _disturb(self, turn: int, stop_s: float) -> None:
        """Kill a reader and start another, or stop one for a while: one of them is inside a view nearly always."""
        job = self._chance.choice(["read", "hold"])
        process = self._processes[job]
        if turn % 2:
            _kill(process)
            self.killed += 1
            self._start(job)
        else:
            process.send_signal(signal.SIGSTOP)
            time.sleep(stop_s)
            process.send_signal(signal.SIGCONT)
            self.stopped += 1

    def _sample(self, store: Store, minutes: float) -> None:
        info = store.reports.store_info()
        on_disk = sum(file.stat().st_blocks for file in self._path.iterdir()) * 512
        self._note("all files", "files", "MiB", _SIZE, minutes, on_disk / (1 << 20))
        self._note("data.mdb", "files", "MiB", _SIZE, minutes, info.data_bytes / (1 << 20))
        records = sum(database.bytes for database in store.reports.list_databases())
        self._note("records", "files", "MiB", _SIZE, minutes, records / (1 << 20))
        for job, process in {**self._processes, "this process": None}.items():
            pid = os.getpid() if process is None else process.pid
            self._note(job, "memory", "MiB", _MEMORY, minutes, anonymous_bytes(pid) / (1 << 20))
        for name, command in self._commands(store).items():
            self._note(name, "latency", "ms", _LATENCY, minutes, _median_ms(command))

    def _commands(self, store: Store) -> dict[str, Callable[[], object]]:
        def commit() -> None:
            with store.transaction(timeout=DAY_S) as txn, store.create_producer(TOPIC) as producer:
                producer.send(BATCH[0], txn=txn)

        table = store.table(TABLE)
        return {
            "topic stats": lambda: store.reports.topic_stats(TOPIC),
            "store overview": store.reports.store_overview,
            "transaction": commit,
            "get": lambda: table.get(b"key-1"),
        }

    def _note(self, name: str, group: str, unit: str, rule: Rule, minutes: float, value: float) -> None:
        series = self.series.setdefault(name, Series(name, group, unit, rule))
        series.points.append((minutes, value))

    def _verify(self) -> None:
        with open_store(str(self._path), self._clock) as store:
            problems = store.maintenance.verify_store(full=True)
            stats = store.reports.topic_stats(TOPIC)
        counts = stats.counts
        self._say(
            f"{counts.msg_in_counter:,} messages sent, {counts.msg_count:,} kept; "
            f"{self.killed} readers killed, {self.stopped} stopped; verify: {len(problems)} problems"
        )
        if problems:
            raise RuntimeError(f"verify found {problems[0]}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with process:  # closes the pipe, and waits
        process.kill()


def _median_ms(command: Callable[[], object]) -> float:
    times = []
    for _ in range(_LATENCY_RUNS):
        started = time.perf_counter()
        command()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000
