"""A Spark Connect server as a process of its own, on a free port of this machine, for all tests that need one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.waiting import let_pass
from txnctl.spark.runtime import java
from txnctl.spark.runtime.worker_python import worker_python

ROOT = Path(__file__).parents[2]
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_S = 120


class ConnectServer:
    """A running server.

    Attributes:
        url: its address, as `--master` takes it.
        directory: the directory in which the server runs, where its tables and its log are.
    """

    def __init__(self, directory: Path) -> None:
        from pyspark.find_spark_home import _find_spark_home

        self.directory = directory
        port = _free_port()
        self.url = f"sc://127.0.0.1:{port}"
        options = {
            "spark.master": "local[2]",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.ui.enabled": "false",
        }
        words = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
        python = worker_python(str(directory))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TXNCTL_")},
            "JAVA_HOME": java.require_java().home,
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "PYTHONPATH": str(ROOT),
            "SPARK_CONNECT_MODE": "0",
        }
        spark_submit = os.path.join(_find_spark_home(), "bin", "spark-submit")
        with open(directory / "server.log", "wb") as log:
            self._process = subprocess.Popen(
                [spark_submit, "--class", _CLASS, *words, "spark-internal"],
                cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0,
            )  # fmt: skip
        try:
            self._wait_for(port)
        except BaseException:
            self.kill()
            raise

    def _wait_for(self, port: int) -> None:
        until = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                log = (self.directory / "server.log").read_text(errors="replace")
                assert self._process.poll() is None, log
                assert time.monotonic() < until, log
                let_pass(0.1, "between two tries to connect")

    def kill(self) -> None:
        """End the server and its Python processes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
