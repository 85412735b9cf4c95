"""The error for an unknown command, with similar names. Loaded for this error alone."""

from __future__ import annotations

from difflib import get_close_matches

import click

from txnctl.cli.aliases import ALIASES, USUAL_WORDS
from txnctl.cli.click_commands import GroupCommand
from txnctl.cli.declaration import Group
from txnctl.cli.remedies import REMEDIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SPELLED = 3
"""Commands of the same name that are spelled in full; of more, the groups are named."""


def unknown_command(ctx: click.Context, words: Sequence[str], table: Group) -> click.UsageError:
    """The error for a line that begins with an unknown name.

    At the top level the name may be that of a command of some groups, without the group: a command of that name in a
    group wins over similar names.
    """
    name, is_top = words[0], ctx.parent is None
    text = f"no such command: {ctx.command_path} {name}"
    usual = [
        word
        for word in USUAL_WORDS.get(name, ())
        if word in table.names() or (is_top and _in_groups(ctx, word, table))
    ]
    if usual:
        name, words = usual[0], [usual[0], *words[1:]]
    elif name in REMEDIES and ctx.info_name == "errors":
        name, words = "explain", ["explain", *words]
    near = [name] if name in table.names() else _near(name, table.names())
    meant = _in_groups(ctx, name, table) if is_top and name not in table.names() else ""
    meant_too = meant or " or ".join(near)
    error = click.UsageError(f"{text}; did you mean {meant_too}?" if meant_too else text, ctx)
    error.hint = _hint(ctx, words, near, in_group=bool(meant))  # type: ignore[attr-defined]
    return error


def add_help_hint(error: click.UsageError, ctx: click.Context, words: Sequence[str], table: Group) -> None:
    """Let the hint of an unknown command that help was asked for show the help of the nearest one.

    Args:
        ctx: of the top level.
        words: those after `help`, the unknown one last.
        table: the group that has no such command.
    """
    from txnctl.cli.usage_hint import command_line

    path = [*words[:-1], *_near(words[-1], table.names())[:1]]
    if len(words) == 1:
        path = _path_in_groups(words[0], table) or path
    if len(path) >= len(words):
        error.hint = f"Try: {command_line(ctx, ['help', *path])}"  # type: ignore[attr-defined]


def _hint(ctx: click.Context, words: Sequence[str], near: Sequence[str], *, in_group: bool) -> str:
    """The line with the nearest command, or the list of all."""
    from txnctl.cli.corrected_line import Trial, below
    from txnctl.cli.usage_hint import command_line

    group = ctx.command
    assert isinstance(group, GroupCommand)
    if isinstance(ctx, Trial):
        return ""
    names = [*words]
    if in_group:
        names = [*_path_in_groups(words[0], group.table)[:1], *words]
    elif near:
        names = [near[0], *words[1:]]
    fitting = below(ctx, names) if in_group or near else None
    if fitting is None:
        return f"It has these: {command_line(ctx, ['--help'])}"
    return f"Try: {command_line(ctx, fitting)}"


def _in_groups(ctx: click.Context, name: str, table: Group) -> str:
    """`txnctl store verify`, or `a command of topics, tables or audit`; empty if no group has it."""
    full_name = ALIASES.get(name, name)
    members = [(member_name, table.find(member_name)) for member_name in table.names()]
    groups = [
        member_name
        for member_name, group in members
        if isinstance(group, Group) and full_name in group.names()
    ]
    if len(groups) > _SPELLED:
        return f"a command of {', '.join(groups[:-1])} or {groups[-1]}"
    return " or ".join([f"{ctx.command_path} {group} {name}" for group in groups])


def _path_in_groups(name: str, table: Group) -> list[str]:
    """Group and name of the first command of that name in a group; empty if there is none."""
    full_name = ALIASES.get(name, name)
    for member in table.names():
        kind = table.find(member)
        if isinstance(kind, Group) and full_name in kind.names():
            return [member, full_name]
    return []


def _near(name: str, names: list[str]) -> list[str]:
    near = get_close_matches(name, [*names, *ALIASES], n=3, cutoff=0.5)
    return near + [other for other in names if other.startswith(name) and other not in near]
