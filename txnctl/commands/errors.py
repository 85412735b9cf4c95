"""`txnctl errors`: every error code with meaning, exit code and remedy."""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import ALL, NotFound
from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, effect, example, output
from txnctl.cli.exit_codes import COMMAND_LINE_ERRORS
from txnctl.cli.remedies import REMEDIES
from txnctl.cli.value_types import ErrorCode
from txnctl.output.field import Help, fields_of
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

errors = Group("errors", "List the error codes, explain one.")


class ErrorMeaning(NamedTuple):
    """An error code, and the error that has this code."""

    code: str
    exit_code: int
    retryable: bool
    meaning: str
    remedy: str


FIELDS = fields_of(
    ErrorMeaning,
    {
        "code": Help("The stable word that `-o json` prints as `code`.", kind="id"),
        "exit_code": "The exit code of a command that ends with it.",
        "retryable": "Whether the same command may succeed later, with nothing else done.",
        "meaning": "What happened.",
        "remedy": "What to do next.",
    },
)


@errors.command("list")
@effect("reads")
@output(FIELDS, name_field="code")
@example("txnctl errors list")
def list_(context: Context) -> None:
    """List all error codes."""
    context.show_list(sorted(_all().values(), key=lambda error: (error.exit_code, error.code)))


@errors.command("explain")
@argument("code", type=ErrorCode(), help="A code, such as topic-not-found.")
@effect("reads")
@output(FIELDS, name_field="code")
@example("txnctl errors explain writer-busy")
@example("txnctl errors explain topic-not-found -o json")
def explain(context: Context, code: str) -> None:
    """Explain an error code: what happened, and what to do next."""
    rows = _all()
    if code not in rows:
        from txnctl.cli.near_names import nearest

        near = nearest(code, rows)
        shown = line("errors list") if near is None else line("errors explain", near)
        begin = "All codes:" if near is None else f"Did you mean {near}?"
        raise NotFound(f"there is no error code {code!r}", hint=f"{begin} {shown}", given=code)
    context.show(rows[code])


def _all() -> dict[str, ErrorMeaning]:
    # The root of the tree is never raised itself: the code `error` is no error.
    rows = {
        code: ErrorMeaning(
            code, kind.exit_code, kind.retryable, " ".join((kind.__doc__ or "").split()), REMEDIES[code]
        )
        for code, kind in ALL.items()
        if kind is not ALL["error"]
    }
    for code, (exit_code, meaning) in COMMAND_LINE_ERRORS.items():
        rows[code] = ErrorMeaning(code, exit_code, False, meaning, REMEDIES[code])
    return rows
