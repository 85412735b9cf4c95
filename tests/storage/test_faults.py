"""Fault points: nothing happens at any until a test arms one, and only those in the list can be armed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import faults

ROOT = Path(faults.__file__).parents[1]


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    """No test leaves a trap for the next."""
    yield
    faults.disarm()


def test_an_armed_point_acts_each_time_it_is_reached() -> None:
    """Others do not; and nothing does any more when all are disarmed."""
    reached: list[str] = []
    faults.arm(faults.POINTS[0], lambda: reached.append("first"))
    for name in faults.POINTS[:2]:
        faults.reach(name)
        faults.reach(name)
    faults.disarm()
    faults.reach(faults.POINTS[0])
    assert reached == ["first", "first"]


def test_an_unknown_point_cannot_be_armed() -> None:
    """Else a test would wait for what never comes."""
    with pytest.raises(ValueError, match="no such fault point"):
        faults.arm("nowhere", lambda: None)


def test_every_point_of_the_list_is_in_the_code_and_no_other() -> None:
    """So that the list cannot rot."""
    source = "".join(path.read_text() for path in (ROOT / "storage").rglob("*.py"))
    source += "".join(path.read_text() for path in (ROOT / "txnctl").rglob("*.py"))
    assert set(re.findall(r'faults\.reach\("([^"]+)"\)', source)) == set(faults.POINTS)
