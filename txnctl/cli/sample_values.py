"""A valid value for each option and argument, for the command line of a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnctl.cli.value_types import SubscriptionName, TableName, TopicName, TransactionGrammar

if TYPE_CHECKING:
    from txnctl.cli.click_commands import Argument, Command, Option

_BY_METAVAR = {
    "AMOUNT": "100",
    "ACTION": "topics delete",
    "CHAR": ";",
    "CMD": "cat",
    "CMD [ARG]...": "true",
    "COLUMN": "account",
    "DEST": "backup",
    "DIR": "directory",
    "FIELD": "amount",
    "FILE": "input.csv",
    "FILE...": "input.csv",
    "ID": "load-1",
    "KEY": "B1",
    "NAME": "loader",
    "NAME=VALUE": "lag=1000",
    "NAME[=TABLE]": "accounts",
    "NAME[=TOPIC]": "orders",
    "PATH": "directory",
    "SRC": "backup",
    "STORE": "directory",
    "STATEMENT": "SELECT 1",
    "TEXT": "text",
    "URI": "/archive",
    "URL": "local[2]",
}
"""Values of text options and text arguments, by the word in the help."""

_NAMES = (TopicName, SubscriptionName, TableName, TransactionGrammar)
"""Kinds of value with names in the store."""


def sample_value(parameter: Option | Argument, ctx: click.Context) -> str:
    """A value of the parameter: for a reading command a name from the store, if the store has one."""
    kind = parameter.type
    if isinstance(kind, _NAMES) and _reads(ctx):
        items = kind.shell_complete(ctx, parameter, "")
        if items:
            return str(items[0].value)
    if isinstance(kind, click.Path) and kind.exists:
        return "/dev/stdin"
    sample: str = getattr(kind, "sample", "")
    return sample or _BY_METAVAR.get(parameter.make_metavar(ctx).strip("[]"), parameter.name or "x")


def expected_value(parameter: Option | Argument, ctx: click.Context) -> str:
    """The kind of value in words: of a grammar its forms, else the word in the help."""
    expected: str = getattr(parameter.type, "expected", "")
    return expected or f"a value: {parameter.make_metavar(ctx)}"


def _reads(ctx: click.Context) -> bool:
    command: Command = ctx.command  # type: ignore[assignment]
    return command.declaration.effect == "reads"
