"""The command `txnctl`: the tree, and the one way in and out.

`main` runs one command line and always returns an exit code; no code below ends the process, prints a traceback or
swallows an error. The tree is a table of names (`command_table.COMMANDS`): no module of a command is loaded before the
command is invoked, and `txnctl --help` loads none.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from txnctl.cli import exit_codes
from txnctl.cli.click_commands import GroupCommand
from txnctl.cli.command_table import COMMANDS, SECTIONS
from txnctl.cli.declaration import Group
from txnctl.cli.error_report import report
from txnctl.cli.exit_codes import HungUp, Terminated
from txnctl.cli.shared_options import of_root
from txnctl.output.shell import name_store
from txnctl.output.stream import OutputStream, drop_output

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from types import FrameType
else:
    try:
        # The functions alone: the module `signal` builds enumerations of all signals first, for half a millisecond.
        import _signal as signal
    except ImportError:  # no CPython
        import signal

_COMPLETE_VARIABLE = "_TXNCTL_COMPLETE"

HELP = """Durable topics with transactions and isolation levels per subscription, in one directory.

A store is a directory; any number of processes use it at once. Messages go to topics with `produce`, alone or in a
transaction over several topics; `consume` takes them, each subscription at the isolation level of its choice.
"""


def root() -> GroupCommand:
    """The whole tree."""
    return GroupCommand(Group("txnctl", HELP, elsewhere=COMMANDS, sections=SECTIONS), of_root())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        # The store that this line named is not that of the next one in this process.
        name_store(None)


def _main(words: list[str]) -> int:
    try:
        _listen_to_signals()
        try:
            status = _run(words)
            OutputStream().flush()
        except BrokenPipeError:
            # `txnctl ... | head -1`: a quiet end.
            drop_output()
            return exit_codes.PIPE_CLOSED
    except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001  here every error ends
        return _failed(error, words)
    return status


def _run(words: list[str]) -> int:
    tree = root()
    instruction = os.environ.get(_COMPLETE_VARIABLE)
    if instruction:
        from txnctl.cli.complete import answer

        return answer(tree, _COMPLETE_VARIABLE, instruction)
    try:
        # The parser removes words from the list; the report of an error looks for `-o` in all of them.
        with tree.make_context("txnctl", list(words)) as context:
            tree.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    return exit_codes.DONE


def _failed(error: BaseException, words: Sequence[str]) -> int:
    """Flush the printed output, then report the error.

    After Ctrl-C the output is dropped: a full pipe, mostly a pager, would block the end.
    """
    if isinstance(error, Exception):
        OutputStream().flush_if_possible()
    else:
        drop_output()
    return report(error, words)


def _listen_to_signals() -> None:
    """Make SIGTERM and SIGHUP exceptions, so that the store is closed on the way out. Ignored signals stay ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            try:
                signal.signal(number, _end)
            except ValueError:
                # Not the main thread: the owner of this thread decides.
                return


def _end(number: int, _frame: FrameType | None) -> None:
    raise HungUp if number == signal.SIGHUP else Terminated
