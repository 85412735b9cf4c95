"""Tests wait for events: nothing but the module of waits sleeps, and a sleep of a shell says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WAITS = TESTS / "waiting.py"
SLEEPS = re.compile(r"time\.sleep\(|from time import [^\n]*\bsleep|asyncio\.sleep\(|really_sleep\(")
BY_THEMSELVES = {
    "golden/machine.py": "the clock of the golden file stands in for the sleep of the product",
    "txnctl/cli/test_supervise.py": "a program far from the tests, which cannot import their waits",
}
"""Files with a sleep of their own, and the reason."""
SHELL_SLEEPS = re.compile(r"""\bsleep["',]* ["']?[\d.{$]+""")
HANGS, LOOKS = re.compile(r"""\bsleep["',]* ["']?60\b"""), re.compile(r"do sleep [\d.]+; done")
"""A shell that plays a program that hangs, and one that looks again and again whether something has come."""
REASON = "# Real time: "
"""Stands above any further sleep of a shell, with its reason."""


def unexplained_sleeps(text: str) -> list[str]:
    """The lines where a shell sleeps that neither hangs, nor looks for an event, nor has a reason above."""
    lines = text.splitlines()
    sleeping = (
        number for number, line in enumerate(lines) if SHELL_SLEEPS.search(LOOKS.sub("", HANGS.sub("", line)))
    )
    return [lines[number].strip() for number in sleeping if REASON not in lines[max(0, number - 1)]]


def test_nothing_in_tests_sleeps_but_the_module_of_waits() -> None:
    """A wait names its event, a stretch of real time its reason (`tests/waiting.py`); programs in strings are looked at too."""
    sleeping = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path not in (WAITS, Path(__file__)) and SLEEPS.search(path.read_text(encoding="utf-8"))
    }
    assert sleeping == set(BY_THEMSELVES)


def test_a_sleep_of_a_shell_has_a_reason() -> None:
    """Also in scripts inside strings: what a test waits for is looked for, and real time says its purpose."""
    own = Path(__file__)
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if path != own}
    found = {str(path.relative_to(TESTS)): unexplained_sleeps(text) for path, text in texts.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('script = f"echo ready; sleep 2.5; exit 3"', True),
        ('started("run", "--", "sleep", "0.1")', True),
        ('script = f"sleep {SECONDS}; echo done"', True),
        ('script = "until [ -e go ]; do sleep 0.01; done; sleep 1"', True),
        ("# Real time: a deadline has no event.\nscript = 'sleep 0.1'", False),
        ('script = "until [ -e go ]; do sleep 0.01; done"', False),
        ('command = "echo ready; exec sleep 60"', False),
        ("clock.sleep(2)", False),
    ],
)
def test_a_sleep_that_stands_for_an_event_is_found(text: str, *, is_found: bool) -> None:
    """A program that hangs and a look in a loop are none."""
    assert bool(unexplained_sleeps(text)) == is_found
