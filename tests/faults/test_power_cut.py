"""Power cuts in their short form; `python -m tests.faults.power_cut STATES SEED` is the long one."""

from __future__ import annotations

import os
import random

import pytest

from tests.faults import power_cut
from tests.faults.power_disk import Choice, Disk
from tests.faults.power_record import Event

pytestmark = pytest.mark.needs_program("cc")

ROOT = "/disk"
FILE = os.path.join(ROOT, "f")
MADE = Event("O", 2, 0, os.O_CREAT, (FILE,))
TOP = Event("O", 1, 0, 0, (ROOT,))
PLAIN = Event("W", 2, 0, 0, data=b"a" * 2048)


def after(*events: Event, **options: bool) -> Disk:
    """A disk to which these things have happened."""
    disk = Disk(ROOT, **options)
    for event in events:
        for _ in disk.take(event):
            pass
    return disk


def states(disk: Disk, kind: str) -> set[bytes | None]:
    """What a cut may leave of the file; None for no file."""
    return {disk.state(Choice(kind, random.Random(seed))).get("f") for seed in range(60)}


class TestDisk:
    """The model of a disk that the states are taken from."""

    def test_a_write_and_a_name_are_uncertain_until_they_are_flushed(self) -> None:
        """Only the fsync of the file makes its bytes certain, only that of the directory its name."""
        assert states(after(TOP, MADE, PLAIN), "none") == {None}
        assert states(after(TOP, MADE, PLAIN, Event("S", 2, 0, 0)), "none") == {None}
        assert states(after(TOP, MADE, PLAIN, Event("S", 1, 0, 0)), "none") == {b""}
        flushed = after(TOP, MADE, PLAIN, Event("S", 2, 0, 0), Event("S", 1, 0, 0))
        assert states(flushed, "none") == states(flushed, "sectors") == {PLAIN.data}

    def test_a_write_may_be_torn_at_each_sector(self) -> None:
        """Any part of the four sectors may be there."""
        disk = after(TOP, MADE, Event("S", 1, 0, 0), PLAIN)
        assert len(states(disk, "sectors")) >= 12
        assert {len(each or b"") % 512 for each in states(disk, "sectors")} == {0}

    def test_a_write_that_waits_for_the_disk_flushes_itself_and_nothing_else(self) -> None:
        """O_DSYNC is a flush of the call's own bytes."""
        waiting = Event("W", 2, 4096, 1, data=b"meta")
        disk = after(TOP, MADE, Event("S", 1, 0, 0), PLAIN, waiting)
        assert states(disk, "none") == {bytes(4096) + b"meta"}

    def test_a_disk_that_ignores_flushes_may_lose_all(self) -> None:
        """The control of the harness."""
        disk = after(TOP, MADE, PLAIN, Event("S", 2, 0, 0), Event("S", 1, 0, 0), keeps_flushes=False)
        assert states(disk, "none") == {None}


@pytest.fixture(scope="module")
def workload(module_memory: str) -> power_cut.Workload:
    return power_cut.record(os.path.join(module_memory, "recorded"), 1)


def test_a_power_cut_loses_nothing_acknowledged_and_halves_nothing(
    workload: power_cut.Workload, memory: str
) -> None:
    """Each state opens, is verified, and holds a commit not older than the last acknowledged one."""
    told: list[str] = []
    states = power_cut.cuts(workload, 4, seed=1, share=0.008)
    figures = power_cut.run(workload, states, memory, tell=told.append)
    assert told == []
    assert figures.states >= 50 and len(figures.kinds) >= 5 and figures.sent


def test_the_harness_sees_the_loss_where_flushes_are_ignored(
    workload: power_cut.Workload, memory: str
) -> None:
    """The control: most states are not sound, and acknowledged messages are lost."""
    states = power_cut.cuts(workload, 2, seed=1, share=0.008, keeps_flushes=False)
    figures = power_cut.run(workload, states, memory)
    assert sum(figures.failures.values()) > figures.states / 4 and figures.lost
