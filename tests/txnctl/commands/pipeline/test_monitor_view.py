"""The view of `pipeline monitor` on a terminal: redrawn in its place, as far as it fits, and kept when it is left."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from storage.json_form import to_json
from txnctl.cli.click_commands import Command
from txnctl.cli.context import Context
from txnctl.commands.pipeline.monitor_view import FIELDS, MonitorResult, live, sums_of
from txnctl.generate.tree import pages
from txnctl.pipelines.monitor import OUTSIZED, GroupSums, View

TOPIC = "persistent://public/default/requests"


ROWS = 10


class Terminal:
    """A terminal of ten lines on standard error."""

    def __init__(self, master: int) -> None:
        self._master = master

    def said(self) -> str:
        """What was written to it since the last look; it arrives a moment after it was written."""
        said = b""
        while select.select([self._master], [], [], 0.2 if said else 5)[0]:
            said += os.read(self._master, 1 << 16)
        return said.decode().replace("\r\n", "\n")


@contextmanager
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Standard error is such a terminal while the block runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, 80, 0, 0))
    with os.fdopen(slave, "w", encoding="utf-8") as stream, monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm")
        patched.setattr(sys, "stderr", stream)
        yield Terminal(master)
    os.close(master)


@pytest.fixture
def context() -> Context:
    """That of the command."""
    (command,) = (page.command for page in pages() if page.title == "txnctl pipeline monitor")
    assert isinstance(command, Command)
    return Context(command.make_context("monitor", ["requests"]), command.declaration)


def view(messages: int, periods: int) -> View:
    """A view of so many messages, in so many periods."""
    total = GroupSums("total", "", inflow=100, messages=messages)
    each = {
        f"2026-{1 + number:02}-01T00:00:00Z": GroupSums("period", f"2026-{1 + number:02}", 100, 0, messages)
        for number in range(periods)
    }
    return View(1, total, each)


def test_an_overdraft_names_no_message() -> None:
    """An outsized amount names message and transaction; the fields are absent from an overdraft, not null."""
    known = view(3, 1)
    known.outsized["1:7"] = GroupSums(OUTSIZED, "1:7", outflow=500, txn_id="0:4", account="B1")
    known.overdrawn["B2"] = -120
    row = to_json(MonitorResult(sums_of(TOPIC, known), 5))
    assert list(row) == [field.name for field in FIELDS]
    assert row["anomalies"] == [
        {"kind": "outsized", "account": "B1", "amount": "-5.00", "messageId": "1:7", "txnId": "0:4"},
        {"kind": "overdraft", "account": "B2", "amount": "-1.20"},
    ]
    assert [period["net"] for period in row["periods"]] == ["1.00"]


def test_sums_are_unknown_where_an_earlier_run_has_counted_too() -> None:
    """Null until the first micro-batch of this run."""
    sums = sums_of(TOPIC, View(), goes_on=True)
    assert (sums.batches, sums.messages, sums.reserves, sums.outflow) == (0, None, None, None)
    assert sums_of(TOPIC, View()).reserves == "0.00"


def test_each_view_takes_the_place_of_the_one_before_it(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    """As many lines are wiped as were written; at the end all are, for the result to be printed."""
    with on_terminal(monkeypatch) as terminal:
        with live(context, TOPIC) as show:
            show(view(1, 2))
            first = terminal.said()
            assert first.startswith("1 message\nreserves 1.00")
            show(view(2, 0))
            lines = first.count("\n")
            assert terminal.said() == f"\x1b[{lines}F\x1b[J2 messages\nreserves 1.00   in 1.00   out 0.00\n"
        assert terminal.said() == "\x1b[2F\x1b[J"


def test_no_more_is_shown_than_fits(monkeypatch: pytest.MonkeyPatch, context: Context) -> None:
    """What has left the terminal at its top could not be wiped."""
    with on_terminal(monkeypatch) as terminal, live(context, TOPIC) as show:
        show(view(1, 12))
        assert terminal.said().count("\n") == ROWS - 1


def test_who_presses_ctrl_c_keeps_the_last_view(monkeypatch: pytest.MonkeyPatch, context: Context) -> None:
    """There is no result that would be printed in its place."""

    def interrupted() -> None:
        with live(context, TOPIC) as show:
            show(view(1, 0))
            raise KeyboardInterrupt

    with on_terminal(monkeypatch) as terminal:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert terminal.said().endswith("out 0.00\n")
