"""`txnctl help`: the help of a command or a group, by the words of the command line."""

from __future__ import annotations

from txnctl.cli.decorators import argument, effect, example

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import click
    from click.shell_completion import CompletionItem

    from txnctl.cli.context import Context


def _commands(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The commands of the group that the words before name."""
    from click import Context, Group
    from click.shell_completion import CompletionItem

    at, command = ctx.find_root(), ctx.find_root().command
    for word in ctx.params.get("words") or ():
        member = command.get_command(at, word) if isinstance(command, Group) else None
        if member is None:
            return []
        at, command = Context(member, parent=at, info_name=word), member
    if not isinstance(command, Group):
        return []
    return [CompletionItem(name) for name in command.list_commands(at) if name.startswith(incomplete)]


@argument(
    "words",
    nargs=-1,
    metavar="[COMMAND]...",
    shell_complete=_commands,
    help="The words of the command, such as transactions abort.",
)
@effect("reads")
@example("txnctl help")
@example("txnctl help transactions abort")
def help_(context: Context, words: Sequence[str]) -> None:
    """Show the help of a command, as --help after it does.

    The manual has the same pages (`man txnctl-transactions-abort`), and two more: the runbook for stuck transactions,
    `man 7 txnctl-transactions`, and the files of a store, `man 5 txnctl-store`.
    """
    context.out.write(context.help_of(words))
