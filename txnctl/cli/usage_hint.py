"""The hint of a usage error: the correction in words, and at the end a command line to paste that the parser takes."""

from __future__ import annotations

from re import compile as pattern
from shlex import quote, split
from typing import TYPE_CHECKING

import click

from storage.errors import BadInput
from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.corrected_line import Trial, corrected, is_taken, near_options
from txnctl.cli.pasted_line import (
    DRY_RUN,
    before_dashes,
    harmless,
    has_token,
    without_flags,
    without_options,
    without_tokens,
)
from txnctl.cli.sample_values import expected_value
from txnctl.cli.value_types import SessionToken
from txnctl.output.shell import hint_of, line, name_in, worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.errors import InvalidValue
    from txnctl.cli.corrected_line import Refusal
    from txnctl.cli.declaration import Example

_OPTION = pattern(r"(?<![\w-])--?[a-z][a-z0-9-]*")
"""The name of an option in a message."""
_ADVISED = pattern(rf"Use ({_OPTION.pattern}) (\w+)")
"""An option in a hint, with the value to use."""
_COMMAND = pattern(r"\btxnctl (?!\.)")
"""The begin of a command to paste; `txnctl ...` is none."""
_LINE_MAX = 300
"""Characters of a command line to paste; a longer one, mostly a message, is shown with samples alone."""


def add_hint(error: Refusal, ctx: click.Context, words: Sequence[str]) -> None:
    """Give the error its hint; one from a trial keeps the hint that it has.

    Args:
        ctx: of the command or group that refused the words.
        words: as typed after the command.
    """
    if isinstance(ctx, Trial) or isinstance(
        getattr(getattr(error, "parameter", None), "type", None), SessionToken
    ):
        return
    if isinstance(error, BadInput) and error.details.get("parameter") == "password":
        return
    fitting = _fitting(ctx, words, error)
    begin = "It has these:" if _is_group(ctx) and fitting == ["--help"] else _correction(error, ctx)
    text = f"{begin} {command_line(ctx, fitting)}"
    if isinstance(error, BadInput):
        error.hint = text
    else:
        error.hint = text  # type: ignore[attr-defined]


def add_example(error: click.UsageError, examples: Sequence[Example]) -> None:
    """Give an error that a command raised the first example of the command as a hint, unless it has one."""
    lines = [example.lines[0] for example in examples if len(example.lines) == 1]
    if getattr(error, "hint", None) is None and lines:
        error.hint = f"For example: {worded(name_in(lines[0]))}"  # type: ignore[attr-defined]


def add_correction(error: InvalidValue, ctx: click.Context, words: Sequence[str]) -> None:
    """End the hint of an error over options, which the command itself raised, in a command line.

    An option that the hint names with a value (`Use -o ndjson`) has that value on the line. Else, of the options that
    the error names, the first without which the parser takes the line is left out; where none is on the line, the line
    is an example. An error that names no option of the command, or a command, is left as it is.

    Args:
        ctx: of the command.
        words: as typed after the command.
    """
    said = hint_of(error) or ""
    if _COMMAND.search(said) or not isinstance(ctx.command, Command):
        return
    options = [param for param in ctx.command.get_params(ctx) if isinstance(param, Option)]
    by_name = {name: option for option in options for name in [*option.opts, *option.aliases]}
    named = [by_name[name] for name in _OPTION.findall(f"{error.message} {said}") if name in by_name]
    if not named:
        return
    plain = without_tokens(ctx, words)
    advised = _ADVISED.search(said)
    if advised is not None and advised[1] in by_name:
        lines = [plain, *[split(line)[len(ctx.command_path.split()) :] for line in _examples(ctx.command)]]
        short = (_with(kept, by_name[advised[1]], advised[2]) for kept in lines if _is_short(kept))
        fitting = next((kept for kept in short if is_taken(ctx, kept)), None)
    else:
        left = (kept for option in named if (kept := _without(ctx, plain, option)) is not None)
        fitting = next(left, None) if _is_short(plain) else None
    if fitting is not None:
        error.hint = f"{said} For example: {command_line(ctx, fitting)}".lstrip()
    elif _examples(ctx.command):
        error.hint = f"{said} For example: {worded(name_in(_examples(ctx.command)[0]))}".lstrip()


def _examples(command: Command) -> list[str]:
    return [example.lines[0] for example in command.examples if len(example.lines) == 1]


def _with(words: Sequence[str], option: Option, value: str) -> list[str]:
    """The line with the option, which takes a value, at this value."""
    kept = without_options(words, {*option.opts, *option.aliases})
    return before_dashes(kept, [option.opts[0], value])


def _without(ctx: click.Context, words: Sequence[str], option: Option) -> list[str] | None:
    """The line without the option; None where it is not on the line, or the parser refuses what is left."""
    names = {*option.opts, *option.secondary_opts, *option.aliases}
    kept = without_flags(words, names) if option.is_flag else without_options(words, names)
    return kept if kept != [*words] and is_taken(ctx, kept) else None


def command_line(ctx: click.Context, words: Sequence[str]) -> str:
    """A command line to paste: the path of the command, the store that the line named, and the words."""
    path = ctx.command_path.partition(" ")[2]
    program = line(path) if path else line("").rstrip()
    kept = without_options(words, {"--store"}) if "--store" in program else words
    kept = ["--help"] if has_token(kept) else harmless(ctx, kept)
    return worded(" ".join([program, *map(quote, kept)]))


def _fitting(ctx: click.Context, words: Sequence[str], error: Refusal) -> list[str]:
    """The words corrected; those of an example where that does not help."""
    plain = without_tokens(ctx, words)
    fitting = corrected(ctx, plain, error) if _is_short(plain) else None
    if fitting is not None:
        return fitting
    if isinstance(ctx.command, GroupCommand):
        return ["--help"]
    # Every correction of nothing is a sample.
    begun = corrected(ctx, ["--no-such-option"], click.NoSuchOption("--no-such-option", ctx=ctx))
    return ["--help"] if begun is None else begun


def _is_short(words: Sequence[str]) -> bool:
    return sum(map(len, words)) < _LINE_MAX and "".join(words).isprintable()


def _correction(error: Refusal, ctx: click.Context) -> str:
    """The beginning of the hint."""
    if isinstance(error, click.NoSuchOption):
        near = near_options(ctx, error.option_name)
        if near:
            return f"Did you mean {' or '.join(near)}?"
        if _is_group(ctx):
            return "Options of a command stand after it:"
        return "There is no dry run of it; this runs it:" if error.option_name == DRY_RUN else "Without it:"
    if isinstance(error, click.BadOptionUsage):
        params = [param for param in ctx.command.get_params(ctx) if isinstance(param, Option)]
        option = next((param for param in params if error.option_name in [*param.opts, *param.aliases]), None)
        if option is None or option.is_flag:
            return "It takes no value:"
        return f"It takes {expected_value(option, ctx)}. For example:"
    if isinstance(error, click.MissingParameter):
        return "For example:"
    parameter = getattr(error, "parameter", None)
    if isinstance(parameter, Option | Argument):
        said = hint_of(error) if isinstance(error, BadInput) else None
        return f"{said or f'Expected: {expected_value(parameter, ctx)}.'} For example:"
    return "Without it:"


def _is_group(ctx: click.Context) -> bool:
    return isinstance(ctx.command, GroupCommand)
