"""Jobs, programs and Declarative Pipelines through a Spark Connect server: one real server for all of these tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import EARLIEST, Store
from txnctl.spark.runtime import connect as connect_module, requirements

if TYPE_CHECKING:
    from tests.txnctl.connect_server import ConnectServer

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "bank_pipeline"

JOBS = """
import json, os, sys
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import audit, export, ingest

columns, options = MessageColumns(key="account"), InputOptions()
parts = ingest.plan_files(["in.csv", "in.json"], columns, options)
ingested = ingest.ingest_files(spark, parts, {"topic": "requests", "createTopic": "true"}, columns, options)
requests = export.read_topic(spark, {"topic": "requests"})
exported = {form: export.export_rows(requests, f"out.{form}", form) for form in ("parquet", "csv", "json")}
findings = audit.audit_balances(spark, audit.AuditSources({"topic": "requests"}, {"table": "accounts"}))
print(json.dumps([ingested.messages, exported, findings.accounts, findings.differing]))
"""

NOT_THERE = """
import sys, types
from pyspark.sql.datasource import DataSource

module = types.ModuleType("only_at_the_client")
exec("from pyspark.sql.datasource import DataSource\\nclass Absent(DataSource):\\n    name = classmethod(lambda c: 'txnctl')",
     module.__dict__)
module.Absent.__module__ = "only_at_the_client"
sys.modules["only_at_the_client"] = module

import txnctl.spark
from storage.errors import ProgramMissing
from txnctl.spark.runtime.session import spark_session

txnctl.spark.register = lambda spark: spark.dataSource.register(module.Absent)
try:
    with spark_session("test", master=sys.argv[1]):
        raise AssertionError("a session without txnctl at the server")
except ProgramMissing as error:
    print(error.message)
"""


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server, whose Python has txnctl."""
    from tests.txnctl.connect_server import ConnectServer

    server = ConnectServer(tmp_path_factory.mktemp("connect"))
    yield server
    server.kill()


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an empty store, which commands find."""
    Store.create(tmp_path / "bank.store")
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "bank.store"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(store: Store, topic: str) -> list[dict[str, Any]]:
    """The messages of a topic, each of them JSON."""
    with store.reader(topic, start=EARLIEST) as reader:
        return [json.loads(message.value or b"") for message in reader]


def test_batch_jobs_run_in_a_session_of_a_server(
    start: Callable[..., subprocess.Popen[bytes]], connect: ConnectServer, bank: Path
) -> None:
    """Ingest, export in each format, and audit; the store is that of the client, for a program too."""
    (bank / "in.csv").write_text('account,delta\nB1,500.00\n"B\n2",80.00\n')
    (bank / "in.json").write_text('{"account": "B1", "delta": "-20.50"}\n')
    (bank / "jobs.py").write_text(JOBS)
    with Store.open(bank / "bank.store") as store:
        store.create_table("accounts")
        store.table("accounts").put(b"B1", b"479.50")
    with start("pipeline", "run", "jobs.py", "--master", connect.url) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out) == [3, {"parquet": 3, "csv": 3, "json": 3}, 2, 1]
    lines = [
        json.loads(line) for path in bank.glob("out.json/part-*") for line in path.read_text().splitlines()
    ]
    assert [line["key"] for line in sorted(lines, key=lambda line: line["messageId"])] == ["B1", "B\n2", "B1"]
    assert list(bank.glob("out.parquet/_SUCCESS"))


def test_an_error_at_the_server_is_one_of_txnctl(
    start: Callable[..., subprocess.Popen[bytes]], connect: ConnectServer, bank: Path
) -> None:
    """One sentence with its code, and no stack of the server's."""
    (bank / "job.py").write_text('spark.read.format("txnctl").option("topic", "nowhere").load().show()\n')
    environment = {**os.environ, "TXNCTL_OUTPUT": "json"}
    with start("pipeline", "run", "job.py", "--master", connect.url, env=environment) as process:
        out, err = process.communicate()
    error = json.loads(err)
    assert (out, process.returncode, error["code"]) == (b"", 3, "topic-not-found")
    assert "nowhere" in error["message"]


def test_an_option_of_the_server_is_refused(
    start: Callable[..., subprocess.Popen[bytes]], connect: ConnectServer, bank: Path
) -> None:
    """It would count for nothing: the server is running."""
    (bank / "job.py").write_text("")
    with start(
        "pipeline", "run", "job.py", "--master", connect.url, "--conf", "spark.executor.memory=9g"
    ) as process:
        _, err = process.communicate()
    assert process.returncode == 2
    assert b"spark.executor.memory is an option of the Spark Connect server" in err


def test_a_server_without_txnctl_is_named(connect: ConnectServer, bank: Path) -> None:
    """Seen at the start of the session, before any job."""
    done = subprocess.run(
        [sys.executable, "-c", NOT_THERE, connect.url], capture_output=True, text=True, check=False
    )
    assert done.stdout == f"the Python of the Spark Connect server at {connect.url} does not have txnctl\n", (
        done.stderr
    )


def run_pipeline(directory: Path, connect: ConnectServer) -> list[dict[str, Any]]:
    """Run the pipeline of a directory at the server, as `spark-pipelines run` does; the rows of its view."""
    environment = {**os.environ, "SPARK_REMOTE": connect.url}
    done = subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", "run"],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    program = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "for row in spark.table('balances').orderBy('account').toJSON().collect(): print(row.value)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in printed.stdout.splitlines()]


def test_the_pipeline_of_the_bank_goes_on_where_it_ended(connect: ConnectServer, bank: Path) -> None:
    """A streaming table over a topic, a view of balances, and a sink to a topic, which has each large request once."""
    shutil.copytree(EXAMPLE, bank / "pipeline")
    spec = bank / "pipeline" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/bank-pipeline", (bank / "checkpoints").as_uri()))
    with Store.open(bank / "bank.store") as store:
        for topic in ("requests", "large"):
            store.create_topic(topic)
        with store.create_producer("requests") as producer:
            producer.send(b'{"delta": "5000.00"}', key="B1")
            producer.send(b'{"delta": "-20.50"}', key="B1")
            assert run_pipeline(bank / "pipeline", connect) == [{"account": "B1", "balance": 4979.5}]
            producer.send(b'{"delta": "-1000.00"}', key="B2")
        assert run_pipeline(bank / "pipeline", connect) == [
            {"account": "B1", "balance": 4979.5},
            {"account": "B2", "balance": -1000.0},
        ]
        assert [value["amount"] for value in values(store, "large")] == [5000.0, -1000.0]


@pytest.mark.parametrize("job", [("settle", "requests", "--table", "accounts"), ("monitor", "requests")])
def test_a_stream_of_batches_is_refused(run: Any, bank: Path, job: tuple[str, ...]) -> None:
    """Connect would call the job's function in a process of the server's."""
    with Store.open(bank / "bank.store") as store:
        store.create_topic("requests")
        store.create_table("accounts")
    outcome = run("pipeline", *job, "--once", "--master", "sc://localhost")
    assert outcome.status == 2
    assert f"{job[0]} does not run through Spark Connect" in outcome.err


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port behind which a server speaks HTTP 1."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_server_that_does_not_answer_is_said_at_once(
    run: Any, bank: Path, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark would try for ten minutes."""
    (bank / "job.py").write_text("")
    monkeypatch.setattr(connect_module, "_ANSWER_S", 1)

    def refusal(master: str) -> str:
        outcome = run("pipeline", "run", "job.py", "--master", master)
        assert outcome.status == 2
        return str(outcome.err)

    assert "there is no Spark Connect server at 127.0.0.1:1: Connection refused" in refusal(
        "sc://127.0.0.1:1"
    )
    assert f"127.0.0.1:{silent_port} does not speak as Spark Connect does" in refusal(
        f"sc://127.0.0.1:{silent_port}"
    )
    for master in ("sc:/x", "sc://x:port"):
        assert "is no address of a Spark Connect server" in refusal(master)


@pytest.mark.parametrize("missing", requirements.CONNECT_PACKAGES)
def test_what_connect_needs_is_asked_for(
    run: Any, bank: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the line to type; Java is not needed."""
    (bank / "job.py").write_text("")
    monkeypatch.setattr(requirements, "_version", lambda package: None if package == missing else "99")
    outcome = run("pipeline", "run", "job.py", "--master", "sc://localhost")
    assert outcome.status == 11
    assert f"{missing} is not installed, and Spark Connect needs it" in outcome.err
    assert "pip install 'txnctl[connect]'" in outcome.err
