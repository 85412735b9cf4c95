r"""A command of the user's as our child: signals are passed on to the child, and the death of this process too.

Signals are taken one at a time while the command runs, never in the middle of something. A signal of the terminal
(Ctrl-C, Ctrl-\, a hang-up) reaches the whole foreground group, so the command has the signal already, and decides. A
signal from a process to txnctl alone is passed on. If we are killed outright, Linux sends the command SIGTERM (the
parent-death signal); no such thing exists elsewhere.

Meanwhile the caller may check a condition once a second, on Linux, and send a signal to the command and every process
started by the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from errno import EACCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storage.errors import ProgramMissing

    Look = Callable[[], signal.Signals | None]

_TOLD = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1
# `si_code` of a signal by the kernel: here, the terminal's driver.
_SI_KERNEL = 0x80

_LOOK_S = 1.0

NOT_FOUND = 127
NOT_RUNNABLE = 126
"""What every command that runs another exits with when it cannot (POSIX: env, nice, nohup, time)."""


class Ending:
    """How the command ended.

    Attributes:
        status: as a shell reports: the exit code, or 128 plus the number of the signal.
        stopped_by: the signal to txnctl that ended the run; None without such a signal.
    """

    __slots__ = ("status", "stopped_by")

    def __init__(self, status: int, stopped_by: signal.Signals | None) -> None:
        self.status = status
        self.stopped_by = stopped_by


def check(words: Sequence[str]) -> None:
    """Check that the command exists, for a caller that waits before running the command.

    Raises:
        ProgramMissing
    """
    from shutil import which

    name = words[0]
    if which(name) is None:
        exists = os.sep in name and os.path.exists(name)
        raise _not_run(name, PermissionError(EACCES, os.strerror(EACCES)) if exists else FileNotFoundError())


def run(words: Sequence[str], environment: Mapping[str, str], look: Look | None = None) -> Ending:
    """Run the command with our standard streams to the end, holding neither the writer gate nor a view of the store.

    Args:
        look: called once a second; the returned signal, if any, goes to the command and every descendant.

    Raises:
        ProgramMissing: the command cannot be started; the exit code is that of shells.
    """
    try:
        return _run(words, environment, look)
    except (OSError, ValueError) as cause:
        error = _not_run(words[0], cause)
    raise error


def _not_run(name: str, cause: Exception) -> ProgramMissing:
    from storage.errors import ProgramMissing

    if isinstance(cause, FileNotFoundError):
        error = ProgramMissing(f"there is no command {name}", hint="Check the spelling and PATH.")
        error.exit_code = NOT_FOUND
    else:
        error = ProgramMissing(f"{name} cannot be run: {getattr(cause, 'strerror', None) or cause}")
        error.exit_code = NOT_RUNNABLE
    return error


def _run(words: Sequence[str], environment: Mapping[str, str], look: Look | None) -> Ending:
    forwarded = [number for number in _TOLD if signal.getsignal(number) is not signal.SIG_IGN]
    watched = {signal.SIGCHLD, *forwarded}
    # Where SIGCHLD is ignored, which is inherited, the kernel forgets how children ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        # The store's descriptors are close-on-exec; the user's own (3<file) are meant for the command. A process with
        # this task alone has no further threads.
        prepare = _preparation(forwarded, mask)
        child = subprocess.Popen(words, env=environment, close_fds=False, preexec_fn=prepare)  # noqa: PLW1509
        return _follow(child, watched, look)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _preparation(forwarded: Sequence[signal.Signals], mask: set[int | signal.Signals]) -> Callable[[], None]:
    """Run in the child between fork and exec."""
    parent, ask_for_death_signal = os.getpid(), _death_signal()

    def prepare() -> None:
        # Until exec the child has our handlers, which only note a signal for an interpreter about to be replaced.
        for number in forwarded:
            signal.signal(number, signal.SIG_DFL)
        ask_for_death_signal()
        if os.getppid() != parent:
            # This process died before the call.
            os.kill(os.getpid(), signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return prepare


def _death_signal() -> Callable[[], None]:
    """A function that asks the kernel for SIGTERM when the parent dies; nothing on systems without."""
    if sys.platform != "linux":
        return lambda: None
    try:
        import ctypes
    except ImportError:
        # A Python built without libffi.
        return lambda: None
    prctl = ctypes.CDLL(None).prctl
    arguments = [ctypes.c_ulong(value) for value in (signal.SIGTERM, 0, 0, 0)]
    return lambda: prctl(_PR_SET_PDEATHSIG, *arguments)


def _follow(child: subprocess.Popen[bytes], watched: set[signal.Signals], look: Look | None) -> Ending:
    stopped_by = None
    while True:
        # A second thread that does not block SIGCHLD may take the signal.
        received = _next_signal(watched, _LOOK_S)
        status = child.poll()
        if status is not None:
            return Ending(status if status >= 0 else 128 - status, stopped_by)
        if received is None:
            ordered = look() if look is not None else None
            if ordered is not None:
                for pid in (child.pid, *_descendants(child.pid)):
                    _tell(pid, ordered)
            continue
        number, is_typed = received
        if number is not signal.SIGCHLD and not is_typed:
            stopped_by = number
            child.send_signal(number)


def _tell(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(pid: int) -> list[int]:
    """Every descendant of a process: a shell that ends leaves children behind."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        with suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    processes = [pid]
    for process in processes:
        processes += children.get(process, [])
    return processes[1:]


def _next_signal(watched: set[signal.Signals], wait_s: float) -> tuple[signal.Signals, bool] | None:
    """The next signal, and whether the terminal sent the signal to the command as well; None if none came in time."""
    if sys.platform == "linux":
        received = signal.sigtimedwait(watched, wait_s)
        if received is None:
            return None
        number, is_typed = signal.Signals(received.si_signo), received.si_code == _SI_KERNEL
    else:
        number = signal.Signals(signal.sigwait(watched))
        is_typed = number in (signal.SIGINT, signal.SIGQUIT)
    return number, is_typed
