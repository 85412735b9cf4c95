"""Declarations as click commands: built when used, with the help, the aliases and the options that all share.

Click's own classes do the parsing. What differs: `-h` works everywhere, a bare group prints help and succeeds, help
has the effect of a command and examples, and option texts are taken unchanged (click runs each through
`inspect.cleandoc`, and `inspect` is a sixth of click's start-up).
"""

# The signatures are click's.
# ruff: noqa: ARG002

from __future__ import annotations

from os import environ
from typing import TYPE_CHECKING, Any

import click

from storage.errors import BadInput, InvalidValue
from txnctl.cli.aliases import ALIASES, OPTION_ALIASES
from txnctl.cli.declaration import EFFECTS, Declaration, Group, declaration_of, summary_of
from txnctl.output.stream import OutputStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    from txnctl.cli.declaration import Example

_TYPED = "txnctl.typed"
"""The words as typed after the command, among the notes that click keeps for a context."""
_NAMING = {
    "CMD": "command", "DEST": "destination", "DIR": "directory", "FILE": "name of the file", "PATH": "path",
    "SRC": "source", "STORE": "name of the store",
}  # fmt: skip
"""The metavars of options and arguments that name a place or a command, in words."""
_MARGIN = 2
"""Columns that click leaves free at the right of a terminal."""
_GROUP_EXAMPLES = 4
"""Commands of a group that have an example in the help of the group."""

_CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Refusing:
    """Common to options and arguments: an error over a value says of which."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the value.

        Raises:
            click.UsageError, BadInput: with `parameter`, this one, for the hint.
        """
        try:
            self._check_named(value)
            return super().process_value(ctx, value)  # type: ignore[misc]
        except (click.UsageError, BadInput) as error:
            error.parameter = self  # type: ignore[union-attr]
            raise

    def _check_named(self, value: object) -> None:
        """Refuse an empty text where a place or a command is named: mostly a variable that is not set.

        An empty path would mean the current directory, and an empty command every message done.

        Raises:
            InvalidValue
        """
        metavar = self.metavar or (self.name or "").upper()  # type: ignore[attr-defined]
        if (
            metavar in _NAMING
            and isinstance(value, str)
            and not (value.strip() if metavar == "CMD" else value)
        ):
            place = self.get_error_hint(None).replace("'", "")  # type: ignore[attr-defined]
            raise InvalidValue(
                f"{place}: the {_NAMING[metavar]} is empty", hint="Is a variable of the line not set?"
            )


class Option(_Refusing, click.Option):
    """An option with a help text of one line. `shared` options, common to many commands, are listed last.

    Attributes:
        aliases: further names, which are accepted and never shown.
    """

    def __init__(self, names: list[str], *, help: str = "", shared: bool = False, **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.help = help
        self.shared = shared
        self.aliases = [alias for name in self.opts for alias in OPTION_ALIASES.get(name, ())]

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable, also an empty one, which is refused as an empty option is; click takes that for unset."""
        return environ.get(self.envvar) if isinstance(self.envvar, str) else None

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser know the names, the aliases too."""
        shown = self.opts
        self.opts = [*shown, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


class Argument(_Refusing, click.Argument):
    """An argument with a help text."""

    def __init__(self, names: list[str], *, help: str = "", **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.help = help


class _Helpful:
    """Common to commands and groups: the help option."""

    _help: Option | None = None

    def get_help_option(self, ctx: click.Context) -> Option | None:
        """`-h` and `--help`; one object, as click compares options by identity."""
        if self._help is None:
            self._help = Option(
                ["-h", "--help", "help_wanted"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_help,
                help="Show this help and exit.",
                shared=True,
            )
        return self._help

    def get_help(self, ctx: click.Context) -> str:
        """The help, also where a text keeps its lines no wider than the terminal."""
        from txnctl.cli.help_formatter import HelpFormatter
        from txnctl.output.prose import defined

        formatter = HelpFormatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        self.format_help(ctx, formatter)  # type: ignore[attr-defined]
        lines = formatter.getvalue().rstrip("\n").split("\n")
        return "\n".join(defined(lines, formatter.width + _MARGIN))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an error has a hint with a command line that the parser takes.

        Raises:
            click.UsageError, BadInput
        """
        typed = list(args)
        ctx.meta[_TYPED] = typed
        try:
            return list(super().parse_args(ctx, self._prepared(ctx, args)))  # type: ignore[misc]
        except (click.UsageError, BadInput) as error:
            if isinstance(error, click.UsageError):
                # Click's parser leaves the context out where an option lacks its value, or has one too many.
                error.ctx = error.ctx or ctx
            if not ctx.resilient_parsing:
                from txnctl.cli.usage_hint import add_hint

                add_hint(error, ctx, typed)
            raise

    def _prepared(self, _ctx: click.Context, args: list[str]) -> list[str]:
        """The words as the parser takes them."""
        return args

    def make_parser(self, ctx: click.Context) -> Any:
        """Click's parser, told that `-o` is a name in full.

        The parser looks for every word among the long names first; a miss starts a search for similar names
        (`difflib`) and a translated error message (`gettext`, `locale`), all thrown away when `-o` turns out to be a
        short name: 2 ms, a fifth of a bare Python. `-ojson` still goes that way. In a click without these two tables
        nothing is gained and nothing lost.
        """
        parser = super().make_parser(ctx)  # type: ignore[misc]
        long_names, short_names = getattr(parser, "_long_opt", None), getattr(parser, "_short_opt", None)
        if isinstance(long_names, dict) and isinstance(short_names, dict):
            for name, parameter in short_names.items():
                long_names.setdefault(name, parameter)
        return parser


def _show_help(ctx: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        OutputStream().print(ctx.get_help())
        ctx.exit()


class Command(_Helpful, click.Command):
    """One command, built from a declaration."""

    def __init__(self, name: str, declaration: Declaration, params: list[click.Parameter]) -> None:
        super().__init__(
            name,
            params=params,
            # A docstring with backslashes is raw; click's mark to keep lines is the character.
            help=(declaration.body.__doc__ or "").replace("\\b\n", "\b\n"),
            short_help=summary_of(declaration.body),
            context_settings=dict(_CONTEXT_SETTINGS),
        )
        self.declaration = declaration

    def _prepared(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the arguments of a command to run apart, which are not parsed, and numbers from options."""
        if self.declaration.passes_arguments:
            args = self._parted(ctx, args)
        if self.declaration.numbers_are_arguments and any(map(_is_negative, args)):
            args = self._sorted(ctx, args)
        if ctx.resilient_parsing and args and self._takes_value(ctx).get(args[-1]):
            # The value of an option is being completed. Click drops every word before an option without a value, the
            # topic too.
            args = args[:-1]
        return args

    def _parted(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `--` before the command to run: `lead T --timeout 5s CMD -x` is `... -- CMD -x`."""
        takes_value = self._takes_value(ctx)
        own = sum(isinstance(parameter, Argument) and parameter.nargs == 1 for parameter in self.params)
        at = 0
        while at < len(args) and args[at] != "--":
            if args[at].startswith("-") and args[at] != "-":
                at += 1 + takes_value.get(args[at], False)
                continue
            if not own:
                return [*args[:at], "--", *args[at:]]
            own, at = own - 1, at + 1
        return args

    def _sorted(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The options, then the arguments after `--`: a word like a negative number is an argument."""
        takes_value = self._takes_value(ctx)
        options: list[str] = []
        arguments: list[str] = []
        words = iter(args)
        for word in words:
            if word == "--":
                arguments += words
            elif word == "-" or not word.startswith("-") or _is_negative(word):
                arguments.append(word)
            else:
                options.append(word)
                if takes_value.get(word):
                    options += [value for value in (next(words, None),) if value is not None]
        return [*options, "--", *arguments]

    def _takes_value(self, ctx: click.Context) -> dict[str, bool]:
        """For each name of an option, whether a value follows."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, Option)]
        return {name: not option.is_flag for option in options for name in [*option.opts, *option.aliases]}

    def invoke(self, ctx: click.Context) -> object:
        """Open the store as declared, run the command, close.

        Raises:
            click.UsageError, InvalidValue: with a hint, if the command found options that do not go together.
        """
        from txnctl.cli.context import Context

        try:
            with Context(ctx, self.declaration) as context:
                return self.declaration.invoke(context, context.arguments)
        except click.UsageError as error:
            from txnctl.cli.usage_hint import add_example

            add_example(error, self.examples)
            raise
        except InvalidValue as error:
            from txnctl.cli.usage_hint import add_correction

            add_correction(error, ctx, ctx.meta[_TYPED])
            raise

    @property
    def effect(self) -> str:
        """The effect of the command in a sentence."""
        return EFFECTS[self.declaration.effect]

    @property
    def examples(self) -> list[Example]:
        """Examples to type."""
        return self.declaration.examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, text, effect, arguments, options, examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(self.effect)
        parameters = self.get_params(ctx)
        _definitions(
            formatter, "Arguments", [_argument_row(p, ctx) for p in parameters if isinstance(p, Argument)]
        )
        options = [p for p in parameters if isinstance(p, Option)]
        _definitions(formatter, "Options", [p.get_help_record(ctx) for p in options if not p.shared])
        _definitions(formatter, "Shared options", [p.get_help_record(ctx) for p in options if p.shared])
        _examples(formatter, [line for example in self.examples for line in example.lines])


class GroupCommand(_Helpful, click.Group):
    """A group. A command is found and built when invoked."""

    def __init__(self, group: Group, params: list[click.Parameter], **attributes: Any) -> None:
        super().__init__(
            group.name, params=params, help=group.help, context_settings=dict(_CONTEXT_SETTINGS), **attributes
        )
        self.table = group

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; alone, a group prints help and succeeds."""
        if not args and not ctx.resilient_parsing:
            OutputStream().print(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the contract rather than of the alphabet."""
        return self.table.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name or alias, built now."""
        name = self._full_name(cmd_name)
        member = self.table.find(name)
        if member is None:
            return None
        return group_command(member) if isinstance(member, Group) else build(name, declaration_of(member))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command under the full name; an unknown one is told which names are near."""
        name = self._full_name(args[0])
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            if args[0].startswith("-"):
                self.parse_args(ctx, args)
            from txnctl.cli.unknown_command import unknown_command

            raise unknown_command(ctx, args, self.table)
        return (name if command else None), command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any; at the top level under titles, with an example each."""
        names = self.table.names()
        if not self.table.sections:
            _definitions(formatter, "Commands", [(name, self.table.summary(name)) for name in names])
        for title, members, example in self.table.sections:
            _definitions(formatter, title, [(name, self.table.summary(name)) for name in members])
            formatter.write(f"\n{'':>{formatter.indent_increment * 2}}$ {example}\n")
        aliases = [f"{alias} = {name}" for alias, name in ALIASES.items() if name in names]
        if aliases:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"Short names: {', '.join(aliases)}.")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples of a group, and where to read on."""
        if ctx.parent is not None:
            _examples(formatter, self._first_examples())
        from txnctl.cli.command_table import RUNBOOK

        name, *words = ctx.command_path.split()
        formatter.write_paragraph()
        formatter.write_text(f"`{' '.join([name, 'help', *words])} COMMAND` says more. {RUNBOOK}")

    def _first_examples(self) -> list[str]:
        """The first example of one line of each of the first commands."""
        members = [self.table.find(name) for name in self.table.names()[:_GROUP_EXAMPLES]]
        declared = [declaration_of(member) for member in members if member and not isinstance(member, Group)]
        lines = (
            [example.lines[0] for example in one.examples if len(example.lines) == 1] for one in declared
        )
        return [of_one[0] for of_one in lines if of_one]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, without loading any, and options."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.table.names() if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.table.summary(name)) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def _full_name(self, name: str) -> str:
        names = self.table.names()
        return name if name in names else ALIASES.get(name, name)


def _is_negative(word: str) -> bool:
    return word[:1] == "-" and word[1:2].isdecimal()


def build(name: str, declaration: Declaration) -> Command:
    """The click command of a declaration."""
    from txnctl.cli.shared_options import of_command

    params: list[click.Parameter] = []
    for kind, names, attributes in reversed(declaration.parameters):
        make: Callable[..., click.Parameter] = Option if kind == "option" else Argument
        params.append(make(list(names), **attributes))
    return Command(name, declaration, params + of_command(declaration))


def group_command(group: Group) -> GroupCommand:
    """The click group of a table of names."""
    from txnctl.cli.shared_options import of_group

    return GroupCommand(group, of_group())


def _definitions(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str] | None]) -> None:
    shown = [row for row in rows if row is not None]
    if shown:
        with formatter.section(title):
            formatter.write_dl(shown)


def _examples(formatter: click.HelpFormatter, lines: list[str]) -> None:
    if lines:
        from txnctl.output.prose import continued

        with formatter.section("Examples"):
            indent = formatter.current_indent
            for line in lines:
                for part in continued(line, formatter.width - indent):
                    formatter.write(f"{'':>{indent}}{part}\n")


def _argument_row(parameter: Argument, ctx: click.Context) -> tuple[str, str]:
    return parameter.make_metavar(ctx), parameter.help or ""
