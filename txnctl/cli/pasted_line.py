"""Command lines of hints that do no harm when pasted: without secrets, and dry runs of an operator's changes.

A correction may drop an option (`--simulate`), take a different command (`update` becomes `truncate`), or put in a
sample. So a command that destroys, or that changes the work of others, is shown as a dry run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnctl.cli.click_commands import Command, GroupCommand, Option
from txnctl.cli.value_types import SessionToken

if TYPE_CHECKING:
    from collections.abc import Sequence

DRY_RUN = "--dry-run"


def harmless(ctx: click.Context, words: Sequence[str]) -> list[str]:
    """The words with `--dry-run` where their command is an operator's, and changes the store.

    Args:
        ctx: of the command, or of a group; then the words begin with options of the group, and a command.
    """
    command, line = ctx.command, list(words)
    for word in line:
        if not isinstance(command, GroupCommand):
            break
        command = command.get_command(ctx, word) or command
    if not isinstance(command, Command) or {"-h", "--help", DRY_RUN} & set(line):
        return line
    declaration = command.declaration
    changes = declaration.effect == "destroys" or (
        declaration.administrative and declaration.effect != "reads"
    )
    if not changes or not any(DRY_RUN in param.opts for param in command.get_params(ctx)):
        return line
    return before_dashes(line, [DRY_RUN])


def before_dashes(words: Sequence[str], more: Sequence[str]) -> list[str]:
    """The words with more options, in front of a `--`."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *more, *words[at:]]


def has_token(words: Sequence[str]) -> bool:
    """Whether one of the words has the token of a session, alone or after `=`."""
    return any(map(_is_token, words))


def without_tokens(ctx: click.Context, words: Sequence[str]) -> list[str]:
    """Without the token of a session, which is a secret, and without the option that it is the value of.

    Also behind an option of a name that the command does not have.

    Args:
        ctx: of the command.
    """
    options = [param for param in ctx.command.get_params(ctx) if isinstance(param, Option)]
    of_tokens = {
        name
        for option in options
        if isinstance(option.type, SessionToken)
        for name in [*option.opts, *option.aliases]
    }
    flags = {name for option in options if option.is_flag for name in [*option.opts, *option.secondary_opts]}
    kept: list[str] = []
    for word in without_options(words, of_tokens):
        if not _is_token(word):
            kept.append(word)
        elif (
            kept and kept[-1][:1] == "-" and kept[-1] not in flags and "=" not in kept[-1] and word[:1] != "-"
        ):
            kept.pop()
    return kept


def without_options(words: Sequence[str], names: set[str]) -> list[str]:
    """Without these options and their values."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in names:
            next(rest, None)
        elif word.partition("=")[0] not in names:
            kept.append(word)
    return kept


def without_flags(words: Sequence[str], names: set[str]) -> list[str]:
    """Without these options, which take no value."""
    return [word for word in words if word not in names]


def _is_token(word: str) -> bool:
    from re import search

    return search(r"[0-9a-fA-F]{8}-[0-9]+-[0-9]+-[0-9a-fA-F]{16}", word) is not None
