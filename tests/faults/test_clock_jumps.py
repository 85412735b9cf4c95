"""Clock jumps: deadlines, leases and delays go by the boot clock, ages by a wall clock that agrees with it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.traps import compiled
from tests.processes.child import ROOT

pytestmark = pytest.mark.needs_program("cc")

HOUR, DAY = 3_600, 86_400


@pytest.mark.parametrize(
    ("wall_s", "boot_s"),
    [
        (0, 0), (3 * DAY, 0), (400 * DAY, 0), (-3 * DAY, 0), (-400 * DAY, 0),
        (3 * DAY, 3 * DAY), (400 * DAY, 400 * DAY), (0, 3 * DAY), (-3 * DAY, 3 * DAY), (0, -HOUR), (3 * DAY, -HOUR),
    ],
)  # fmt: skip
def test_a_clock_that_jumps_ends_nothing_early_and_loses_nothing(
    memory: str, wall_s: int, boot_s: int
) -> None:
    """The wall by years, the boot clock by days and back: asserted by the process whose clocks jump."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.clock_steps", memory, str(wall_s), str(boot_s)],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": compiled("clocks")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout) == (0, "held\n"), ended.stderr
