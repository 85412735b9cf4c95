"""Render: `txnctl/output/render.py`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import sys
import termios
from pathlib import Path
from typing import Any, ClassVar

import pytest

from storage import Store
from tests.txnctl.output.output_steps import FIELDS, ROWS
from tests.txnctl.processes import drained
from txnctl.output import render
from txnctl.output.field import Field


class TestRendering:
    """Table and JSON come from the same rows."""

    def test_json_is_an_array_or_an_object(self) -> None:
        """An empty list is an array too."""
        assert json.loads("".join(render.many(ROWS, "json", render.RowForm(FIELDS, "topic"), None))) == ROWS
        assert json.loads(render.one(ROWS[0], "json", render.RowForm(FIELDS, "topic"), None)) == ROWS[0]
        assert "".join(render.many([], "json", render.RowForm(FIELDS, "topic"), None)) == "[]\n"

    def test_ndjson_is_an_object_a_line(self) -> None:
        """Also of one thing; of none, nothing."""
        text = "".join(render.many(ROWS, "ndjson", render.RowForm(FIELDS, "topic"), None))
        assert [json.loads(line) for line in text.splitlines()] == ROWS
        assert json.loads(render.one(ROWS[0], "ndjson", render.RowForm(FIELDS, "topic"), None)) == ROWS[0]
        assert "".join(render.many([], "ndjson", render.RowForm(FIELDS, "topic"), None)) == ""


class TestFolding:
    """A table on a terminal that is narrower than the table."""

    FIELDS = (
        Field("messageId", "id", "Its id."),
        Field("label", "text", "What it is for."),
        Field("bytes", "size", "How large.", heading="SIZE"),
        Field("labels", "map", "More."),
    )
    ROWS: ClassVar[list[dict[str, Any]]] = [
        {"messageId": "12:4471:" + "3" * 30, "label": "settles what was booked on the day before", "bytes": 5,
         "labels": {"job": "nightly", "host": "a-name-without-a-blank-that-is-long"}},
        {"messageId": "1:0", "label": "short", "bytes": None, "labels": {}},
    ]  # fmt: skip

    def lines(self, width: int | None) -> list[str]:
        return "".join(
            render.many(
                self.ROWS, "table", render.RowForm(self.FIELDS, "messageId", False, width, width), None
            )
        ).splitlines()

    @pytest.mark.parametrize("width", [None, 160, 500])
    def test_what_fits_is_a_line_a_row(self, width: int | None) -> None:
        """And what goes elsewhere than to a terminal, however wide it is."""
        assert self.lines(width) == self.lines(None)
        assert len(self.lines(width)) == 3

    @pytest.mark.parametrize("width", [100, 110, 120])
    def test_long_texts_are_folded_in_their_columns(self, width: int) -> None:
        """All of a text is there, in its own column; an id, which is copied, stays in one piece."""
        lines = self.lines(width)
        assert max(map(len, lines)) <= width
        assert sum("12:4471:" + "3" * 30 in line for line in lines) == 1
        at, end = lines[0].index("LABEL"), lines[0].index("SIZE")
        column = [line[at:end].strip() for line in lines[1:]]
        assert " ".join(filter(None, column)) == "settles what was booked on the day before short"
        labels = lines[0].index("LABELS")
        assert "".join("".join(line[labels:].split()) for line in lines[1:-1]) == (
            "job=nightly,host=a-name-without-a-blank-that-is-long"
        )

    def test_what_cannot_be_made_to_fit_stays_readable(self) -> None:
        """An id that is wider than the terminal goes on below, and nothing is lost."""
        assert max(map(len, self.lines(10))) <= len("MESSAGE ID")
        assert "".join([line.strip() for line in self.lines(10)]).count("3") >= 30

    @pytest.mark.parametrize(("width", "folds"), [(70, True), (200, False)])
    def test_the_width_is_that_of_the_terminal(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, folds: bool
    ) -> None:
        """As the kernel knows it: where it is wide, each setting has one line below the heading."""
        Store.create(tmp_path / "s")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "s"))
        settings = run("store", "config", "-o", "json").json
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            # Not execv: readline, once it is loaded, puts a COLUMNS where os.environ does not see it.
            environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            words = ["-m", "txnctl", "store", "config", "--store", str(tmp_path / "s")]
            os.execve(sys.executable, [sys.executable, *words], environ)
        printed = drained(terminal).decode().splitlines()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (len(printed) > len(settings) + 1) == folds
        assert max(map(len, printed)) <= width
