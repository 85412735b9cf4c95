"""Report of an error: `txnctl/cli/error_report.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage import errors as storage_errors
from tests.txnctl.cli.cli_steps import FIELDS
from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import effect, output


def failing_with(error: BaseException) -> Any:
    """A command that raises."""

    @command
    @effect("reads")
    @output(FIELDS, name_field="name")
    def fail(context: Context) -> None:
        """Fail."""
        raise error

    return fail


class TestErrors:
    """One line, a hint, an exit code; one object where JSON was asked for."""

    @pytest.mark.parametrize("kind", sorted(storage_errors.ALL.values(), key=lambda kind: kind.code))
    def test_every_error_of_the_engine_keeps_its_exit_code(self, run: Any, add: Any, kind: Any) -> None:
        """The command line adds nothing and takes nothing away."""
        error = kind("it did not work", hint="Try this.", topic="orders")
        add(failing_with(error))
        outcome = run("probe")
        assert outcome.status == kind.exit_code
        assert outcome.err == "txnctl: error: it did not work\ntxnctl: hint: Try this.\n"
        as_json = run("probe", "-o", "json")
        assert as_json.status == kind.exit_code
        assert as_json.out == ""
        assert json.loads(as_json.err) == {
            "code": kind.code,
            "exitCode": kind.exit_code,
            "message": "it did not work",
            "hint": "Try this.",
            "retryable": error.retryable,
            "details": {"topic": "orders"},
        }

    def test_usage_errors_are_json_too(self, run: Any) -> None:
        """Even a line that cannot be parsed is reported in the format that it asks for."""
        for words in [
            ("topcs", "-o", "json"),
            ("errors", "list", "--nope", "-ondjson"),
            ("errors", "explain", "-o=json"),
        ]:
            error = run(*words).error
            assert (error["code"], error["exitCode"], error["retryable"]) == ("usage", 2, False)

    def test_the_format_comes_from_the_environment_too(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_OUTPUT=json makes errors JSON."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "json")
        assert run("errors", "explain", "nothing-such").error["code"] == "not-found"

    def test_an_unexpected_failure_asks_for_a_report(self, run: Any, add: Any) -> None:
        """Exit 1, one line, no traceback unless --debug."""
        add(failing_with(ZeroDivisionError("by zero")))
        outcome = run("probe")
        assert outcome.status == exit_codes.UNEXPECTED
        assert outcome.err.splitlines() == [
            "txnctl: error: unexpected failure: ZeroDivisionError: by zero",
            "txnctl: hint: This is a bug. Please report it with the output of the same command and --debug.",
        ]
        debugged = run("probe", "--debug")
        assert debugged.status == exit_codes.UNEXPECTED
        assert "Traceback (most recent call last)" in debugged.err
        assert run("probe", "-o", "json", "--debug").error["details"] == {"exception": "ZeroDivisionError"}

    def test_details_that_json_cannot_hold_are_text(self, run: Any, add: Any) -> None:
        """An error must never fail to be told."""
        add(failing_with(storage_errors.BadInput("bad", value=b"\xff", at=(1, 2))))
        assert run("probe", "-o", "json").error["details"] == {"value": "b'\\xff'", "at": "(1, 2)"}

    def test_a_message_cannot_drive_the_terminal(self, run: Any, add: Any) -> None:
        """Errors quote stored names: escapes in them are written out, newlines too."""
        add(failing_with(storage_errors.BadInput("bad \x1b[31mname\n\u202e", hint="\x07")))
        assert run("probe").err == "txnctl: error: bad \\x1b[31mname\\n\\u202e\ntxnctl: hint: \\x07\n"

    def test_what_was_printed_before_an_error_stays(self, run: Any, add: Any) -> None:
        """Standard output first, then the error."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def half(context: Context) -> None:
            """Print, then fail."""
            context.out.write("before\n")
            raise storage_errors.WaitTimeout("nothing came")

        add(half)
        outcome = run("probe")
        assert (outcome.status, outcome.out) == (exit_codes.TIMED_OUT, "before\n")

    def test_exit_on_purpose(self, run: Any, add: Any) -> None:
        """A condition found is told by the code alone."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def found(context: Context) -> None:
            """Find."""
            context.show({"name": "x"})
            context.exit(exit_codes.CONDITION_FOUND)

        add(found)
        outcome = run("probe", "-o", "name")
        assert (outcome.status, outcome.out, outcome.err) == (8, "x\n", "")

    def test_every_code_is_explained(self, run: Any) -> None:
        """`errors list` has what `errors explain` explains, and every code that can be printed."""
        rows = run("errors", "list", "-o", "json").json
        assert {row["code"] for row in rows} == set(storage_errors.ALL) - {"error"} | set(
            exit_codes.COMMAND_LINE_ERRORS
        )
        for row in rows:
            assert row["meaning"]
            assert row["exitCode"] in exit_codes.MEANINGS
            assert run("errors", "explain", row["code"], "-o", "json").json == row
        assert run("errors", "explain", "nothing-such").status == exit_codes.NOT_FOUND
