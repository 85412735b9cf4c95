"""The exit codes of `txnctl`: the numbers, the exit code of each error, and the error codes of the command line alone.

An error of the engine carries a code and an exit code (`storage.errors`). `code_of` gives both for every exception
that ends a command; `error_report` prints the error, and `txnctl errors` (commands/errors) prints the list.
"""

from __future__ import annotations

import click

from storage.errors import TxnctlError

DONE = 0
UNEXPECTED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
STORE_BUSY = 5
STORE_INVALID = 6
TIMED_OUT = 7
CONDITION_FOUND = 8
REFUSED = 9
OUTCOME_UNKNOWN = 10
PROGRAM_MISSING = 11
JOB_FAILED = 12
HUNG_UP = 129
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

MEANINGS = {
    DONE: "done; an empty list is success",
    UNEXPECTED: "unexpected failure (a bug: please report it)",
    USAGE: "usage or bad input (a name, a position, a size, a line of NDJSON)",
    NOT_FOUND: "not found",
    CONFLICT: "conflict: fenced, busy producer or subscription, already exists, wrong state, changed since, "
    "lost to another transaction over a key or an acknowledgement, a write in a read-committed transaction",
    STORE_BUSY: "store busy: a lock not obtained within --lock-timeout (retryable)",
    STORE_INVALID: "store invalid: none there, not a store, unknown format, corrupt, full, not permitted; "
    "the device of the output is full; "
    "a server not reached or lost (retryable)",
    TIMED_OUT: "waited and timed out",
    CONDITION_FOUND: "condition found, with --exit-code",
    REFUSED: "refused: needs --yes or --force",
    OUTCOME_UNKNOWN: "outcome unknown: the disk failed during the commit itself",
    PROGRAM_MISSING: "a program that is needed is missing",
    JOB_FAILED: "a job on Spark failed: the cluster, its JVM or a task, not txnctl",
    HUNG_UP: "hung up (SIGHUP)",
    INTERRUPTED: "interrupted (SIGINT)",
    PIPE_CLOSED: "the reader of the output went away",
    TERMINATED: "terminated (SIGTERM); `consume -f`: 0, once what is in hand is done",
}

COMMAND_LINE_ERRORS = {
    "unexpected": (
        UNEXPECTED,
        "Something that txnctl does not know: a bug. `--debug` shows where it happened.",
    ),
    "command-failed": (
        UNEXPECTED,
        "The command of `consume --exec` failed, and the message was given back. The exit code is the command's own.",
    ),
    "output-failed": (
        STORE_INVALID,
        "The result could not be written to standard output; a full disk, mostly.",
    ),
    "usage": (USAGE, "The command line itself is wrong: an unknown command or option, a missing argument."),
    "hung-up": (
        HUNG_UP,
        "SIGHUP: the terminal is gone. What was acknowledged before is kept, nothing is half-done; nohup avoids it.",
    ),
    "interrupted": (
        INTERRUPTED,
        (
            "Ctrl-C, or SIGINT. What was acknowledged before is kept, nothing is half-done. In the first hundredths "
            "of a second Python itself is starting and ends with a traceback; no store is open by then."
        ),
    ),
    "terminated": (TERMINATED, "SIGTERM. What was acknowledged before is kept, nothing is half-done."),
}
"""Error codes beside those of `storage.errors.ALL`: code -> (exit code, what it means)."""


class Terminated(BaseException):
    """SIGTERM came; like KeyboardInterrupt, passes every `except Exception`."""


class HungUp(Terminated):
    """SIGHUP came: the terminal is gone."""


class EndsWith(Exception):
    """An error that ends the command with a different exit code, such as a code for monitoring."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def code_of(error: BaseException) -> tuple[str, int]:
    """The error code of an exception, and the exit code of the command that the exception ends."""
    if isinstance(error, EndsWith) and error.__cause__ is not None:
        return code_of(error.__cause__)[0], error.exit_code
    if isinstance(error, TxnctlError):
        return error.code, error.exit_code
    if isinstance(error, click.ClickException):
        return "usage", USAGE
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted", INTERRUPTED
    if isinstance(error, HungUp):
        return "hung-up", HUNG_UP
    if isinstance(error, Terminated):
        return "terminated", TERMINATED
    refused = of_system(error)
    if refused is not None:
        return refused.code, refused.exit_code
    return "unexpected", UNEXPECTED


def of_system(error: BaseException) -> TxnctlError | None:
    """The error for what the system refused about any file, a module of Python included; None for any other."""
    if not isinstance(error, OSError):
        return None
    from storage.system_errors import system_refusal

    return system_refusal(f"cannot use {error.filename or 'a file'}", error)
