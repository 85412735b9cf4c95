"""The driver of the story on Spark, as the one who tells it sees it: started, watched, waited for, killed."""

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
from txnctl.pipelines.settle import settled_through

_WAIT_S = 300
_LOOK_S = 0.02
_STOP_S = 30


class Driver:
    """See the module.

    Attributes:
        pid, jvm: its process, and that of its JVM.
        seen: messages that monitor has seen, over all drivers.
        uncommitted: of them uncommitted at that moment.
        reserves: what the customers have, as monitor sees it, in hellers.
    """

    def __init__(self, store: Store, directory: str, messages: int) -> None:
        """Of a store, with its checkpoints in a directory; so many messages are in a micro-batch of settle."""
        self._messages = messages
        self._store = store
        self._directory = directory
        self._process: Popen[bytes] | None = None
        self._listener: Thread | None = None
        self.pid = self.jvm = self.seen = self.uncommitted = self.reserves = 0

    def start(self) -> None:
        """Start it, and wait until its queries run."""
        self.jvm = 0
        words = (self._store.path, self._directory, str(self._messages))
        process = child.start("txnctl.demo.spark_driver", *words, stdin=PIPE)
        self._process, self.pid = process, process.pid
        self._listener = Thread(target=self._listen, args=(process,), daemon=True)
        self._listener.start()
        self._wait(lambda: self.jvm != 0)

    def _listen(self, process: Popen[bytes]) -> None:
        assert process.stdout is not None
        # The names are those of the attributes.
        for line in process.stdout:
            for name, value in json.loads(line).items():
                setattr(self, name, value)

    def through(self) -> str:
        """The last message that is settled, as the store has it."""
        return str(settled_through(self._store, full_topic_name(REQUESTS), ACCOUNTS))

    def wait_until_settled(self) -> None:
        """Wait until every message that can be read at READ_COMMITTED is settled."""

        def is_settled() -> bool:
            last = self._store.reports.last_message_id(REQUESTS, IsolationLevel.READ_COMMITTED)
            return self.through() == str(last)

        self._wait(is_settled)

    def wait_until_seen(self, messages: int) -> None:
        """Wait until monitor has seen so many messages."""
        self._wait(lambda: self.seen >= messages)

    def wait_until_moved(self, position: str) -> None:
        """Wait until more is settled than up to a position."""
        self._wait(lambda: self.through() != position)

    def _wait(self, is_done: Callable[[], bool]) -> None:
        until = monotonic() + _WAIT_S
        assert self._process is not None
        while not is_done():
            if self._process.poll() is not None:
                raise child.failure("the Spark driver", self._process)
            if monotonic() > until:
                raise WaitTimeout(f"the Spark driver did not get on within {_WAIT_S} s")
            sleep(_LOOK_S)

    def kill(self) -> int:
        """Kill it with its JVM, at once; its pid."""
        assert self._process is not None
        for pid in (self.jvm, self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._hang_up()
        return self.pid

    def stop(self) -> None:
        """Let it end in order, if it runs."""
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
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the pipes of a driver that has ended."""
        assert self._process is not None and self._listener is not None
        self._listener.join(_STOP_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
