"""Processes in columns: a pid is a name, and a long command line is cut between two words."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from txnctl.commands.store.process_table import holder_cell, pid_cell
from txnctl.output.column import Column
from txnctl.output.table import list_table


class Process(NamedTuple):
    """A row about a process."""

    pid: int | None
    holder: str | None


COLUMNS: tuple[Column[Process], ...] = (
    Column("PID", "integer", lambda row: pid_cell(row.pid)),
    Column("HOLDER", "text", lambda row: holder_cell(row.holder)),
)


def lines(*rows: Process) -> list[str]:
    """The table without its headings."""
    return str(list_table(rows, COLUMNS)).split("\n")[1:]


def test_a_pid_has_no_thousands() -> None:
    """And an unknown one is a dash."""
    assert lines(Process(48211, "x"), Process(None, None)) == ["48211  x", "    -  -"]


@pytest.mark.parametrize("length", [59, 60])
def test_what_fits_is_whole(length: int) -> None:
    """Sixty characters do."""
    assert lines(Process(1, "x" * length)) == [f"    1  {'x' * length}".replace("    1", "  1")]


def test_what_does_not_fit_is_cut_between_words() -> None:
    """A bracket that was open is closed."""
    holder = "process 48211 (python load.py --from " + "2024-05-01 " * 5 + ")"
    (line,) = lines(Process(1, holder))
    shown = line.split(maxsplit=1)[1]
    assert shown.endswith(" ...)")
    assert len(shown) <= 60
    assert holder.startswith(shown.removesuffix(" ...)"))
    (line,) = lines(Process(1, "word " * 20))
    assert line.endswith("word ...")
