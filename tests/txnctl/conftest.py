"""The command line as tests use it: `run` inside this process, `start` as a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.report_steps import tree
from tests.txnctl.stuck_store import StuckStore
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.main import main
from txnctl.spark.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from pyspark.sql import SparkSession

    from tests.txnctl.s3_server import S3Server

ROOT = Path(__file__).parents[2]


class Outcome:
    """How one command line ended."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out_bytes = out
        self.out = out.decode("utf-8", "surrogateescape")
        self.err = err.decode()

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Standard output as NDJSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The last line of standard error as a JSON object."""
        return json.loads(self.err.splitlines()[-1])

    def __repr__(self) -> str:
        return f"exit {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


class _Stream(io.TextIOWrapper):
    """A stream that may say that it is a terminal."""

    terminal = False

    def isatty(self) -> bool:
        """What the test wants it to be."""
        return self.terminal


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No variable of whoever runs the tests reaches a command, and no command reaches their home."""
    for name in [each for each in os.environ if each.startswith(("TXNCTL_", "_TXNCTL_"))]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "XDG_DATA_HOME", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two task slots, whose Python processes run the code of this tree."""
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python(str(place))
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("txnctl tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.local.dir", str(place / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A local S3 server."""
    from tests.txnctl.s3_server import S3Server

    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The local S3 server, which the variables of AWS name."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every command of the test is told that the store is."""
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "bank.store"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return tmp_path / "bank.store"


@pytest.fixture
def verified_path(told: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The path of a store, named to every command of the test, and verified in full at the end.

    The store has the topics in TOPICS of the test's module, and nothing else.
    """
    Store.create(told)
    with Store.open(told) as store:
        for topic in getattr(request.module, "TOPICS", ()):
            store.create_topic(topic)
    yield told
    with Store.open(told) as store:
        assert store.maintenance.verify_store() == []


@pytest.fixture
def path(verified_path: Path) -> Path:
    """The path of the store for the tests; folders and modules replace this fixture by a filled store."""
    return verified_path


@pytest.fixture
def hour_old(told: Path) -> Path:
    """A store made an hour ago, with the topic `orders`, to which `billing` subscribes, and the table `balances`."""
    Store.create(told, clock=an_hour_ago())
    with Store.open(told, clock=an_hour_ago()) as store:
        store.create_topic("orders")
        store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        store.create_table("balances")
    return told


@pytest.fixture
def unused_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of an empty store, named to every command of the test."""
    path = tmp_path / "new.store"
    Store.create(path)
    monkeypatch.setenv("TXNCTL_STORE", str(path))
    return path


@pytest.fixture(scope="module")
def stuck_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StuckStore]:
    """A store in trouble, which the tests of one module only read."""
    stuck = StuckStore(tmp_path_factory.mktemp("report") / "bank.store")
    yield stuck
    stuck.end()


@pytest.fixture
def report_text(run: Callable[..., Outcome], stuck_store: StuckStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of `txnctl report` for `stuck_store`."""
    monkeypatch.setenv("TXNCTL_STORE", str(stuck_store.path))
    outcome = run("report", "--html", "-")
    assert (outcome.status, outcome.err) == (0, "")
    return str(outcome.out)


@pytest.fixture
def report_page(report_text: str) -> Element:
    """The page of `txnctl report` for `stuck_store`, as a tree: the page is well-formed."""
    return tree(report_text)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which the demo makes its temporary stores."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr("tempfile.tempdir", None)
    return directory


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Put a command or group into the tree, as `txnctl probe`."""

    def put(found: Any) -> None:
        module = types.ModuleType("probe_of_a_test")
        module.__dict__["probe"] = found
        monkeypatch.setitem(sys.modules, "probe_of_a_test", module)
        monkeypatch.setitem(COMMANDS, "probe", ("probe_of_a_test:probe", "A probe."))

    return put


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a command line in this process: `run("topics", "list", "-o", "json").json`.

    With `terminal=True` standard output says that it is one.
    """

    def run_line(*words: str, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            stdout = _Stream(out, "utf-8", write_through=True)
            stdout.terminal = terminal
            patch.setattr(sys, "stdout", stdout)
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True))
            status = main(words)
            sys.stdout.flush()
            return Outcome(status, out.getvalue(), err.getvalue())

    return run_line


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a command line as a process of its own, its three streams pipes unless said otherwise.

    Nothing of what was started is left when the test is over.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start_line(*words: str, **options: Any) -> subprocess.Popen[bytes]:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        started.append(subprocess.Popen([sys.executable, "-m", "txnctl", *words], **streams))
        return started[-1]

    yield start_line
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()
