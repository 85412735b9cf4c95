"""`txnctl help`: the help of a command or a group, by the words of the command line."""

from __future__ import annotations

from txnctl.cli.decorators import argument, effect, example

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context


@argument(
    "words", nargs=-1, metavar="[COMMAND]...", help="The words of the command, such as transactions abort."
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
