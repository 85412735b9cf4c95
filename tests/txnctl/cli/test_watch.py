"""`--watch` of four commands, at terminals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.terminal_picture import Terminal

COMMANDS = (
    ("status",),
    ("subscriptions", "lag"),
    ("transactions", "list"),
    ("tables", "stats", "balances"),
)


@pytest.fixture
def path(path: Path) -> Path:
    """Twenty topics with subscriptions; 0:1 holds back `orders`, and a key of `balances`."""
    with Store.open(path) as store:
        for name in [*[f"t{number:02}" for number in range(20)], "orders"]:
            store.create_topic(name)
            store.admin.subscriptions.create_subscription(name, "billing", initial_position=EARLIEST)
        store.create_table("balances")
    return path


@pytest.fixture
def stuck(path: Path, run: Callable[..., Any]) -> Path:
    for line in (
        "transactions begin --timeout 1h --label job=loader",
        "produce orders -m half --txn 0:1",
        "produce orders -m whole",
        *[f"transactions begin --timeout 1h --label number={number}" for number in range(12)],
    ):
        assert run(*line.split()).status == 0, line
    # By a process that ends: a living last user would go on with the transaction.
    put = [sys.executable, "-m", "txnctl", *["tables", "put", "balances", "B1", "1", "--txn", "0:1"]]
    subprocess.run(put, check=True, capture_output=True, timeout=60)
    return path


@pytest.mark.parametrize("words", COMMANDS)
def test_elsewhere_than_on_a_terminal_it_is_shown_once(
    stuck: Path, run: Callable[..., Any], words: tuple[str, ...]
) -> None:
    """A note says why; no escape sequence leaves."""
    assert stuck.exists()
    for more in ((), ("-o", "json")):
        outcome = run(*words, "--watch", *more)
        assert outcome.status == 0
        assert "\x1b" not in outcome.out
        assert outcome.out == "" or "on a terminal only" in outcome.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("status",), "  ! "),
        (("subscriptions", "lag"), "orders billing: blocked"),
        (("tables", "stats", "balances"), "0:1 detached holds 1 key"),
    ],
)
def test_a_small_terminal_keeps_the_problems(stuck: Path, words: tuple[str, ...], problem: str) -> None:
    """Above what else fits; nothing is wider than the terminal; Ctrl-C ends it with 130 and the terminal as before."""
    assert stuck.exists()
    with Terminal(*words, "--watch", "100ms", columns=40, rows=6) as terminal:
        lines = terminal.until(lambda picture: problem in "\n".join(picture.lines()[:3])).lines()
        assert len(lines) == 6
        assert lines[5] == "", "the cursor stands on the last line"
        terminal.type("\x03")
        assert terminal.ends() == 130
        assert terminal.modes_are_as_before()
        assert "Traceback" not in terminal.picture.text()


def test_a_cut_status_has_its_verdict_first_and_each_problem_once(stuck: Path) -> None:
    """The rest of the report follows without the problems."""
    assert stuck.exists()
    with Terminal("status", "--watch", "100ms", columns=80, rows=12) as terminal:
        lines = terminal.until(lambda picture: "and " in picture.text()).lines()
        terminal.type("q")
        assert terminal.ends() == 0
    assert "finding" in lines[0]
    assert lines[1].startswith("  ! ")
    problems = [line for line in lines if line.startswith("  ! ")]
    assert len(problems) == len({*problems}) > 0
    assert any(line.startswith("  space  ") for line in lines)


@pytest.mark.parametrize("words", COMMANDS)
def test_q_leaves(stuck: Path, words: tuple[str, ...]) -> None:
    """With 0, at once, and the terminal as before; other keys are neither shown nor obeyed."""
    assert stuck.exists()
    with Terminal(*words, "--watch", "1h") as terminal:
        terminal.until(lambda picture: picture.text().strip() != "")
        terminal.type("x")
        terminal.type("q")
        assert terminal.ends() == 0
        assert terminal.modes_are_as_before()
        assert "x\n" not in terminal.picture.text()


def test_it_is_drawn_over_without_a_blank_screen_between(stuck: Path, run: Callable[..., Any]) -> None:
    """A change shows, and the screen was cleared once, before the first one."""
    with Terminal("transactions", "list", "--watch", "100ms", rows=40) as terminal:
        terminal.shows("0:1", "job=loader")
        run("transactions", "abort", "0:1", "--yes")
        assert terminal.until(lambda picture: "job=loader" not in picture.text()).clears == 1
        terminal.size(60, 10)
        terminal.shows("more lines")
        assert stuck.exists()
