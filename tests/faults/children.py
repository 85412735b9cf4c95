"""Functions in forked processes, a few at a time: what a function returns, or how its process died."""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

PATIENCE_S: Final = 90
"""So long a function may take, on a busy machine; SIGALRM then ends its process."""


class Ended(NamedTuple):
    """The end of a function in a process of its own.

    Attributes:
        name: of the call.
        result: what the function returned; None where the process died.
        death: how the process died, or the traceback of an exception; None after a result.
    """

    name: Any
    result: Any
    death: str | None


def in_child(function: Callable[[], Any]) -> Ended:
    """Call a function in a forked process."""
    return next(in_children([(None, function)], 1))


def in_children(
    calls: Iterable[tuple[Any, Callable[[], Any]]], at_once: int, patience_s: int = PATIENCE_S
) -> Iterator[Ended]:
    """Call named functions in forked processes, `at_once` at a time, each when the one before has been taken."""
    selector, pids, heard = selectors.DefaultSelector(), dict[int, tuple[Any, int]](), dict[int, bytes]()
    waiting = iter(calls)
    is_exhausted = False
    while not is_exhausted or pids:
        while not is_exhausted and len(pids) < at_once:
            call = next(waiting, None)
            if call is None:
                is_exhausted = True
                break
            pid, reading = _start(call[1], patience_s)
            pids[reading], heard[reading] = (call[0], pid), b""
            selector.register(reading, selectors.EVENT_READ)
        for key, _ in selector.select() if pids else []:
            data = os.read(key.fd, 1 << 16)
            heard[key.fd] += data
            if not data:
                selector.unregister(key.fd)
                os.close(key.fd)
                name, pid = pids.pop(key.fd)
                yield _ended(name, pid, heard.pop(key.fd))
    selector.close()


def _start(function: Callable[[], Any], patience_s: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    signal.alarm(patience_s)
    try:
        answer = pickle.dumps((function(), None))
    except BaseException:  # noqa: BLE001 - told to the parent
        answer = pickle.dumps((None, traceback.format_exc()))
    while answer:
        answer = answer[os.write(writing, answer) :]
    os._exit(0)


def _ended(name: Any, pid: int, answer: bytes) -> Ended:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status or not answer:
        return Ended(name, None, f"ended by signal {-status}" if status < 0 else f"exit code {status}")
    result, death = pickle.loads(answer)
    return Ended(name, result, death)
