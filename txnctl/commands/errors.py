"""`txnctl errors`: every error code with meaning and exit code."""

from __future__ import annotations

from storage.errors import ALL, NotFound
from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, effect, example, output
from txnctl.cli.exit_codes import COMMAND_LINE_ERRORS
from txnctl.cli.value_types import ErrorCode
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

errors = Group("errors", "List the error codes, explain one.")

FIELDS = (
    Field("code", "id", "The stable word that `-o json` prints as `code`."),
    Field("exitCode", "integer", "The exit code of a command that ends with it."),
    Field("retryable", "boolean", "Whether the same command may succeed later, with nothing else done."),
    Field("meaning", "text", "What happened."),
)


@errors.command("list")
@effect("reads")
@output(FIELDS, name_field="code")
@example("txnctl errors list")
def list_(context: Context) -> None:
    """List all error codes."""
    context.show_list(sorted(_all().values(), key=lambda row: (row["exitCode"], row["code"])))


@errors.command("explain")
@argument("code", type=ErrorCode(), help="A code, such as topic-not-found.")
@effect("reads")
@output(FIELDS, name_field="code")
@example("txnctl errors explain writer-busy")
@example("txnctl errors explain topic-not-found -o json")
def explain(context: Context, code: str) -> None:
    """Explain an error code."""
    rows = _all()
    if code not in rows:
        raise NotFound(
            f"there is no error code {code!r}", hint="txnctl errors list shows them all.", given=code
        )
    context.show(rows[code])


def _all() -> dict[str, Row]:
    # The root of the tree is never raised itself: the code `error` is no error.
    rows = {
        code: {
            "code": code,
            "exitCode": kind.exit_code,
            "retryable": kind.retryable,
            "meaning": " ".join((kind.__doc__ or "").split()),
        }
        for code, kind in ALL.items()
        if kind is not ALL["error"]
    }
    for code, (exit_code, meaning) in COMMAND_LINE_ERRORS.items():
        rows[code] = {"code": code, "exitCode": exit_code, "retryable": False, "meaning": meaning}
    return rows
