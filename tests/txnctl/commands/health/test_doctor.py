"""`txnctl doctor`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.an_hour_ago import an_hour_ago
from txnctl.commands.health.doctor import DIAGNOSIS
from txnctl.output.field import undeclared
from txnctl.spark.runtime import java, requirements

Run = Callable[..., Any]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java: what looks for it finds nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_PATTERNS", ())


@pytest.fixture
def stopped(path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts processes that come to a point with the store and are stopped there."""
    processes = []

    def start(body: str) -> subprocess.Popen[bytes]:
        program = f"import sys\nfrom storage import Store\nstore = Store.open(sys.argv[1])\n{body}\n"
        ready = "def ready(*_):\n    print('ready', flush=True)\n    sys.stdin.read()\n"
        process = subprocess.Popen(
            [sys.executable, "-c", ready + program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


def diagnosis(run: Run, *words: str) -> dict[str, Any]:
    """`doctor` as JSON; its fields are declared."""
    row: dict[str, Any] = run("doctor", *words, "-o", "json").json
    assert not undeclared(row, DIAGNOSIS)
    return row


def codes(row: dict[str, Any]) -> list[str]:
    """What was found."""
    return [each["code"] for each in row["findings"]]


@pytest.mark.usefixtures("path", "no_java")
def test_nothing_is_wrong_with_a_new_store(run: Run) -> None:
    """In so many words, and a missing Java is no finding."""
    outcome = run("doctor", "--exit-code")
    assert outcome.status == 0
    assert "\nNothing is wrong.\n" in outcome.out
    assert "Java: not found; only `pipeline` needs it. Install a Java runtime of version 17" in outcome.out
    row = diagnosis(run)
    assert (row["verdict"], row["findings"]) == ("ok", [])
    assert row["programs"][0] == {
        "what": "Java", "ok": False, "version": None, "place": None, "hint": java.HINT,
    }  # fmt: skip


@pytest.mark.usefixtures("path")
def test_programs_are_told_of_where_one_is_missing_or_asked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON has them always."""
    java_17 = requirements.Requirement("Java", ok=True, version="17", place=None, hint=None)
    monkeypatch.setattr(requirements, "check_all", lambda: [java_17])
    assert "Java" not in run("doctor").out
    assert "\nJava: 17\n" in run("doctor", "--programs").out
    assert diagnosis(run)["programs"] == [
        {"what": "Java", "ok": True, "version": "17", "place": None, "hint": None}
    ]


@pytest.mark.usefixtures("no_java")
def test_every_command_it_names_runs_as_it_stands(run: Run, path: Path) -> None:
    """A store stuck in several ways: what, why and the next command of each; typed, each of them works."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders")
        store.admin.subscriptions.create_subscription("orders", "idle", initial_position=EARLIEST)
        producer.send(b"plain")
        txn = store.begin_transaction(timeout=7200)
        producer.send(b"half", txn=txn)
        producer.send(b"whole")
        store.table("balances").put(b"B1", b"100", txn=txn)
        producer.close()
        store.begin_transaction(timeout=60)
    row = diagnosis(run)
    assert codes(row) == ["late-transactions", "blocked", "no-consumer"]
    out = " ".join(run("doctor").out.split())
    for each in row["findings"]:
        assert each["what"][1:] in out
        assert f"{each['why']} Next: {each['command']}" in out
        words = shlex.split(each["command"])
        assert words[0] == "txnctl"
        assert run(*words[1:]).status == 0
    assert run("doctor", "--exit-code").status == 8
    assert "late-transactions" not in codes(diagnosis(run))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("body", "code", "severity"),
    [
        ("consumer = store.subscribe('orders', 'billing')\nready()", "consumer-stopped", "warning"),
        ("store.connection.write(ready)", "gate-stopped", "critical"),
        (
            "txn = store.transaction()\nstore.create_producer('orders').send(b'x', txn=txn)\ntxn.flush()\nready()",
            "owner-stopped",
            "warning",
        ),
    ],
)
def test_a_stopped_process_is_named_and_continued(
    run: Run, stopped: Any, body: str, code: str, severity: str
) -> None:
    """Its command continues it; then it is no finding any more."""
    process = stopped(body)
    (found,) = diagnosis(run)["findings"]
    assert (found["code"], found["severity"]) == (code, severity)
    assert found["command"] == f"kill -CONT {process.pid}"
    assert (run("check").status, run("status", "-o", "name").out) == (
        {"warning": 1, "critical": 2}[severity],
        f"{severity}\n",
    )
    subprocess.run(["sh", "-c", found["command"]], check=True)
    os.waitpid(process.pid, os.WCONTINUED)
    assert diagnosis(run)["findings"] == []
    assert run("check").status == 0


@pytest.mark.usefixtures("no_java")
def test_acknowledgements_that_hold_messages_are_found(run: Run, path: Path) -> None:
    """By whom, how many, and the command; and a backlog without a consumer alone is no reason to fail."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders")
        store.admin.subscriptions.create_subscription("orders", "refunds", initial_position=EARLIEST)
        producer.send_batch([b"one", b"two", b"three"])
        txn = store.begin_transaction(timeout=7200, labels={"job": "refunds"})
        with store.subscribe("orders", "refunds") as consumer:
            for message in consumer.receive_batch(2, timeout=0):
                consumer.acknowledge(message, txn=txn)
        producer.close()
    first, note, *_ = diagnosis(run)["findings"]
    assert (first["code"], first["about"]) == (
        "acknowledgements-held",
        "subscription refunds of topic orders",
    )
    assert "2 messages of subscription refunds of topic orders go to nobody" in first["what"]
    assert "transaction 0:1 (job=refunds)" in first["what"]
    assert run(*shlex.split(first["command"])[1:]).status == 0
    assert (note["code"], note["severity"]) == ("no-consumer", "info")
    assert run("check").status == 1
    assert run("transactions", "abort", "0:1").status == 0
    assert codes(diagnosis(run)) == ["no-consumer"]
    out = run("doctor", "--exit-code")
    assert (out.status, out.out.splitlines()[0].split()[1:4]) == (0, ["ok,", "1", "note"])
    assert run("status", "-o", "name").out == "ok\n"
    assert run("check").status == 0


def test_a_store_that_cannot_be_opened_is_a_finding(run: Run, path: Path, tmp_path: Path) -> None:
    """None there, not private, not a store: told beside what is installed, then an error as of every command."""
    missing, other = tmp_path / "missing", tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    path.chmod(0o777)
    for at, code in ((missing, "store-not-found"), (other, "not-a-store"), (path, "store-unsafe")):
        outcome = run("doctor", "--store", str(at), "-o", "json")
        row, error = json.loads(outcome.out), json.loads(outcome.err)
        assert not undeclared(row, DIAGNOSIS)
        assert (row["verdict"], codes(row), row["path"]) == ("critical", [code], str(at))
        assert row["findings"][0]["severity"] == "critical"
        assert [each["what"] for each in row["programs"]] == ["Java", "PySpark", "PyArrow"]
        assert (outcome.status, error["code"], error["exitCode"]) == (6, code, 6)
    assert not missing.exists()
    told = run("doctor", "--exit-code")
    assert told.status == 6
    assert told.out.splitlines()[0].split()[1:4] == ["CRITICAL:", "1", "finding"]
