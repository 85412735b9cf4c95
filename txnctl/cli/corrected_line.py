"""A refused command line, corrected: parsed again after each correction, until the parser takes it.

Corrected are misspelled and unknown options, missing and surplus values, values of another kind, and missing and
surplus arguments. A value that is asked for is a sample of its kind (`sample_values.py`).
"""

from __future__ import annotations

from contextlib import redirect_stdout
from difflib import get_close_matches
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING

import click

from storage.errors import BadInput
from txnctl.cli.aliases import USUAL_OPTIONS
from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.near_names import nearest
from txnctl.cli.pasted_line import before_dashes, without_tokens
from txnctl.cli.sample_values import sample_value
from txnctl.output.shell import name_store, named_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    Refusal = click.UsageError | BadInput

_CORRECTIONS_MAX = 12
_SIMILAR = 0.6


class Trial(click.Context):
    """A context of a line that is parsed for a hint: its errors get no hint of their own."""


def corrected(ctx: click.Context, words: Sequence[str], error: Refusal) -> list[str] | None:
    """The words after the command, corrected; None where no correction helps.

    Args:
        ctx: of the command, or of a group; then with the words of a command of the group.
        words: as typed, without those of the command itself.
        error: the refusal of these words.
    """
    if isinstance(ctx.command, GroupCommand):
        return _corrected_in_group(ctx, words, error)
    line = list(words)
    at = ctx
    for _ in range(_CORRECTIONS_MAX):
        mended = _corrected_once(at, line, error)
        if mended is None or mended == line:
            return None
        line = mended
        at, refusal = _tried(ctx, line)
        if refusal is None:
            return line
        error = refusal
    return None


def below(ctx: click.Context, words: Sequence[str]) -> list[str] | None:
    """The words of a command of the group, corrected as far as needed; None where none is near.

    Args:
        ctx: of the group.
        words: the name of the command first.
    """
    group = ctx.command
    if not words or not isinstance(group, GroupCommand):
        return []
    name, rest = words[0], list(words[1:])
    command = group.get_command(ctx, name)
    if command is None:
        names = group.table.names()
        near = (
            get_close_matches(name, names, 1, 0.5)
            or [member for member in names if member.startswith(name)][:1]
        )
        if not near:
            return None
        name, command = near[0], group.get_command(ctx, near[0])
        assert command is not None, name
    return _of_command(ctx, name, command, rest)


def is_taken(ctx: click.Context, words: Sequence[str]) -> bool:
    """Whether the parser takes the words after the command."""
    return _tried(ctx, words)[1] is None


def near_options(ctx: click.Context, name: str) -> list[str]:
    """Names of options of the command that are like this one, the nearest first.

    For an option of other tools, the option here with its value: `-o json`.
    """
    options = [option for option in _options(ctx) if not option.hidden]
    names = [
        shown for option in options for shown in [*option.opts, *option.secondary_opts] if shown[:2] == "--"
    ]
    if name[:2] != "--":
        return []
    usual = USUAL_OPTIONS.get(name)
    if usual is not None and any(
        usual.startswith(f"{shown} ") for option in options for shown in option.opts
    ):
        return [usual]
    longer = [shown for shown in names if len(name) > len("--x") and shown.startswith(name)]
    # Without the hyphens, which make any two short names alike.
    near = get_close_matches(name[2:], [shown[2:] for shown in names], 1, _SIMILAR)
    return longer or [f"--{word}" for word in near]


def _of_command(ctx: click.Context, name: str, command: click.Command, rest: list[str]) -> list[str]:
    inner = click.Context(command, info_name=name, parent=ctx, **command.context_settings)
    if isinstance(command, GroupCommand):
        return [name, *(below(inner, rest) or [])]
    rest = without_tokens(inner, rest)
    at, refusal = _tried(inner, rest)
    fitting = rest if refusal is None else corrected(at, rest, refusal)
    return [name, *(["--help"] if fitting is None else fitting)]


def _corrected_in_group(ctx: click.Context, words: Sequence[str], error: Refusal) -> list[str] | None:
    """An option before the command: similar to one of the group, or one of the command, after which it stands."""
    group, line = ctx.command, list(words)
    assert isinstance(group, GroupCommand)
    commands = [at for at, word in enumerate(line) if group.get_command(ctx, word) is not None]
    name = getattr(error, "option_name", None)
    parameter = getattr(error, "parameter", None)
    if isinstance(error, click.NoSuchOption) and name and not near_options(ctx, name) and commands:
        at, first = _place(line, name), commands[0]
        if at is None or at > first:
            return None
        moved = line[at:first]
        return [
            *line[:at],
            *(below(ctx, [line[first], *line[first + 1 :], *moved]) or [line[first], "--help"]),
        ]
    if isinstance(error, click.NoSuchOption) and name and not commands and ctx.parent is not None:
        taken = _first_with_option(ctx, name)
        if taken is not None:
            return below(ctx, [taken, *line])
    own = line[: commands[0]] if commands else line
    mended = _corrected_once(ctx, own, error) if name or parameter is not None else None
    if mended is None or _refused_group(ctx, mended):
        return None
    if not commands:
        return [*mended, "--help"]
    return [*mended, *(below(ctx, line[commands[0] :]) or [])]


def _first_with_option(ctx: click.Context, name: str) -> str | None:
    """The first command of the group that has an option of that name."""
    group = ctx.command
    assert isinstance(group, GroupCommand)
    for member in group.table.names():
        command = group.get_command(ctx, member)
        if command is not None and any(name in _names(option) for option in _options(click.Context(command))):
            return member
    return None


def _refused_group(ctx: click.Context, words: list[str]) -> bool:
    return _tried(ctx, [*words, "help"])[1] is not None


def _tried(ctx: click.Context, words: Sequence[str]) -> tuple[click.Context, Refusal | None]:
    """Parse; the context after it, and the refusal if any. Nothing runs, and nothing is printed."""
    command, store = ctx.command, named_store()
    trial = Trial(command, info_name=ctx.info_name, parent=ctx.parent, **command.context_settings)
    try:
        with redirect_stdout(TextIOWrapper(BytesIO())):
            command.parse_args(trial, list(words))
    except (click.UsageError, BadInput) as error:
        return trial, error
    except click.exceptions.Exit:
        # Help: it is no error.
        pass
    finally:
        name_store(store)
    return trial, None


def _corrected_once(ctx: click.Context, words: list[str], error: Refusal) -> list[str] | None:
    parameter = getattr(error, "parameter", None)
    if isinstance(error, click.NoSuchOption):
        return _without_unknown(ctx, words, error.option_name)
    if isinstance(error, click.BadOptionUsage):
        return _with_or_without_value(ctx, words, error.option_name)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return _with_missing(ctx, words, error.param)
    if isinstance(parameter, Option):
        return _with_other_value(ctx, words, parameter)
    if isinstance(parameter, Argument):
        return _with_other_argument(ctx, words, parameter)
    return _without_surplus(ctx, words)


def _without_unknown(ctx: click.Context, words: list[str], name: str) -> list[str] | None:
    """The nearest name in its place; without a near one the word goes."""
    at = _place(words, name)
    if at is None:
        return None
    _, equals, value = words[at].partition("=")
    near = near_options(ctx, name)
    if near and " " in near[0]:
        return [*words[:at], *near[0].split(), *words[at + 1 :]]
    return [*words[:at], *([f"{near[0]}{equals}{value}"] if near else []), *words[at + 1 :]]


def _place(words: Sequence[str], name: str) -> int | None:
    """The word of an option: `--name`, `--name=value`, or a short name among others."""
    for at, word in enumerate(words):
        is_among = name[1:2] != "-" and word[:1] == "-" and word[1:2] != "-" and name[1:] in word
        if word == name or word.startswith(f"{name}=") or is_among:
            return at
    return None


def _with_or_without_value(ctx: click.Context, words: list[str], name: str) -> list[str] | None:
    option = next((known for known in _options(ctx) if name in _names(known)), None)
    if option is None:
        return None
    if option.is_flag:
        return [word.partition("=")[0] if word.startswith(f"{name}=") else word for word in words]
    # The value is missing at the end of the words.
    return [*words, sample_value(option, ctx)]


def _with_missing(ctx: click.Context, words: list[str], parameter: click.Parameter) -> list[str] | None:
    if isinstance(parameter, Option):
        return before_dashes(words, [parameter.opts[-1], sample_value(parameter, ctx)])
    if not isinstance(parameter, Argument):
        return None
    if parameter.nargs != 1 and words:
        # The parser has given the last word to the argument behind: `pipeline ingest FILE... TOPIC`.
        parameter = _arguments(ctx)[-1]
    dashes = (
        ["--"] if isinstance(parameter.type, click.types.UnprocessedParamType) and "--" not in words else []
    )
    return [*words, *dashes, sample_value(parameter, ctx)]


def _with_other_value(ctx: click.Context, words: list[str], option: Option) -> list[str]:
    """A sample in the place of each value; without one on the line, which a variable has given, one at the end."""
    line, is_there = list(words), False
    at = 0
    while at < len(line) and line[at] != "--":
        name = line[at].partition("=")[0]
        if name in _names(option):
            is_there = True
            if name != line[at]:
                line[at] = f"{name}={_replacement(option, ctx, line[at][len(name) + 1 :])}"
            elif at + 1 < len(line):
                line[at + 1] = _replacement(option, ctx, line[at + 1])
                at += 1
        elif len(name) > 2 and name[1] != "-" and name[:2] in _names(option):
            is_there, line[at] = True, f"{name[:2]}{_replacement(option, ctx, line[at][2:])}"
        at += 1
    return line if is_there else before_dashes(line, [option.opts[-1], sample_value(option, ctx)])


def _with_other_argument(ctx: click.Context, words: list[str], argument: Argument) -> list[str] | None:
    arguments = _arguments(ctx)
    places = _argument_places(ctx, words)
    number = arguments.index(argument)
    if argument.nargs == 1 and all(before.nargs == 1 for before in arguments[:number]):
        own_places = places[number : number + 1]
    else:
        own_places = places[number : len(places) - (len(arguments) - 1 - number)]
    if not own_places:
        return [*words, sample_value(argument, ctx)]
    return [_replacement(argument, ctx, word) if at in own_places else word for at, word in enumerate(words)]


def _replacement(parameter: Option | Argument, ctx: click.Context, text: str) -> str:
    """Of a kind with names the nearest one, else a sample."""
    return nearest(text, getattr(parameter.type, "names", ())) or sample_value(parameter, ctx)


def _without_surplus(ctx: click.Context, words: list[str]) -> list[str] | None:
    """Without the arguments that the command has no name for."""
    arguments = _arguments(ctx)
    surplus = _argument_places(ctx, words)[len(arguments) :]
    if not surplus or any(argument.nargs != 1 for argument in arguments):
        return None
    kept = [word for at, word in enumerate(words) if at not in surplus]
    return kept[:-1] if kept[-1:] == ["--"] else kept


def _argument_places(ctx: click.Context, words: Sequence[str]) -> list[int]:
    """The places of words that are no options and no values of options."""
    takes_value = {name for option in _options(ctx) if not option.is_flag for name in _names(option)}
    numbers = isinstance(ctx.command, Command) and ctx.command.declaration.numbers_are_arguments
    places: list[int] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return [*places, *range(at + 1, len(words))]
        if word[:1] != "-" or word == "-" or (numbers and word[1:2].isdecimal()):
            places.append(at)
        elif word in takes_value:
            at += 1
        at += 1
    return places


def _options(ctx: click.Context) -> list[Option]:
    return [option for option in ctx.command.get_params(ctx) if isinstance(option, Option)]


def _arguments(ctx: click.Context) -> list[Argument]:
    return [argument for argument in ctx.command.get_params(ctx) if isinstance(argument, Argument)]


def _names(option: Option) -> list[str]:
    return [*option.opts, *option.secondary_opts, *option.aliases]
