"""Session: `txnctl/commands/pipeline/session.py`."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.pipeline.run_steps import LINES
from tests.waiting import wait_for
from txnctl.spark.runtime import requirements


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
    outcome = run("pipeline", "audit", "requests", "--table", "accounts", "--engine", "spark", "-o", "json")
    assert (outcome.status, outcome.error["code"]) == (11, "program-missing")
    assert outcome.error["hint"] == "Install it with: pip install 'txnctl[spark]'"


@pytest.mark.needs_program("java")
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
            wait_for(
                lambda: process.poll() is not None or accounts.get(b"B1") == b"1.50",
                "the request is settled",
                120,
            )
            assert process.poll() is None, process.stderr.read()
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
    assert said.count(b"\n") == 1, said.decode()
    error = json.loads(said)
    assert (process.returncode, error["code"]) == (3, "topic-not-found")
    assert "nowhere" in error["message"]
