"""What an example of help needs first: plain commands run in the process of the test, all else is left to a shell."""

from __future__ import annotations

import shlex
from typing import Any

from txnctl.cli.declaration import Example

_SHELL_SYNTAX = frozenset("$`|&;<>(){}*?~#\\\n")


def prepare(example: Example, run: Any) -> list[str]:
    """Run the preparations up to the first that needs a shell; return that one and all after it.

    A command that runs a command, after ` -- `, looks for it in PATH and needs a shell too. The abort of a transaction
    asks whether the last user lives, so that who prepares it must have ended.
    """
    lines = list(example.setup)
    if any("transactions abort" in line for line in example.lines):
        return lines
    while (
        lines
        and lines[0].startswith("txnctl ")
        and " -- " not in lines[0]
        and not _SHELL_SYNTAX.intersection(lines[0])
    ):
        outcome = run(*shlex.split(lines.pop(0))[1:])
        assert outcome.status == 0, outcome
    return lines
