"""The error for an unknown command, with similar names. Loaded for this error alone."""

from __future__ import annotations

from difflib import get_close_matches

import click

from txnctl.cli.aliases import ALIASES
from txnctl.cli.declaration import Group

_SPELLED = 3
"""Commands of the same name that are spelled in full; of more, the groups are named."""


def unknown_command(ctx: click.Context, name: str, table: Group) -> click.UsageError:
    """The error.

    At the top level the name may be that of a command of some groups, without the group: a command of that name in a
    group wins over similar names.
    """
    meant = _in_groups(ctx, name, table) if ctx.parent is None else ""
    meant = meant or " or ".join(_near(name, table.names()))
    text = f"no such command: {ctx.command_path} {name}"
    return click.UsageError(f"{text}; did you mean {meant}?" if meant else text, ctx)


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


def _near(name: str, names: list[str]) -> list[str]:
    near = get_close_matches(name, [*names, *ALIASES], n=3, cutoff=0.5)
    return near + [other for other in names if other.startswith(name) and other not in near]
