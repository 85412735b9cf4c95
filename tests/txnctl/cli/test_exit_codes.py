"""Exit codes: each has one meaning, and every error ends with a code that has one."""

from __future__ import annotations

import signal

from storage.errors import ALL
from txnctl.cli import exit_codes
from txnctl.cli.exit_codes import COMMAND_LINE_ERRORS, MEANINGS


def test_every_code_has_a_name_and_a_meaning() -> None:
    """And no two are the same."""
    named = [value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)]
    assert sorted(named) == sorted(MEANINGS)
    assert len(set(MEANINGS.values())) == len(MEANINGS)


def test_every_error_ends_with_a_code_that_has_a_meaning() -> None:
    """Of the engine, and of the command line alone."""
    assert {kind.exit_code for kind in ALL.values()} <= set(MEANINGS)
    assert {code for code, _ in COMMAND_LINE_ERRORS.values()} <= set(MEANINGS)
    assert not set(COMMAND_LINE_ERRORS) & (set(ALL) - {"error"})


def test_signals_end_as_shells_expect() -> None:
    """128 and the number of the signal."""
    by_signal = {
        signal.SIGHUP: exit_codes.HUNG_UP,
        signal.SIGINT: exit_codes.INTERRUPTED,
        signal.SIGPIPE: exit_codes.PIPE_CLOSED,
        signal.SIGTERM: exit_codes.TERMINATED,
    }
    assert {128 + number: number for number in by_signal} == {
        code: number for number, code in by_signal.items()
    }


def test_what_may_be_tried_again_has_codes_of_its_own() -> None:
    """So that a script need not read the message; of conflicts, servers and failed jobs `retryable` in the JSON tells."""
    mixed = (exit_codes.CONFLICT, exit_codes.STORE_INVALID, exit_codes.JOB_FAILED)
    busy = {kind.exit_code for kind in ALL.values() if kind.retryable and kind.exit_code not in mixed}
    assert busy == {exit_codes.STORE_BUSY, exit_codes.TIMED_OUT}
