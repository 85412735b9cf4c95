"""`txnctl pipeline run`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.txnctl.commands.pipeline.run_steps import LINES
from txnctl.commands.pipeline.group import pipeline

JOBS = pipeline.names()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("ingest", "in.csv", "nowhere"), 3, "nowhere"),
        (("export", "nowhere", "out"), 3, "nowhere"),
        (("export", "--table", "nothing", "out"), 3, "nothing"),
        (("monitor", "nowhere", "--once"), 3, "nowhere"),
        (("settle", "requests", "--table", "nothing"), 3, "nothing"),
        (("audit", "requests", "--table", "nothing"), 3, "nothing"),
        (("sql", "SELECT 1", "--topic", "a=nowhere"), 3, "nowhere"),
        (("sql", "SELECT 1", "--table", "nothing"), 3, "nothing"),
        (("sql", " ; "), 2, "the statement is empty"),
        (("sql", "SELECT 1", "--topic", "a=requests", "--table", "a=accounts"), 2, "is given twice"),
        (("export", "requests", "in.csv"), 4, "in.csv exists already"),
        (("export", "requests"), 2, "DEST is missing"),
        (("export", "requests", "out", "--table", "accounts"), 2, "not both"),
        (("export", "requests", "out", "--check", "full"), 2, "--check is for tables"),
        (("export", "--table", "accounts", "out", "--from", "earliest"), 2, "--from is for topics"),
        (("monitor", "requests", "--once", "--every", "1s"), 2, "--every does not go with it"),
        (("monitor", "requests", "--outsized", "much"), 2, "--outsized 'much' is not an amount"),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    run: Any, path: str, without_java: None, words: tuple[str, ...], status: int, says: str
) -> None:
    """So it takes no time: here there is not even a Java."""
    outcome = run("pipeline", *words)
    assert outcome.status == status
    assert says in outcome.err


@pytest.mark.parametrize("job", ["ingest", "settle"])
def test_a_job_that_commits_refuses_to_run_inside_a_transaction(
    run: Any, path: str, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """It would be done before the transaction is."""
    monkeypatch.setenv("TXNCTL_TXN", "0:1")
    outcome = run("pipeline", job, *LINES[job])
    assert outcome.status == 4
    assert "inside transaction 0:1" in outcome.err


@pytest.mark.parametrize(
    "words", [("--help",), ("pipeline",), *[("pipeline", job, "--help") for job in JOBS]]
)
def test_help_loads_no_spark(words: tuple[str, ...]) -> None:
    """Start-up is part of the product."""
    program = (
        "import sys\n"
        "from txnctl.cli.main import main\n"
        f"status = main({list(words)!r})\n"
        "heavy = {'pyspark', 'pyarrow', 'py4j', 'lmdb'} & set(sys.modules)\n"
        "sys.exit(f'{status} {heavy}' if status or heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs_program("java")
def test_doctor_says_what_is_there(run: Any, path: str) -> None:
    """The same as JSON and for people, who are told what is there only if they ask."""
    programs = run("doctor", "-o", "json").json["programs"]
    assert [(each["what"], each["ok"]) for each in programs] == [
        ("Java", True), ("PySpark", True), ("PyArrow", True),
    ]  # fmt: skip
    assert "Java" not in run("doctor").out
    out = run("doctor", "--programs").out
    assert all(f"{each['what']}: {each['version']}" in out for each in programs)
