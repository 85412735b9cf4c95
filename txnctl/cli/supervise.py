r"""A command of the user's as our child: signals are passed on to the child, and the death of this process too.

Signals are taken one at a time while the command runs, never in the middle of something. A signal of the terminal
(Ctrl-C, Ctrl-\, a hang-up) reaches the whole foreground group, so the command has the signal already, and decides. A
signal from a process to txnctl alone is passed on. If we are killed outright, Linux sends the command SIGTERM (the
parent-death signal); no such thing exists elsewhere.

Meanwhile the caller may check a condition once a second, on Linux, and have the command and every process started by
the command end: SIGTERM, and SIGKILL for those that remain (`farewell.py`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from errno import EACCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storage.errors import ProgramMissing
    from txnctl.cli.farewell import Farewell

    Look = Callable[[], signal.Signals | None]

_TOLD = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1
# `si_code` of a signal by the kernel: here, the terminal's driver.
_SI_KERNEL = 0x80

_LOOK_S = 1.0
_FAREWELL_LOOK_S = 0.05
"""Seconds between two looks; the second while processes that were told to end are waited for."""

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
        look: called once a second; the returned signal, if any, goes to the command and every descendant, and SIGKILL
            ten seconds later to those that remain.

    Raises:
        ProgramMissing: the command cannot be started; the exit code is that of shells.
    """
    forwarded = [number for number in _TOLD if signal.getsignal(number) is not signal.SIG_IGN]
    watched = {signal.SIGCHLD, *forwarded}
    # Where SIGCHLD is ignored, which is inherited, the kernel forgets how children ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        return _follow(_start(words, environment, _preparation(forwarded, mask)), watched, look)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start(
    words: Sequence[str], environment: Mapping[str, str], prepare: Callable[[], None]
) -> subprocess.Popen[bytes]:
    try:
        # The store's descriptors are close-on-exec; the user's own (3<file) are meant for the command. A process with
        # this task alone has no further threads.
        return subprocess.Popen(words, env=environment, close_fds=False, preexec_fn=prepare)  # noqa: PLW1509
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
    stopped_by: signal.Signals | None = None
    farewell: Farewell | None = None
    while True:
        # A second thread that does not block SIGCHLD may take the signal.
        received = _next_signal(watched, _LOOK_S if farewell is None else _FAREWELL_LOOK_S)
        status = child.poll()
        if status is not None and (farewell is None or farewell.is_over()):
            return Ending(status if status >= 0 else 128 - status, stopped_by)
        if received is not None:
            number, is_typed = received
            if number is not signal.SIGCHLD and not is_typed:
                stopped_by = number
                if farewell is None:
                    child.send_signal(number)
                else:
                    farewell.tell(number)
        elif farewell is not None:
            farewell.look()
        else:
            farewell = _ordered(child, look)


def _ordered(child: subprocess.Popen[bytes], look: Look | None) -> Farewell | None:
    """Look; the farewell to the command if the caller ordered one."""
    number = look() if look is not None else None
    if number is None:
        return None
    from txnctl.cli.farewell import Farewell

    return Farewell(child, number)


def _next_signal(watched: set[signal.Signals], wait_s: float) -> tuple[signal.Signals, bool] | None:
    """The next signal, and whether the terminal sent the signal to the command as well; None if none came in time."""
    if sys.platform == "linux":
        received = signal.sigtimedwait(watched, wait_s)
        # A wait that SIGSTOP and SIGCONT interrupt, and that has no time left then, returns memory that CPython has not
        # initialised. No signal is lost so: signals that came meanwhile are pending, and the next call returns them.
        if received is None or received.si_signo not in watched:
            return None
        number, is_typed = signal.Signals(received.si_signo), received.si_code == _SI_KERNEL
    else:
        number = signal.Signals(signal.sigwait(watched))
        is_typed = number in (signal.SIGINT, signal.SIGQUIT)
    return number, is_typed
