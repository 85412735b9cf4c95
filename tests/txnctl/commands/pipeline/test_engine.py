"""`--engine` of `txnctl pipeline settle` and `audit`: the choice, the light start, and the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store

SETTLE = ("pipeline", "settle", "requests", "--table", "accounts", "--once")
AUDIT = ("pipeline", "audit", "requests", "--table", "accounts")


def send(path: str, *values: bytes) -> None:
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send_batch(list(values), keys=["B1"] * len(values))


def test_a_small_backlog_is_settled_and_audited_without_java(run: Any, path: str, without_java: None) -> None:
    """The engine is named, in JSON and for people."""
    send(path, b'{"delta": "5"}', b'{"delta": "-1.50"}')
    settled = run(*SETTLE, "-o", "json").json
    assert (settled["engine"], settled["requests"], settled["batches"], settled["through"]) == (
        "local", 2, 1, "1:0:1",
    )  # fmt: skip
    assert run(*AUDIT, "--exit-code", "-o", "json").json["engine"] == "local"
    assert run(*AUDIT).out.splitlines()[0].endswith(", local engine.")
    send(path, b'{"delta": "5"}')
    assert run(*SETTLE).out.endswith(", local engine.\n")
    assert run("tables", "get", "accounts", "B1").out == "8.50\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (SETTLE, ("--local-max", "1")),
        (SETTLE, ("--engine", "spark")),
        (SETTLE, ("--checkpoint", "notes")),
        (SETTLE, ("--conf", "a=b")),
        (SETTLE, ("--master", "local[1]")),
        (SETTLE, ("--offload-path", "files")),
        (SETTLE[:-1], ()),
        (AUDIT, ("--local-max", "1")),
        (AUDIT, ("--engine", "spark")),
        (AUDIT, ("--data", ".")),
        (AUDIT, ("--offload-path", "files")),
    ],
)
def test_the_rest_is_done_on_spark(
    run: Any, path: str, without_java: None, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """More messages than the limit, and every option that only Spark knows: here there is no Java."""
    send(path, b'{"delta": "5"}', b'{"delta": "-1.50"}')
    outcome = run(*command, *words)
    assert (outcome.status, outcome.out) == (11, "")
    assert "Java is not installed" in outcome.err


@pytest.mark.parametrize(
    ("command", "words", "says"),
    [
        (SETTLE[:-1], (), "settling without --once is for Spark, and --engine local is given"),
        (SETTLE, ("--checkpoint", "notes"), "--checkpoint is for Spark"),
        (SETTLE, ("--conf", "a=b"), "--conf is for Spark"),
        (SETTLE, ("--local-max", "5"), "--local-max is for --engine auto"),
        (AUDIT, ("--data", "."), "--data with a directory or a compressed file is for Spark"),
        (AUDIT, ("--master", "local[1]"), "--master is for Spark"),
    ],
)
def test_options_that_the_local_engine_lacks(
    run: Any, path: str, command: tuple[str, ...], words: tuple[str, ...], says: str
) -> None:
    """Are refused, and not passed over."""
    outcome = run(*command, "--engine", "local", *words)
    assert outcome.status == 2
    assert says in outcome.err


@pytest.mark.parametrize("command", [SETTLE, AUDIT])
def test_the_local_engine_loads_no_spark(path: str, command: tuple[str, ...]) -> None:
    """Nor PyArrow, which may both be missing: `pip install txnctl` alone settles."""
    send(path, b'{"delta": "5"}')
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'py4j', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "from txnctl.cli.main import main\n"
        f"sys.exit(main({list(command)!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "local engine" in done.stdout
    program = (
        "import sys\n"
        "from txnctl.cli.main import main\n"
        f"status = main({list(command)!r})\n"
        "heavy = {'pyspark', 'pyarrow', 'py4j', 'pandas', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'{status} {heavy}' if status or heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


CASES: dict[str, tuple[tuple[str, ...], tuple[bytes, ...]]] = {
    "settled": (
        (*SETTLE, "--max-messages", "2", "--on-error", "skip"),
        (b'{"delta": 1}', b"no JSON", b'{"delta": 1}'),
    ),
    "no request": (SETTLE, (b'{"delta": 1}', b"no JSON")),
    "another subscription": ((*SETTLE, "--subscription", "dirty"), (b'{"delta": 1}',)),
    "a start in no topic": ((*SETTLE, "--from", "x"), (b'{"delta": 1}',)),
    "audited": ((*AUDIT, "--conserved", "--exit-code", "--data", "bank.csv"), (b'{"delta": 1}', b"no JSON")),
    "data without a column": ((*AUDIT, "--data", "in.csv"), (b'{"delta": 1}',)),
}
"""Each starts a JVM, but those that are refused before."""


@pytest.mark.slow
@pytest.mark.needs_program("java")
def test_both_engines_answer_alike(path: str, tmp_path: Path) -> None:
    """Fields, exit codes and errors of each case: `local` and `spark` on a store of their own."""
    (tmp_path / "bank.csv").write_text("account_id,acct_seq,date,balance\nB1,1,2024-01-01,1.00\n")
    for name, (command, values) in CASES.items():
        answers = []
        for engine in ("local", "spark"):
            place = str(tmp_path / f"{name} {engine}")
            Store.create(place)
            with Store.open(place) as store:
                store.create_topic("requests")
                store.create_table("accounts")
                store.admin.subscriptions.create_subscription(
                    "requests", "dirty", subscription_isolation_level="READ_UNCOMMITTED"
                )
            if values:
                send(place, *values)
            done = subprocess.run(
                [sys.executable, "-m", "txnctl", *command, "--engine", engine, "-o", "json"],
                env={**os.environ, "TXNCTL_STORE": place}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            out = json.loads(done.stdout) if done.stdout else None
            if out is not None:
                assert out.pop("engine") == engine
                del out["elapsedMs"]
            # A corrected line to paste names the engine that was typed.
            told = done.stderr.replace(f"--engine {engine}", "--engine ENGINE")
            error = json.loads(told) if told else None
            answers.append((done.returncode, out, error))
        assert answers[0] == answers[1], name
        assert (answers[0][1] is None) != (answers[0][2] is None), name
