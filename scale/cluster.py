"""A standalone Spark cluster: a master and two workers, processes of their own on addresses of their own.

On the workers `lmdb` cannot be imported: a directory that stands first on their path holds a module of that name which
says so. What runs there can open no store, whatever the machine has installed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scale.processes import descendants, kill_tree, wait_until

ROOT = Path(__file__).parents[1]
MASTER, WORKERS = "127.0.0.1", ("127.0.0.2", "127.0.0.3")
_START_S = 180.0
_NO_LMDB = 'raise ImportError("lmdb is not installed on the machines of the cluster")\n'


class Cluster:
    """A running cluster.

    Attributes:
        url: the master's.
        home: SPARK_HOME, for drivers too.
    """

    def __init__(self, directory: Path, port: int, workers: list[subprocess.Popen[bytes]]) -> None:
        self.url = f"spark://{MASTER}:{port}"
        self.home = directory / "home"
        self._workers = workers

    def executors(self, worker: int) -> list[int]:
        """The processes on one worker that run tasks: their numbers."""
        return [each for each in descendants(self._workers[worker].pid) if _is_executor(each)]


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """A cluster whose files lie in a directory; all its processes are gone at the end.

    Raises:
        TimeoutError: it did not come up; its logs are in the directory.
    """
    home = _spark_home(directory)
    port, pages = _free_port(), _free_port()
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = ("master.Master", "--host", MASTER, "--port", str(port), "--webui-port", str(pages))
        started.append(_start(directory, home, "master", MASTER, *master))
        wait_until(lambda: _answers(port), _START_S, "the master answers")
        for number, address in enumerate(WORKERS):
            place = directory / f"worker-{number}"
            room = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(place))
            words = ("worker.Worker", "--host", address, *room, f"spark://{MASTER}:{port}")
            started.append(_start(directory, home, place.name, address, *words))
        wait_until(lambda: _alive(pages) == len(WORKERS), _START_S, "both workers are registered")
        yield Cluster(directory, port, started[1:])
    finally:
        for each in reversed(started):
            kill_tree(each.pid)
            each.wait()


def _spark_home(directory: Path) -> Path:
    """SPARK_HOME: links to what PySpark brings, so that nothing is written beside it.

    Its archives of Python code stay out: what runs on the workers imports the packages that are installed, which are
    compiled.
    """
    import pyspark

    home = directory / "home"
    home.mkdir()
    for each in ("bin", "jars", "sbin"):
        (home / each).symlink_to(Path(pyspark.__file__).parent / each)
    blocked = directory / "no-lmdb"
    blocked.mkdir()
    (blocked / "lmdb.py").write_text(_NO_LMDB)
    return home


def _start(directory: Path, home: Path, name: str, address: str, *words: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home),
        "SPARK_LOCAL_IP": address,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(directory / "no-lmdb"), str(ROOT)]),
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
    with open(directory / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((MASTER, 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        socket.create_connection((MASTER, port), 1).close()
    except OSError:
        return False
    return True


def _alive(pages: int) -> int:
    """How many workers the master knows, by its page for programs."""
    import json

    try:
        with urllib.request.urlopen(f"http://{MASTER}:{pages}/json/", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
            return int(found["aliveworkers"])
    except (OSError, ValueError):
        time.sleep(0.2)
        return 0
