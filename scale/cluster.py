"""A standalone Spark cluster: a master and two workers, separate processes on separate addresses.

On the workers `lmdb` cannot be imported: a directory that is first on their path has a module of that name that raises
ImportError. So tasks cannot open a directory, whatever the machine has installed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        """Return the pids of a worker's processes that run tasks."""
        return [pid for pid in descendants(self._workers[worker].pid) if _is_executor(pid)]


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """Run a cluster with its files in a directory; all processes are killed at the end.

    Raises:
        TimeoutError: the cluster did not start; the logs are in the directory.
    """
    home = _spark_home(directory)
    port, pages = _free_port(), _free_port()
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = ("master.Master", "--host", MASTER, "--port", str(port), "--webui-port", str(pages))
        started.append(_start(directory, home, "master", MASTER, *master))
        wait_until(lambda: _answers(port), _START_S, "the master answers")
        for number, address in enumerate(WORKERS):
            work_directory = directory / f"worker-{number}"
            resources = (
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(work_directory),
            )
            arguments = ("worker.Worker", "--host", address, *resources, f"spark://{MASTER}:{port}")
            started.append(_start(directory, home, work_directory.name, address, *arguments))
        wait_until(lambda: _alive(pages) == len(WORKERS), _START_S, "both workers are registered")
        yield Cluster(directory, port, started[1:])
    finally:
        for process in reversed(started):
            kill_tree(process.pid)
            process.wait()


def _spark_home(directory: Path) -> Path:
    """Make SPARK_HOME of links to the installed PySpark, so that nothing is written beside the package.

    Spark's archives of Python code are left out: workers import the installed packages, which are compiled.
    """
    import pyspark

    home = directory / "home"
    home.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    blocked = directory / "no-lmdb"
    blocked.mkdir()
    (blocked / "lmdb.py").write_text(_NO_LMDB)
    return home


def spark_places(home: Path) -> dict[str, str]:
    """Return the variables that name SPARK_HOME and a directory of settings, which does not exist.

    The directory of settings is the first entry of the class path. Java passes an archive of classes over when the
    class path has an entry that it had not when the archive was written; entries that do not exist do not count.
    """
    return {"SPARK_HOME": str(home), "SPARK_CONF_DIR": str(home / "conf")}


def _start(directory: Path, home: Path, name: str, address: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        **spark_places(home),
        "SPARK_LOCAL_IP": address,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(directory / "no-lmdb"), str(ROOT)]),
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
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
    """Return the number of registered workers, from the master's JSON page."""
    import json

    try:
        with urllib.request.urlopen(f"http://{MASTER}:{pages}/json/", timeout=2) as answer:
            status: dict[str, int] = json.load(answer)
            return int(status["aliveworkers"])
    except (OSError, ValueError):
        return 0
