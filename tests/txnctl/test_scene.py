"""A newcomer at three in the morning: all that is stuck is found and mended by what the tool prints alone.

The newcomer begins with `txnctl`, and then types only commands that were shown, on a terminal of 80 columns.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.txnctl.scene import KINDS, Scene
from tests.txnctl.terminal_runs import Terminals

pytestmark = pytest.mark.kills

_REASON = "found by doctor"


class Newcomer:
    """Types what is shown, and remembers each command."""

    def __init__(self, terminals: Terminals, columns: int) -> None:
        self._terminals, self._columns = terminals, columns
        self.typed: list[str] = []
        self.seen = ""

    def types(self, command: str) -> str:
        """Run a command as shown, a placeholder filled in; no line is wider than the terminal."""
        command = command.replace('"..."', shlex.quote(_REASON))
        self.typed.append(command)
        program, *words = shlex.split(command)
        if program != "txnctl":
            done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stderr)
            return done.stdout
        shown = self._terminals.run(self._columns, *words)
        assert max(map(len, shown.splitlines()), default=0) <= self._columns, shown
        assert "txnctl: error" not in shown, (command, shown)
        self.seen += shown
        return shown

    def runs(self, command: str) -> str:
        """Run a command that shows JSON, or a path: such lines have any length."""
        return self._terminals.run(self._columns, *shlex.split(command)[1:])

    def findings(self) -> list[tuple[str, str]]:
        """What doctor finds, and the command that it shows for each finding."""
        blocks = self.types("txnctl doctor").split("\n\n")
        found = [(joined(block), shown_next(block)) for block in blocks if block.startswith(("! ", "i "))]
        return [(text, command) for text, command in found if text.startswith("! ")]


def joined(text: str) -> str:
    """Wrapped prose in one line."""
    return re.sub(r"\s+", " ", text.replace("\\\n", "")).strip()


def shown_next(text: str) -> str:
    """The last command after `Next:` or `Run:`, its lines joined; "" without one."""
    found = re.findall(r"^ *(?:Next|Run):\s+((?:.*\\\n)*.*)$", text, re.MULTILINE)
    return joined(found[-1]) if found else ""


def mend(newcomer: Newcomer, command: str) -> None:
    """Follow the commands from one on, each the last one that the one before it shows."""
    for _ in range(12):
        if not command:
            return
        command = shown_next(newcomer.types(command))
    raise AssertionError(f"going round in circles: {newcomer.typed}")


class Stage(NamedTuple):
    """The ways of being stuck, and the columns of the terminal."""

    kinds: Sequence[str]
    columns: int
    is_spread: bool = False

    def __str__(self) -> str:
        return f"{'-'.join(self.kinds)}{'-spread' if self.is_spread else ''}-{self.columns}"


ALONE = [Stage([kind], columns) for kind, columns in zip(KINDS, (80, 60, 80, 60), strict=True)]


@pytest.fixture
def stage() -> Stage:
    """A stopped owner, unless a test names its stages."""
    return Stage(["stopped"], 80)


@pytest.fixture
def scene(stage: Stage, tmp_path: Path) -> Iterator[Scene]:
    """The store and its processes; sound when the test is over."""
    made = Scene(tmp_path / "store", stage.kinds, spread=stage.is_spread)
    yield made
    made.end()


@pytest.fixture
def newcomer(stage: Stage, scene: Scene, tmp_path: Path) -> Iterator[Newcomer]:
    """At the terminal of the stage."""
    terminals = Terminals({"HOME": str(tmp_path), "TXNCTL_STORE": str(scene.path)})
    yield Newcomer(terminals, stage.columns)
    terminals.close()


@pytest.mark.slow
@pytest.mark.parametrize("stage", [*ALONE, Stage(KINDS, 80), Stage(KINDS, 60, is_spread=True)], ids=str)
def test_a_newcomer_mends_all_by_what_is_printed(scene: Scene, newcomer: Newcomer) -> None:
    """Help names doctor; every finding names a command; the last finding goes within a few rounds of doctor."""
    assert "$ txnctl doctor" in newcomer.types("txnctl")
    assert "Next: txnctl doctor" in newcomer.types("txnctl status")
    first = [text for text, _ in newcomer.findings()]
    assert named(first, scene) == set(scene.processes)
    for _ in range(3 * len(scene.processes)):
        found = newcomer.findings()
        if not found:
            break
        mend(newcomer, found[0][1])
    assert newcomer.findings() == []
    for kind, process in scene.processes.items():
        if kind == "dead":
            continue
        assert process.poll() is None, "no step ends a process"
        assert scene.goes_on(kind) == ("consumer-evicted" if kind == "quiet" else "transaction-not-open")
    assert len(newcomer.typed) < 40


@pytest.mark.parametrize("stage", [Stage(["quiet"], 80)], ids=str)
def test_every_screen_tells_of_a_consumer_that_acknowledges_nothing(
    scene: Scene, newcomer: Newcomer, tmp_path: Path
) -> None:
    """Screens for people, measures, JSON, and the page; after the eviction none of them does."""
    ((finding, evict),) = newcomer.findings()
    (look,) = re.findall(r"`(ps [^`]*)`", finding)
    assert str(scene.processes["quiet"].pid) in newcomer.types(look)
    page = tmp_path / "page.html"
    screens = ("txnctl status", "txnctl doctor", "txnctl transactions blocked", "txnctl subscriptions lag")
    sentence = "has acknowledged none for 3m"
    for screen in screens:
        assert sentence in joined(newcomer.types(screen)), screen
    assert sentence in newcomer.runs("txnctl doctor -o json")
    newcomer.runs(f"txnctl report --html {page}")
    assert sentence in page.read_text()
    assert "quiet 3m" in newcomer.types("txnctl check")
    assert "quiet 3m" not in newcomer.types("txnctl check --warn quiet=5m")
    mend(newcomer, evict)
    for screen in screens:
        assert sentence not in joined(newcomer.types(screen))


@pytest.mark.parametrize("way", ["the reason of doctor", "a choice of explain"])
def test_a_stopped_owner_can_be_left_stopped(scene: Scene, newcomer: Newcomer, way: str) -> None:
    """The other way out is an abort: shown in the reason of the finding, and among the choices of explain."""
    ((text, _),) = newcomer.findings()
    (abort,) = re.findall(r"`(txnctl transactions abort [^`]*)`", text)
    if way == "a choice of explain":
        explain = f"txnctl transactions explain {abort.split()[3]}"
        choices = joined(newcomer.types(explain)).partition("Advice:")[2]
        named = re.findall(r"`([^`]*)`", choices)
        assert [command.split()[:3][-1] for command in named] == [
            str(scene.processes["stopped"].pid), str(scene.processes["stopped"].pid), "wait", "abort"
        ]  # fmt: skip
        newcomer.types(named[1])
        abort = named[-1]
    mend(newcomer, abort)
    assert newcomer.findings() == []
    os.kill(scene.processes["stopped"].pid, signal.SIGCONT)
    assert scene.goes_on("stopped") == "transaction-not-open"


def named(findings: Sequence[str], scene: Scene) -> set[str]:
    """The ways of being stuck that the findings tell of."""
    text = " ".join(findings)
    words = {
        "dead": "late: 0:", "quiet": "has acknowledged none for",
        "stopped": f"process {getattr(scene.processes.get('stopped'), 'pid', 0)}, which is stopped",
    }  # fmt: skip
    seen = {kind for kind, part in words.items() if part in text}
    return seen | ({"idle"} if "behind transaction" in text or "next: 4" in text else set())
