"""Failures of Spark's own processes, as a user of the commands meets them: real masters, a real JVM that is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

from storage import Store
from tests.waiting import wait_for
from txnctl.spark.runtime import master as master_module

ROOT = Path(__file__).parents[4]
Start = Callable[..., "subprocess.Popen[bytes]"]
PATIENCE_S = 120.0

_SLEEPER = """
import pyspark.sql.functions as f, signal
@f.udf("string", useArrow=False)
def slow(value):
    open({mark!r}, "w").close()
    signal.pause()
    return str(value)
spark.range(1).select(slow("id").alias("value")).write.format("txnctl").mode("append").option("topic", "requests").save()
"""


def jvm_of(pid: int) -> int:
    """The JVM among the children of a command."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (jvm,) = [child for child in map(int, children) if b"java" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return jvm


def until(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Wait for a condition while a process runs."""
    wait_for(lambda: process.poll() is not None or condition(), "a condition of the test", PATIENCE_S)
    assert process.poll() is None, process.stderr and process.stderr.read()


def failure(process: subprocess.Popen[bytes]) -> tuple[int, Any]:
    """The exit code and the error of a command with -o json: nothing but that error is said."""
    out, said = process.communicate(timeout=PATIENCE_S * 2)
    assert out == b""
    assert said.count(b"\n") == 1, said.decode()
    return process.returncode, json.loads(said)


@pytest.mark.needs_program("java")
def test_a_master_that_is_not_there_is_named_before_a_jvm_starts(run: Any, path: str) -> None:
    """No such host, no such port: exit code 12, host, port and reason, and the next step."""
    for master, says in (
        ("spark://nohost.invalid:7077", "nohost.invalid:7077: no such host"),
        ("spark://127.0.0.1:1", "127.0.0.1:1: connection refused"),
    ):
        outcome = run("pipeline", "export", "requests", "out", "--master", master, "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (12, "cluster-unreachable")
        assert says in outcome.error["message"]
        assert "--master 'local[*]'" in outcome.error["hint"]


@pytest.mark.slow
@pytest.mark.needs_program("java")
def test_a_master_that_takes_connections_and_says_nothing(
    run: Callable[..., Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that was stopped: after a minute, here a few seconds, the job ends with one error."""
    monkeypatch.setattr(master_module, "ANSWER_S", 8.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        done = run("pipeline", "export", "requests", "out", "--master", master, "-o", "json")
    assert (done.status, done.error["code"]) == (12, "cluster-unreachable")
    assert f"master at {master[8:]} takes connections and does not answer" in done.error["message"]


@pytest.mark.needs_program("java")
def test_a_killed_jvm_is_no_bug(start: Start, path: str, tmp_path: Path) -> None:
    """SIGKILL in the middle of a job, as by the kernel without memory: said so, with the option that helps, and nothing
    of the job is in the store.
    """
    mark, job = tmp_path / "mark", tmp_path / "job.py"
    job.write_text(_SLEEPER.format(mark=str(mark)))
    with start("pipeline", "run", str(job), env={**os.environ, "TXNCTL_OUTPUT": "json"}) as process:
        until(mark.exists, process)
        os.kill(jvm_of(process.pid), signal.SIGKILL)
        status, error = failure(process)
    assert (status, error["code"], error["retryable"]) == (12, "jvm-died", True)
    assert "was killed (signal 9)" in error["message"]
    assert "memory" in error["message"]
    assert error["hint"].startswith("Nothing half-done is in the store: run the job again")
    assert "--conf spark.driver.memory=" in error["hint"]
    with Store.open(path) as store:
        assert list(store.reader("requests")) == []


@pytest.mark.needs_program("java")
def test_a_jvm_killed_below_a_stream_is_no_bug(start: Start, path: str) -> None:
    """The micro-batches before the kill stay, whole."""
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send(b'{"delta": "1.50"}', key="B1")
        words = ("settle", "requests", "--table", "accounts", "-o", "json")
        with start("pipeline", *words) as process:
            until(lambda: store.table("accounts").get(b"B1") == b"1.50", process)
            os.kill(jvm_of(process.pid), signal.SIGKILL)
            status, error = failure(process)
    assert (status, error["code"]) == (12, "jvm-died")


@pytest.mark.needs_program("java")
@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ("spark.driver.memory=9x", "9x"),
        ("spark.driver.extraJavaOptions=-XX:+UseG1GC -XX:+UseSerialGC", "garbage collectors"),
    ],
)
def test_a_start_that_fails_says_why(start: Start, path: str, conf: str, says: str) -> None:
    """The cause, and not the warning with which every start begins."""
    with start("pipeline", "export", "requests", "out", "--conf", conf, "-o", "json") as process:
        status, error = failure(process)
    assert status == 2
    assert error["message"].startswith("Spark did not start: ")
    assert says in error["message"]
    assert "WARNING" not in error["message"]


@pytest.fixture
def cluster_environment(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The environment of a job on `local-cluster`, whose executors, processes of their own, lack a package."""
    home, lacking = tmp_path / "home", tmp_path / "lacking"
    home.mkdir()
    lacking.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)

    def without(package: str) -> dict[str, str]:
        (lacking / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")
        python = tmp_path / "python"
        # An executor works in a directory of its own below SPARK_HOME; the driver's Python processes do not.
        python.write_text(
            f'#!/bin/sh\ncase "$PWD" in {home}/work/*) PYTHONPATH={lacking}:$PYTHONPATH; export PYTHONPATH;; esac\n'
            f'exec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        return {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": str(python), "PYTHONPATH": str(ROOT)}

    return without


@pytest.mark.slow
@pytest.mark.needs_program("java")
@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("lmdb", ("export", "requests", "out")),
        ("msgpack", ("ingest", "in.csv", "requests")),
    ],
)
def test_an_executor_that_lacks_a_package_is_named(
    start: Start, path: str, cluster_environment: Any, package: str, words: tuple[str, ...]
) -> None:
    """With its host, the path of the store, and the options that help: reading in a task, and writing in a task."""
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send(b"1")
    master = ("--master", "local-cluster[1,1,1024]", "-o", "json")
    with start("pipeline", *words, *master, env=cluster_environment(package)) as process:
        status, error = failure(process)
    assert (status, error["code"]) == (11, "program-missing")
    assert error["message"].startswith(f"on host {socket.gethostname()} the Python of Spark (")
    assert f"has no {package}: it cannot work on {path}" in error["message"]
    assert all(option in error["hint"] for option in ("--offload-path", "--staging-path", "pyFiles"))


_RAISING = """
import pyspark.sql.functions as f, os
@f.udf("string", useArrow=False)
def failing(value):
    {statement}
spark.range(1).select(failing("id").alias("value")).write.format("txnctl").mode("append").option("topic", "requests").save()
"""


@pytest.mark.needs_program("java")
@pytest.mark.parametrize(
    ("statement", "says", "advice"),
    [
        ("os.kill(os.getpid(), 9)", "a Python process of Spark was killed or crashed", "--master 'local[1]'"),
        ("raise ValueError('no number')", "the Spark job failed: ValueError: no number", "--debug"),
    ],
)
def test_a_task_that_fails_says_why(
    start: Start, path: str, tmp_path: Path, statement: str, says: str, advice: str
) -> None:
    """A killed Python process, and an exception of the program: the cause, and no frame of Spark around it."""
    job = tmp_path / "job.py"
    job.write_text(_RAISING.format(statement=statement))
    with start("pipeline", "run", str(job), env={**os.environ, "TXNCTL_OUTPUT": "json"}) as process:
        status, error = failure(process)
    assert (status, error["code"]) == (12, "job-failed")
    assert error["message"].startswith(says)
    assert advice in error["hint"]


@pytest.mark.slow
@pytest.mark.needs_program("java")
@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (("ingest", "q.csv", "latin", "--create"), 2, "q.csv: line 2: it is not UTF-8 text"),
        (("run", "circle.py"), 1, "a circle"),
        (("export", "requests", "gs://b/x"), 2, "no file system for gs://"),
        (("sql", "SELECT nope FROM accounts"), 2, "`nope` cannot be resolved"),
        (("settle", "requests", "--table", "accounts", "--engine", "spark"), 2, "account B1"),
        (("audit", "nothing", "--table", "accounts", "--engine", "spark"), 3, "there is no topic nothing"),
        (("offload", "nothing", "out"), 3, "there is no topic nothing"),
        (("monitor", "nothing"), 3, "there is no topic nothing"),
    ],
)
def test_a_job_that_fails_ends(
    start: Start, path: str, words: tuple[str, ...], exit_code: int, says: str
) -> None:
    """Every job, at an error of its input, of Spark, of a task or of the program: with the cause and an exit code."""
    Path("q.csv").write_bytes(b"k,v\na,Z\xfcrich\n")
    Path("circle.py").write_text("error = ValueError('a circle')\nerror.__cause__ = error\nraise error\n")
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send(b'{"delta": "1.50"}', key="B1")
        store.table("accounts").put(b"B1", b"nonsense")
    with start("pipeline", *words) as process:
        _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, says in said.decode()) == (exit_code, True), said.decode()
