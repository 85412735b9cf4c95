"""The proof: a store is filled, a cluster reads and writes it, processes are killed, every message is counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from scale import cluster as clusters
from scale.cluster import ROOT, Cluster
from scale.command import Disagreement
from scale.messages import Checksum, Produced, produce
from scale.processes import kill_tree, wait_until
from scale.steps import DriverRequest, Step
from storage import IsolationLevel, Store
from storage.json_form import to_json
from txnctl.pipelines import offload

_WAIT_S = 600.0
_SOURCE, _COPY, _SECOND, _TOTALS = "source", "copy", "second", "totals"
_COMMITTED, _UNCOMMITTED = "READ_COMMITTED", "READ_UNCOMMITTED"
_SECOND_COPY = Step("copy", _SOURCE, to=_SECOND, write_id="second-1")


class Proof:
    """A run of the proof, in a separate directory."""

    def __init__(
        self,
        directory: Path,
        messages: int,
        batch: int,
        out: TextIO,
        url: str | None = None,
        *,
        spares_executors: bool = False,
    ) -> None:
        """Args:
        url: of a new store on a server, in place of one in the directory.
        spares_executors: leave the copy out whose executor is killed.
        """
        self._spares_executors = spares_executors
        self._directory = directory
        self._url = url
        self._store_name = str(directory / "bank.store") if url is None else url
        self._messages = messages
        self._batch = batch
        self._out = out
        self._began = time.monotonic()
        self._checks = 0

    def run(self) -> int:
        """Run all parts; return the number of checks.

        Raises:
            Disagreement, TimeoutError
        """
        Store.create(self._store_name)
        (self._directory / "events").mkdir()
        with Store.open(self._store_name, program="scale") as store:
            produced = self._produce(store)
            if self._url is None:
                self._offload(store)
            with clusters.running(self._directory) as cluster:
                self._say(f"a cluster is up: {cluster.url}, with workers on {' and '.join(clusters.WORKERS)}")
                self._run_until_killed(store, cluster, produced)
                self._run_again(store, cluster, produced)
            self._finish(store)
        return self._checks

    def _produce(self, store: Store) -> Produced:
        began = time.monotonic()
        produced = produce(store, _SOURCE, self._messages, self._batch)
        for topic in (_COPY, _SECOND):
            store.create_topic(topic, ledger_entries_max=self._messages // self._batch)
        store.create_table(_TOTALS)
        self._say_rate("produced", self._messages, began, "in transactions and without, one in ten aborted")
        return produced

    def _offload(self, store: Store) -> None:
        began = time.monotonic()
        options = offload.OffloadOptions(self._offloaded, verify=True, retain_ms=86_400_000)
        report = offload.offload_topic(store, _SOURCE, options)
        size = f"{report.all_ledgers} ledgers in {report.files} files, {report.all_bytes:,} bytes, verified"
        self._say_rate("offloaded", report.messages, began, size)

    def _run_until_killed(self, store: Store, cluster: Cluster, produced: Produced) -> None:
        """Let one driver read, copy the topic, and copy the topic again until the driver is killed."""
        reads = self._reads()
        slow = self._directory / "slow"
        first = Step("copy", _SOURCE, to=_COPY, write_id="copy-1", slow=str(slow))
        copies = [_SECOND_COPY] if self._spares_executors else [first, _SECOND_COPY]
        with self._driver(cluster, [Step("where"), *reads, *copies], is_killed=True) as driver:
            self._check_reads(driver, reads, produced)
            if not self._spares_executors:
                self._lose_an_executor(cluster, driver, slow, produced)
            self._lose_the_driver(store, driver, produced)

    def _reads(self) -> list[Step]:
        """Return reads at both levels, through the data source and, from files, natively."""
        return [
            step
            for level in (_COMMITTED, _UNCOMMITTED)
            for step in (
                Step("read", _SOURCE, level),
                Step("read", _SOURCE, level, schema="value binary"),
                Step("read", _SOURCE, level, native=True),
            )
            if self._url is None or not step.native
        ]

    def _check_reads(self, driver: Driver, reads: Sequence[Step], produced: Produced) -> None:
        levels = {_COMMITTED: produced.committed, _UNCOMMITTED: produced.uncommitted}
        self._check(
            "tasks ran", next(driver).result, [f"{worker} without lmdb" for worker in clusters.WORKERS]
        )
        for step in reads:
            answer = next(driver)
            way = "natively" if step.native else "with the data source"
            name = f"read {step.level} {way}" + ("" if step.schema is None else ", values alone")
            self._check(name, answer.result, levels[step.level].fields())
            self._say_rate(name, answer.result["count"], time.monotonic() - answer.seconds)

    def _lose_an_executor(self, cluster: Cluster, driver: Driver, slow: Path, produced: Produced) -> None:
        """While the topic is copied a slow task is started twice, and the executor of further tasks is killed."""
        driver.wait_until(lambda: bool(self._staged()) and slow.exists(), "a task has staged its file")
        worker = 1 - clusters.WORKERS.index(slow.read_text())
        executor = cluster.executors(worker)[0]
        os.kill(executor, signal.SIGKILL)
        self._say(
            f"killed the executor on {clusters.WORKERS[worker]}, process {executor}, while tasks were staging"
        )
        answer = next(driver)
        self._say_rate(
            "copied into another topic", produced.committed.count, time.monotonic() - answer.seconds
        )

    def _lose_the_driver(self, store: Store, driver: Driver, produced: Produced) -> None:
        """Kill the driver and all descendants during the adoption of the second copy; count the first copy after that,
        since the driver does not wait for the count.
        """
        staged = self._staged()
        driver.wait_until(lambda: bool(self._staged() - staged), "a task has staged its file")
        # An adoption of few messages is short, hence the short pause.
        adopts = "the driver adopts what was staged"
        driver.wait_until(lambda: _uncommitted(store, _SECOND) > 0, adopts, pause_s=0.001)
        killed = driver.kill()
        self._say(f"killed the driver while it adopted, with all below it: {killed} processes")
        state = self._counted(store, _SECOND)["count"]
        self._check("visible after the kill: nothing or all", state in (0, produced.committed.count), True)
        if not self._spares_executors:
            self._check("the copy", self._counted(store, _COPY), produced.committed.fields())
            events = [count > 0 for count in self._events()]
            self._check("tasks were started twice, tasks were lost", events, [True, True])

    def _run_again(self, store: Store, cluster: Cluster, produced: Produced) -> None:
        """Run the job of the killed driver twice in a further driver, and sum up each key into a table."""
        again = [_SECOND_COPY, _SECOND_COPY, Step("totals", _SOURCE, to=_TOTALS, write_id="totals-1")]
        with self._driver(cluster, again) as driver:
            answers = list(driver)
        self._say_rate(
            "the same write again", produced.committed.count, time.monotonic() - answers[0].seconds
        )
        self._say_rate("and once more", produced.committed.count, time.monotonic() - answers[1].seconds)
        self._check("the second copy", self._counted(store, _SECOND), produced.committed.fields())
        self._say_rate("totals into a table", len(produced.keys), time.monotonic() - answers[2].seconds)
        totals = [row.value.split() for row in store.table(_TOTALS).scan()]
        self._check("keys of the table", len(totals), len(produced.keys))
        sums = {
            "count": sum(int(count) for count, _ in totals),
            "total": sum(int(total) for _, total in totals),
        }
        expected = produced.committed.fields()
        self._check("totals of the table", sums, {name: expected[name] for name in sums})

    def _finish(self, store: Store) -> None:
        store.maintenance.collect_garbage()
        self._check("problems in the store", to_json(store.maintenance.verify_store(full=True)), [])
        self._say(f"{self._checks} checks, all of them held, in {time.monotonic() - self._began:.0f} s")

    # -- what the steps share

    @property
    def _offloaded(self) -> str:
        return (self._directory / "offloaded").as_uri()

    @contextmanager
    def _driver(
        self, cluster: Cluster, steps: Sequence[Step], *, is_killed: bool = False
    ) -> Iterator[Driver]:
        request = DriverRequest(
            master=cluster.url,
            store=self._store_name,
            offloaded=None if self._url is not None else self._offloaded,
            staging=(self._directory / "staging").as_uri(),
            events=(self._directory / "events").as_uri(),
            local=str(self._directory / "local"),
            steps=tuple(steps),
        )
        driver = Driver(cluster.home, request, self._directory / "driver.log")
        try:
            yield driver
            if not is_killed:
                driver.finish()
        finally:
            driver.kill()

    def _staged(self) -> set[Path]:
        return set((self._directory / "staging").glob("**/*.batches"))

    def _counted(self, store: Store, topic: str) -> dict[str, int]:
        checksum = Checksum()
        for entry in store.reader(topic, isolation_level=IsolationLevel.READ_COMMITTED).entries():
            checksum.add([value for value in entry.values if value is not None])
        return checksum.fields()

    def _events(self) -> tuple[int, int]:
        """Count in Spark's event log how many tasks were started speculatively, and how many were lost.

        The log of a driver that was killed may end within a line.
        """
        lines = [
            json.loads(line)
            for file in (self._directory / "events").rglob("*")
            if file.is_file() and not file.name.startswith((".", "appstatus"))
            for line in file.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]
        beside = sum(
            line["Event"] == "SparkListenerTaskStart" and line["Task Info"]["Speculative"] for line in lines
        )
        lost = sum(
            line["Event"] == "SparkListenerTaskEnd"
            and line["Task End Reason"]["Reason"] == "ExecutorLostFailure"
            for line in lines
        )
        return beside, lost

    def _check(self, name: str, actual: object, expected: object) -> None:
        if actual != expected:
            raise Disagreement(f"{name}: {actual}, and not {expected}")
        self._checks += 1
        self._say(f"ok: {name}: {actual}")

    def _say_rate(self, name: str, count: int, began: float, more: str = "") -> None:
        seconds = max(time.monotonic() - began, 0.001)
        rest = f": {more}" if more else ""
        self._say(f"{name}: {count:,} in {seconds:.1f} s, {count / seconds:,.0f} a second{rest}")

    def _say(self, line: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {line}", file=self._out, flush=True)


@dataclass(frozen=True)
class Answer:
    """A driver's line about one step; `result` is a count, or a list, by the step."""

    do: str
    seconds: float
    result: Any


class Driver:
    """A driver in a separate process; iterating yields the results of its steps."""

    def __init__(self, home: Path, request: DriverRequest, log: Path) -> None:
        environment = {
            **os.environ,
            **clusters.spark_places(home),
            "SPARK_LOCAL_IP": clusters.MASTER,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        self._log = log
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scale.job", request.to_json()], cwd=ROOT, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def __iter__(self) -> Iterator[Answer]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield Answer(**json.loads(line))

    def __next__(self) -> Answer:
        for answer in self:
            return answer
        self.finish()
        raise Disagreement("the driver ended without an answer")

    def wait_until(self, condition: Callable[[], bool], description: str, *, pause_s: float = 0.02) -> None:
        """Wait for a condition while the driver runs.

        Raises:
            Disagreement: the driver ended before.
            TimeoutError
        """
        wait_until(
            lambda: condition() or self._process.poll() is not None, _WAIT_S, description, pause_s=pause_s
        )
        if self._process.poll() is not None:
            self.finish()
            raise Disagreement(f"the driver was done before one could see that {description}")

    def finish(self) -> None:
        """Wait for the end of the driver.

        Raises:
            Disagreement: the driver failed.
        """
        if self._process.wait(_WAIT_S):
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-25:])
            raise Disagreement(f"the driver ended with {self._process.returncode}:\n{tail}")

    def kill(self) -> int:
        """Kill the driver and all descendants; return the number of processes."""
        if self._process.poll() is not None:
            return 0
        count = kill_tree(self._process.pid)
        self._process.wait()
        return count


def _uncommitted(store: Store, topic: str) -> int:
    """Return the number of messages of open transactions on a topic."""
    messages: int = to_json(store.reports.topic_stats(topic))["uncommittedMessages"]
    return messages
