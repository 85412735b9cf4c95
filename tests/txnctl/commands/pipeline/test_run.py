"""`txnctl pipeline run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.pipeline.group import pipeline
from txnctl.spark.runtime import java, requirements

JOBS = pipeline.names()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a topic and a table, which commands find by themselves."""
    place = str(tmp_path / "store")
    Store.create(place)
    with Store.open(place) as store:
        store.create_topic("requests")
        store.create_table("accounts")
    monkeypatch.setenv("TXNCTL_STORE", place)
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    return place


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java, "_PATTERNS", ())


LINES = {
    "ingest": ("in.csv", "requests"),
    "export": ("requests", "out"),
    "monitor": ("requests", "--once"),
    "settle": ("requests", "--table", "accounts", "--once"),
    "audit": ("requests", "--table", "accounts"),
    "run": ("in.csv",),
}


def processes_of(pid: int) -> list[int]:
    """The children of a process."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []


def is_running(pid: int) -> bool:
    """Whether there is such a process, other than as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("job", LINES)
def test_without_java_every_job_says_how_to_get_it(run: Any, path: str, without_java: None, job: str) -> None:
    """Exit code 11, one JSON object, and nothing was changed."""
    outcome = run("pipeline", job, *LINES[job])
    assert outcome.status == 11
    assert "Java is not installed" in outcome.err
    assert "apt-get install openjdk-17-jre-headless" in outcome.err
    assert not Path("out").exists()


def test_without_pyspark_it_is_asked_for(run: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line to type; the error is for programs too."""
    monkeypatch.setattr(requirements, "_version", lambda _: None)
    outcome = run("pipeline", "audit", "requests", "--table", "accounts", "-o", "json")
    assert (outcome.status, outcome.error["code"]) == (11, "program-missing")
    assert outcome.error["hint"] == "Install it with: pip install 'txnctl[spark]'"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("ingest", "in.csv", "nowhere"), 3, "nowhere"),
        (("export", "nowhere", "out"), 3, "nowhere"),
        (("export", "--table", "nothing", "out"), 3, "nothing"),
        (("monitor", "nowhere", "--once"), 3, "nowhere"),
        (("settle", "requests", "--table", "nothing"), 3, "nothing"),
        (("audit", "requests", "--table", "nothing"), 3, "nothing"),
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


@pytest.mark.needs_program("java")
@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_ctrl_c_ends_a_job_and_its_jvm_at_once(
    start: Any, path: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """Exit code 130; no JVM and no scratch directory is left, and what was settled stays."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    tempfile.tempdir = None
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send(b'{"delta": "1.50"}', key="B1")
        with start("pipeline", "settle", "requests", "--table", "accounts", "--max-messages", "1") as process:
            accounts = store.table("accounts")
            while accounts.get(b"B1") != b"1.50":
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
            children = processes_of(process.pid)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            assert process.wait() == 130
        assert said == b"txnctl: error: interrupted\n"
        assert children
        assert not any(map(is_running, children))
        assert os.listdir(scratch) == []
        assert accounts.get(b"B1") == b"1.50"


@pytest.mark.needs_program("java")
def test_an_error_within_spark_is_as_txnctl_errors(start: Any, path: str, tmp_path: Path) -> None:
    """Raised in a process of Spark's, it reaches the user as that one error, with its code and no trace."""
    job = tmp_path / "job.py"
    job.write_text('spark.read.format("txnctl").option("topic", "nowhere").load().show()\n')
    with start("pipeline", "run", str(job), env={**os.environ, "TXNCTL_OUTPUT": "json"}) as process:
        out, said = process.communicate()
    assert out == b""
    error = json.loads(said)
    assert (process.returncode, error["code"]) == (3, "topic-not-found")
    assert "nowhere" in error["message"]
