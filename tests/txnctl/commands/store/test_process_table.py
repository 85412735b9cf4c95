"""Processes in columns: a pid is a name, and a long command line is cut between two words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from txnctl.commands.store.process_table import process_table
from txnctl.output.field import Field
from txnctl.output.table import list_table

FIELDS = (Field("pid", "integer", "Pid."), Field("holder", "text", "Who."))


class Tables:
    """Lays out tables as a context does."""

    def table_of(self, rows: Sequence[dict[str, Any]], fields: Sequence[Field]) -> str:
        return list_table(rows, fields)


def lines(*rows: dict[str, Any]) -> list[str]:
    """The table without its headings."""
    return process_table(Tables(), rows, FIELDS).splitlines()[1:]  # type: ignore[arg-type]


def test_a_pid_has_no_thousands() -> None:
    """And an unknown one is a dash."""
    assert lines({"pid": 48211, "holder": "x"}, {"pid": None, "holder": None}) == ["48211  x", "    -  -"]


@pytest.mark.parametrize("length", [59, 60])
def test_what_fits_is_whole(length: int) -> None:
    """Sixty characters do."""
    assert lines({"pid": 1, "holder": "x" * length}) == [f"    1  {'x' * length}".replace("    1", "  1")]


def test_what_does_not_fit_is_cut_between_words() -> None:
    """A bracket that was open is closed."""
    holder = "process 48211 (python load.py --from " + "2024-05-01 " * 5 + ")"
    (line,) = lines({"pid": 1, "holder": holder})
    shown = line.split(maxsplit=1)[1]
    assert shown.endswith(" ...)")
    assert len(shown) <= 60
    assert holder.startswith(shown.removesuffix(" ...)"))
    (line,) = lines({"pid": 1, "holder": "word " * 20})
    assert line.endswith("word ...")
