"""The report of an error that ends a command: one line on standard error, a hint, and the exit code.

With `-o json` or `ndjson` the report is one JSON object instead. The format is read from the typed words, since a
command line that cannot be parsed must be reported in the format asked for.
"""

from __future__ import annotations

import sys
from os import environ
from typing import TYPE_CHECKING

import click

from storage.errors import TxnctlError
from storage.values.store_name import without_passwords
from txnctl.cli import exit_codes
from txnctl.cli.exit_codes import EndsWith
from txnctl.cli.remedies import remedy_hint
from txnctl.cli.running_tries import hint_within
from txnctl.output import json_text
from txnctl.output.escape import printable
from txnctl.output.shell import hint_of, worded
from txnctl.output.stream import terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ENDED_BY_SIGNAL = {
    "interrupted": "interrupted",
    "hung-up": "hung up: the terminal is gone",
    "terminated": "terminated",
}
"""Messages of errors that a signal raises, by the code of the error."""


class Failure:
    """The report of an error."""

    __slots__ = ("code", "details", "exit_code", "hint", "message", "retryable")

    def __init__(
        self,
        code: str,
        exit_code: int,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        details: Mapping[str, object] | None = None,
    ) -> None:
        self.code = code
        self.exit_code = exit_code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.details = details or {}

    def json(self) -> str:
        """The object that `-o json` prints, on one line; details that JSON cannot hold as text."""
        try:
            return self._json(self.details)
        except TypeError:
            return self._json({name: str(value) for name, value in self.details.items()})

    def _json(self, details: Mapping[str, object]) -> str:
        facts = {
            "code": self.code,
            "exitCode": self.exit_code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "details": details,
        }
        return json_text.one_line(facts) + "\n"

    def lines(self, width: int | None = None) -> str:
        """What people read: message and hint, in lines of the width."""
        from txnctl.output.prose import wrapped

        lines = wrapped(f"txnctl: error: {printable(self.message)}", width)
        if self.hint:
            lines += wrapped(f"txnctl: hint: {printable(self.hint)}", width)
        return "".join([f"{line}\n" for line in lines])


def of(error: BaseException) -> Failure:
    """The failure that an exception amounts to."""
    code, exit_code = exit_codes.code_of(error)
    if isinstance(error, EndsWith) and error.__cause__ is not None:
        failure = of(error.__cause__)
        failure.exit_code = exit_code
        return failure
    if isinstance(error, TxnctlError):
        return Failure(
            code,
            exit_code,
            error.message,
            hint=hint_within(error) or hint_of(error) or remedy_hint(code, error.details),
            retryable=error.retryable,
            details=error.details,
        )
    if isinstance(error, click.ClickException):
        return _usage(error)
    if code in _ENDED_BY_SIGNAL:
        return Failure(code, exit_code, _ENDED_BY_SIGNAL[code])
    refused = exit_codes.of_system(error)
    if refused is not None:
        return of(refused)
    return Failure(
        code,
        exit_code,
        f"unexpected failure: {type(error).__name__}: {error}",
        hint="This is a bug. Please report it with the output of the same command and --debug.",
        details={"exception": type(error).__name__},
    )


def _usage(error: click.ClickException) -> Failure:
    # Click's own words about similar options are left out: the hint has them.
    text = (error.message if isinstance(error, click.NoSuchOption) else error.format_message()).strip()
    message = f"{text[:1].lower()}{text[1:].rstrip('.')}" if text[:2].istitle() else text.rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint: str | None = getattr(error, "hint", None)
    if hint is None and context is not None:
        hint = f"Its options and examples: {worded(f'{context.command_path} --help')}"
    return Failure("usage", exit_codes.USAGE, message, hint=hint or remedy_hint("usage"))


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Report the error once, and return the exit code."""
    failure = of(error)
    if "--debug" in _before_dashes(arguments):
        import traceback

        print(without_passwords("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    write(failure, as_json=(output_typed(arguments) or "").lower() in ("json", "ndjson"))
    return failure.exit_code


def write(failure: Failure, *, as_json: bool) -> None:
    """Write a report on standard error."""
    failure.message = without_passwords(failure.message)
    failure.hint = failure.hint and without_passwords(failure.hint)
    text = without_passwords(failure.json()) if as_json else failure.lines(terminal_width(sys.stderr))
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError):
        # Standard error is closed; the exit code still tells.
        pass


def output_typed(arguments: Sequence[str]) -> str | None:
    """The format that a command line, right or wrong, asks for: `-o F`, `-oF`, `--output F`, `--output=F`."""
    output = environ.get("TXNCTL_OUTPUT")
    words = iter(_before_dashes(arguments))
    for word in words:
        if word in ("-o", "--output"):
            output = next(words, output)
        elif word.startswith("--output="):
            output = word.removeprefix("--output=")
        elif word.startswith("-o"):
            output = word.removeprefix("-o").removeprefix("=")
    return output


def _before_dashes(arguments: Sequence[str]) -> Sequence[str]:
    """An error of txnctl: all before a lone `--`."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
