"""Arguments of command lines may be secrets: no record has them, no report shows them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.processes import started

SECRET = "hunter2"

APP = """
import sys
from storage import EARLIEST, Store

with Store.open(sys.argv[1]) as store:
    txn = store.transaction(labels={"job": "app"})
    producer = store.create_producer("orders")
    producer.send(b"a", txn=txn)
    consumer = store.subscribe("orders", "s", initial_position=EARLIEST)
    str(txn)
    with store.connection.view():
        print("ready", flush=True)
        sys.stdin.read()
"""
"""A program that holds all that is held in the name of a process."""

IN_THE_GATE = """
import sys
from storage import Store
from storage.disk.schema import STORE

with Store.open(sys.argv[1]) as store:
    def change(batch):
        print("ready", flush=True)
        sys.stdin.read()
    store.connection.write(change)
"""

SHOWING = (
    ("transactions", "list"),
    ("transactions", "show", "0:1"),
    ("transactions", "explain", "0:1"),
    ("transactions", "blocked", "orders", "--chain"),
    ("transactions", "slow", "--over", "0s"),
    ("producers", "list"),
    ("producers", "show", "led"),
    ("subscriptions", "show", "orders", "s"),
    ("subscriptions", "lag", "orders"),
    ("topics", "stats", "orders"),
    ("store", "locks"),
    ("store", "readers"),
    ("audit", "list"),
    ("status",),
    ("doctor",),
)
"""The commands that name processes."""

RUNNING = "echo ready; cat # hunter2"


@pytest.fixture
def path(path: Path) -> Path:
    with Store.open(path) as store:
        store.create_topic("orders")
        store.create_topic("led")
        store.create_producer("orders").send(b"before")
    return path


@pytest.fixture
def at_work(path: Path, tmp_path: Path) -> Iterator[None]:
    """A program of the API, and commands that run commands; all with the secret in their arguments."""
    app = tmp_path / "app.py"
    app.write_text(APP)
    with ExitStack() as processes:
        words = [sys.executable, str(app), str(path), f"--db-password={SECRET}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        lines = (
            ("producers", "lead", "led", "--", "/bin/sh", "-c", RUNNING),
            ("transactions", "run", "--label", "job=nightly", "--", "/bin/sh", "-c", RUNNING),
            ("consume", "led", "-s", "t", "-f", "--exec", RUNNING),
        )
        running = [processes.enter_context(subprocess.Popen(words, **pipes))]
        running += [processes.enter_context(started(*line)) for line in lines]
        for process in running[:3]:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
        for process in running:
            process.kill()


@pytest.mark.kills
@pytest.mark.usefixtures("at_work")
def test_no_report_and_no_file_has_an_argument(run: Any, path: Path) -> None:
    """The names of the programs are there, and the labels; the directory of a command is not."""
    outcomes = [run(*words, *output) for words in SHOWING for output in ((), ("-o", "json"))]
    outcomes.append(run("report", "--html", "-"))
    assert [outcome.status for outcome in outcomes] == [0] * len(outcomes)
    told = [outcome.out for outcome in outcomes]
    text = "\n".join(told)
    for name in (
        "app.py)",
        "txnctl transactions run sh",
        "txnctl producers lead sh",
        "txnctl consume)",
        "job=nightly",
    ):
        assert name in text
    assert SECRET not in text
    assert "/bin/sh" not in text
    for file in path.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name


@pytest.mark.kills
def test_the_holder_of_the_gate_is_named_without_arguments(run: Any, path: Path, tmp_path: Path) -> None:
    """To somebody who waits for it."""
    app = tmp_path / "app.py"
    app.write_text(IN_THE_GATE)
    words = [sys.executable, str(app), str(path), SECRET]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            told = [
                run("produce", "orders", "-m", "x", "--lock-timeout", "50ms", "-o", "json").err,
                run("store", "locks").out,
            ]
        finally:
            process.kill()
    for text in told:
        assert f"process {process.pid} (app.py)" in text
        assert SECRET not in text
