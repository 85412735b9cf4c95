"""Tests wait for events: nothing but the module of waits sleeps."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
WAITS = TESTS / "waiting.py"
SLEEPS = re.compile(r"time\.sleep\(|from time import [^\n]*\bsleep|asyncio\.sleep\(|really_sleep\(")
BY_THEMSELVES = {
    "golden/machine.py": "the clock of the golden file stands in for the sleep of the product",
    "txnctl/cli/test_supervise.py": "a program far from the tests, which cannot import their waits",
}
"""Files with a sleep of their own, and the reason."""


def test_nothing_in_tests_sleeps_but_the_module_of_waits() -> None:
    """A wait names its event, a stretch of real time its reason (`tests/waiting.py`); programs in strings are looked at too."""
    sleeping = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path not in (WAITS, Path(__file__)) and SLEEPS.search(path.read_text(encoding="utf-8"))
    }
    assert sleeping == set(BY_THEMSELVES)
