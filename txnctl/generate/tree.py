"""The command tree, walked for the generators: every command with path, parameters and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.main import root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.declaration import Example


class Page:
    """A command or group of the tree.

    Attributes:
        path: its words, `("txnctl", "topics", "stats")`.
        command: the click command.
        context: a click context without parsed values.
    """

    __slots__ = ("command", "context", "path")

    def __init__(
        self, path: tuple[str, ...], command: Command | GroupCommand, context: click.Context
    ) -> None:
        self.path = path
        self.command = command
        self.context = context

    @property
    def title(self) -> str:
        """The words as typed: `txnctl topics stats`."""
        return " ".join(self.path)

    @property
    def file_name(self) -> str:
        """The words as one: `txnctl-topics-stats`."""
        return "-".join(self.path)

    @property
    def summary(self) -> str:
        """The summary in the list of commands, without the full stop."""
        return self.command.get_short_help_str(200).rstrip(".")

    @property
    def usage(self) -> str:
        """The usage after the words of the command: `[OPTIONS] TOPIC`."""
        return " ".join(self.command.collect_usage_pieces(self.context))

    @property
    def paragraphs(self) -> list[str]:
        r"""The text of the help; a paragraph that starts with `\b` keeps the line breaks."""
        from inspect import cleandoc

        return [paragraph.strip("\n") for paragraph in cleandoc(self.command.help or "").split("\n\n")]

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Name and help of each argument."""
        arguments = [
            argument for argument in self.command.get_params(self.context) if isinstance(argument, Argument)
        ]
        return [(argument.make_metavar(self.context), argument.help or "") for argument in arguments]

    def options(self, *, shared: bool) -> list[tuple[str, str]]:
        """Return names and help of each option: the options of this command alone, or those shared by many commands."""
        options = [option for option in self.command.get_params(self.context) if isinstance(option, Option)]
        records = [option.get_help_record(self.context) for option in options if option.shared is shared]
        return [record for record in records if record is not None]


def pages() -> Iterator[Page]:
    """Walk the root, then every group followed by the commands of the group."""
    yield from _below(("txnctl",), root(), None)


def examples() -> list[tuple[str, Example]]:
    """Return every example with its command; each example runs alone after `store init`."""
    runnable = []
    for page in pages():
        if isinstance(page.command, Command):
            runnable += [(page.title, example) for example in page.command.examples]
    return runnable


def _below(path: tuple[str, ...], command: click.Command, parent: click.Context | None) -> Iterator[Page]:
    assert isinstance(command, (Command, GroupCommand))
    context = click.Context(command, info_name=path[-1], parent=parent, **command.context_settings)
    yield Page(path, command, context)
    if isinstance(command, GroupCommand):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, name
            yield from _below((*path, name), member, context)
