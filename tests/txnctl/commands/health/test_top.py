"""`txnctl top`, at terminals."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.terminal_picture import Picture, Terminal

FAST = ("top", "--watch", "100ms")


@pytest.fixture
def screen(path: Path, stuck: None) -> Terminal:
    """The screen at a store with 0:1 in front of three messages, and a late 0:2."""
    terminal = Terminal(*FAST)
    terminal.shows("! ", "in 0/s", "q quit")
    return terminal


def test_the_way_from_a_problem_to_the_command(screen: Terminal) -> None:
    """Enter on the worst, its reason and the command to paste; Esc goes back; then the transaction, topic, consumer."""
    with screen:
        assert "> ! " in screen.picture.text()
        screen.type("\r")
        screen.shows("Next: txnctl ", "Esc back")
        screen.type("\x1b")
        screen.shows("q quit", "> ! ")
        for table, row, explained in (
            ("3", "0:2", "OVERDUE"),
            ("2", "orders", "maxReadPosition"),
            ("4", "billing", "waits behind transaction 0:1"),
        ):
            screen.type(table)
            screen.until(
                lambda picture, row=row: any(line.startswith(f"> {row}") for line in picture.lines())
            )
            screen.type("\r")
            screen.shows(explained, "Esc back")
            screen.type("\x1b")
            screen.shows("q quit")
        screen.type("3/loader")
        screen.shows("none with this text")
        screen.type("\x1b?")
        screen.shows("sort backwards")
        screen.type(" \x1b[B\x1bOAq")
        assert screen.ends() == 0
        assert screen.modes_are_as_before()
        assert screen.picture.modes["?1049"] is False, "the screen before is shown again"


def test_changes_show_with_rates(screen: Terminal, path: Path) -> None:
    """Messages appended between two looks; the rate falls to 0 again. No view is held between two looks."""
    with screen, Store.open(path) as store:
        producer = store.create_producer("orders")
        producer.send_batch([b"x"] * 50)
        assert screen.until(lambda picture: "in 0/s" not in picture.text())
        screen.shows("in 0/s", "55")
        end = time.monotonic() + 20
        while any(row.state == "reading" for row in store.reports.list_readers()):
            assert time.monotonic() < end
        screen.type("q")
        assert screen.ends() == 0


def test_nothing_is_written(screen: Terminal, path: Path) -> None:
    """The overdue transaction stays too: a screen ends nothing."""
    with screen:
        before = (path / "data.mdb").read_bytes()
        screen.type("\t\t3\r")
        screen.shows("Advice")
        with Store.open(path, read_only=True) as store:
            assert store.reports.live_facts().overview.facts.transactions.open == 2
        assert (path / "data.mdb").read_bytes() == before


def test_it_takes_any_size(screen: Terminal) -> None:
    """At once, not at the next look; from 40 columns and 10 lines on the problem, a row and the keys are shown."""
    with screen:
        for columns, rows in ((40, 10), (132, 50), (20, 3), (1, 1), (80, 24)):
            screen.size(columns, rows)
            screen.process.send_signal(signal.SIGWINCH)

            def is_drawn(picture: Picture) -> bool:
                lines = picture.lines()
                return picture.columns < 40 or ("! " in "\n".join(lines) and "q" in lines[-1])

            screen.until(is_drawn)
        screen.type("q")
        assert screen.ends() == 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_gives_the_terminal_back(screen: Terminal, number: signal.Signals, status: int) -> None:
    """And ends the process at once, though the next look is far."""
    with screen:
        screen.process.send_signal(number)
        assert screen.ends() == status
        assert screen.modes_are_as_before()
        assert "Traceback" not in screen.picture.text()


def test_an_error_gives_the_terminal_back(screen: Terminal, path: Path) -> None:
    """The store is removed; the error stands on the screen from before."""
    with screen:
        shutil.move(path, path.with_name("elsewhere"))
        assert screen.ends() == 6, screen.picture.text()
        assert screen.modes_are_as_before()
        assert "txnctl: error:" in screen.picture.text()
        shutil.move(path.with_name("elsewhere"), path)


def test_it_stops_and_goes_on(path: Path, stuck: None) -> None:
    """Ctrl-Z gives the terminal back, `fg` takes it again and draws all anew."""
    assert path.exists()
    with Terminal(*FAST, in_shell=True) as screen:
        screen.shows("! ", "q quit")
        screen.insist("\x1a", lambda picture: "stopped" in picture.text())
        assert screen.modes_are_as_before()
        screen.type("fg\n")
        screen.until(lambda picture: picture.modes["?1049"])
        screen.insist("q", lambda _: screen.process.poll() is not None)
        assert screen.ends() == 0
        assert screen.modes_are_as_before()


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_colors_can_be_switched_off(path: Path, stuck: None, environment: dict[str, str]) -> None:
    """By NO_COLOR; the chosen row stays marked, and the screen is never blanked between two looks."""
    assert path.exists()
    with Terminal(*FAST, **environment) as terminal:
        terminal.shows("! ", "in 0/s")
        clears = terminal.picture.clears
        colors = {
            style
            for style in terminal.picture.styles
            if style[:1] in ("3", "4") and style not in ("39", "49")
        }
        assert bool(colors) is not bool(environment)
        terminal.type("2")
        terminal.until(lambda picture: any(line.startswith("> orders") for line in picture.lines()))
        assert terminal.picture.clears == clears


@pytest.mark.parametrize("name", ["dumb", "no-such-terminal", ""])
def test_a_terminal_that_cannot_do_it_is_refused(path: Path, name: str) -> None:
    """With the command that works there."""
    assert path.exists()
    with Terminal(*FAST, TERM=name) as terminal:
        assert terminal.ends() == 2
        assert "use `txnctl status`" in " ".join(terminal.picture.text().split())


def test_without_a_terminal_it_is_refused(run: Callable[..., Any], path: Path) -> None:
    """The same, and nothing on standard output."""
    assert path.exists()
    outcome = run("top")
    assert (outcome.status, outcome.out) == (2, "")
    assert "`txnctl status`" in outcome.err
