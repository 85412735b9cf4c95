"""The story's handle of the driver on Spark: start, state, waits, kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from time import monotonic, sleep

from storage import IsolationLevel, Store
from storage.errors import WaitTimeout
from storage.values.names import full_topic_name
from txnctl.demo import child
from txnctl.demo.clients import ACCOUNTS, REQUESTS
from txnctl.pipelines import settle

_WAIT_S = 300
_POLL_S = 0.02
_STOP_S = 30


class SparkDriver:
    """A running driver and its reported facts.

    Attributes:
        pid, jvm: process ids of the driver and of its JVM.
        seen: messages that monitor has seen, over all drivers.
        uncommitted: how many of the seen messages were uncommitted when read.
        reserves: the customers' money by monitor, in hellers.
    """

    def __init__(self, store: Store, directory: str, messages: int) -> None:
        """Prepare a driver of a store, with checkpoints in a directory and `messages` in a micro-batch of settle."""
        self._messages = messages
        self._store = store
        self._directory = directory
        self._process: Popen[bytes] | None = None
        self._listener: Thread | None = None
        self.pid = self.jvm = self.seen = self.uncommitted = self.reserves = 0

    def start(self) -> None:
        """Start the driver, and wait until its queries run."""
        self.jvm = 0
        arguments = (self._store.path, self._directory, str(self._messages))
        process = child.start("txnctl.demo.spark_driver", *arguments, stdin=PIPE)
        self._process, self.pid = process, process.pid
        self._listener = Thread(target=self._listen, args=(process,), daemon=True)
        self._listener.start()
        self._wait_until(lambda: self.jvm != 0)

    def _listen(self, process: Popen[bytes]) -> None:
        assert process.stdout is not None
        # The keys equal the names of the attributes.
        for line in process.stdout:
            for name, value in json.loads(line).items():
                setattr(self, name, value)

    def settled_through(self) -> str:
        """Return the last settled message, from the store."""
        return str(settle.settled_through(self._store, full_topic_name(REQUESTS), ACCOUNTS))

    def wait_until_settled(self) -> None:
        """Wait until every message readable at READ_COMMITTED is settled."""

        def is_settled() -> bool:
            last = self._store.reports.last_message_id(REQUESTS, IsolationLevel.READ_COMMITTED)
            return self.settled_through() == str(last)

        self._wait_until(is_settled)

    def wait_until_seen(self, messages: int) -> None:
        """Wait until monitor has seen so many messages."""
        self._wait_until(lambda: self.seen >= messages)

    def wait_until_moved(self, position: str) -> None:
        """Wait until the settled position differs from `position`."""
        self._wait_until(lambda: self.settled_through() != position)

    def _wait_until(self, is_done: Callable[[], bool]) -> None:
        until = monotonic() + _WAIT_S
        assert self._process is not None
        while not is_done():
            if self._process.poll() is not None:
                raise child.failure("the Spark driver", self._process)
            if monotonic() > until:
                raise WaitTimeout(f"the Spark driver did not get on within {_WAIT_S} s")
            sleep(_POLL_S)

    def kill(self) -> int:
        """Kill the driver and its JVM at once; return its pid."""
        assert self._process is not None
        for pid in (self.jvm, self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._close_pipes()
        return self.pid

    def stop(self) -> None:
        """Stop a running driver in order."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_STOP_S)
            except TimeoutExpired:
                self.kill()
        self._close_pipes()

    def _close_pipes(self) -> None:
        """Close the pipes of a driver that has ended."""
        assert self._process is not None and self._listener is not None
        self._listener.join(_STOP_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
