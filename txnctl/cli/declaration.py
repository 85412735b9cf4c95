"""Declarations of commands, noted on the function and built into click objects only on use.

A module of commands is mostly options, and making click's objects for ten commands costs more than running one. So the
decorators of `decorators` only note parameters, store, output and effect in a `Declaration` on the function;
`click_commands.build` turns the declaration of the invoked command into a click command. `Group` is the same for a
group: a table of names. The man pages, docs/CLI.md and the completions come from the same tree.
"""

from __future__ import annotations

from typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from txnctl.cli.command_table import Section
    from txnctl.cli.context import Context
    from txnctl.cli.option_values import OptionValues
    from txnctl.output.field import Field

    Body = Callable[..., object]

F = TypeVar("F", bound="Body")

EFFECTS = {
    "reads": "Reads only: it changes nothing and creates nothing.",
    "writes": "Writes.",
    "destroys": "Destroys: what it removes does not come back.",
}
"""The sentence in the help for each effect a command may have."""


class Output:
    """How a command prints: fields, formats, and the default format.

    Attributes:
        partial: a row has those of the fields that options ask for.
        typed: the long name of the option, where the format is the typed one or the default, and no environment
            variable counts; empty for `--output`, with TXNCTL_OUTPUT behind.
    """

    __slots__ = ("default", "default_piped", "fields", "formats", "name_field", "partial", "typed")

    def __init__(
        self,
        fields: Iterable[Field],
        *,
        name_field: str,
        formats: tuple[str, ...],
        default: str,
        default_piped: str,
    ) -> None:
        self.fields = fields
        self.name_field = name_field
        self.formats = formats
        self.default = default
        self.default_piped = default_piped
        self.partial = False
        self.typed = ""


class Example:
    """Lines to type, and the lines of setup before."""

    __slots__ = ("exit_code", "lines", "setup")

    def __init__(self, lines: tuple[str, ...], setup: tuple[str, ...], exit_code: int) -> None:
        self.lines = lines
        self.setup = setup
        self.exit_code = exit_code


class Declaration:
    """Everything about one command except the name."""

    __slots__ = (
        "administrative",
        "asks",
        "body",
        "effect",
        "examples",
        "force_help",
        "missing_ok",
        "numbers_are_arguments",
        "opens",
        "option_values",
        "output",
        "parameters",
        "passes_arguments",
    )

    def __init__(self, body: Body) -> None:
        self.body = body
        # Decorators run from the last to the first: the parameters stand here in reverse.
        self.parameters: list[tuple[str, tuple[str, ...], dict[str, Any]]] = []
        self.effect = ""
        self.examples: list[Example] = []
        self.opens = ""
        self.output: Output | None = None
        self.administrative = False
        self.asks = False
        self.force_help = ""
        self.missing_ok = False
        self.passes_arguments = False
        self.numbers_are_arguments = False
        self.option_values: dict[str, type[OptionValues]] = {}

    def invoke(self, context: Context, arguments: dict[str, Any]) -> object:
        """Run the body, with the options of each declared class as one value."""
        values = {name: kind(arguments) for name, kind in self.option_values.items()}
        if not context.missing_ok:
            return self.body(context, **arguments, **values)
        from storage.errors import NotFound

        try:
            return self.body(context, **arguments, **values)
        except NotFound as error:
            context.show_missing(error)
            return None


def declaration_of(function: Body) -> Declaration:
    """The declaration of this function, created on first use."""
    declaration = function.__dict__.get("declaration")
    if declaration is None:
        declaration = function.__dict__["declaration"] = Declaration(function)
    assert isinstance(declaration, Declaration)
    return declaration


def summary_of(function: Body) -> str:
    """The first line of the function's docstring: the summary in the list of commands."""
    lines = (function.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


class Group:
    """A group of commands: `topics` with `list`, `create` and so on, in the order of the list.

    `elsewhere` names commands in modules that are loaded when invoked, as `name: ("package.module:attribute", "the
    summary that the list of commands shows")`. With `sections` the help has the names under titles.
    """

    __slots__ = ("elsewhere", "help", "members", "name", "sections")

    def __init__(
        self,
        name: str,
        help: str,
        *,
        elsewhere: Mapping[str, tuple[str, str]] | None = None,
        sections: tuple[Section, ...] = (),
    ) -> None:
        self.name = name
        self.sections = sections
        self.help = help
        self.members: dict[str, Body] = {}
        self.elsewhere = elsewhere or {}

    def command(self, name: str) -> Callable[[F], F]:
        """Put the decorated function under this name."""

        def put(function: F) -> F:
            assert name not in self.members, name
            declaration_of(function)
            self.members[name] = function
            return function

        return put

    def names(self) -> list[str]:
        """The names of all commands, in the order of the list."""
        return [*self.members, *self.elsewhere]

    def find(self, name: str) -> Body | Group | None:
        """The command or group of that name, with the module loaded, or None."""
        if name in self.members:
            return self.members[name]
        if name not in self.elsewhere:
            return None
        module, _, attribute = self.elsewhere[name][0].partition(":")
        member: Body | Group = getattr(__import__(module, fromlist=[attribute]), attribute)
        return member

    def summary(self, name: str) -> str:
        """The summary in the list of commands; loads nothing."""
        if name in self.members:
            return summary_of(self.members[name])
        return self.elsewhere[name][1]


def command(function: F) -> F:
    """Make the decorated function a command of the top level; `command_table.COMMANDS` has the name."""
    declaration_of(function)
    return function
