"""ByteLeases: a process is alive as long as it holds the byte of its lease, whatever its pid says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.process import liveness
from storage.process.byte_locks import ByteLocks
from storage.process.clock import ManualClock
from storage.process.identity import ProcessIdentity, this_process
from storage.process.liveness import ByteLeases


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[ByteLocks]]:
    """The lock file, opened three times."""
    (tmp_path / "locks").write_bytes(b"")
    opened = [ByteLocks(str(tmp_path / "locks"), writable=True) for _ in range(3)]
    yield opened
    for each in opened:
        each.close()


def test_a_lease_is_held_by_one(files: list[ByteLocks]) -> None:
    """Two handles of one process do not hold it twice either."""
    mine, theirs = ByteLeases(files[0]), ByteLeases(files[1])
    assert mine.hold(1)
    assert not mine.hold(1)
    assert not theirs.hold(1)
    assert theirs.hold(2)
    assert mine.is_held(1)
    assert mine.is_held(2)
    assert not mine.is_held(3)


def test_a_lease_ends_when_it_is_dropped_or_its_process_ends(files: list[ByteLocks]) -> None:
    """The kernel does the second, when the file is closed."""
    mine, theirs, looker = map(ByteLeases, files)
    mine.hold(1)
    theirs.hold(2)
    mine.drop(1)
    files[1].close()
    assert not looker.is_held(1)
    assert not looker.is_held(2)


BOOT = b"manual-boot-0001"
HERE = os.uname().nodename


@pytest.mark.parametrize(
    ("host", "boot_id", "state"),
    [
        (HERE, BOOT, "dead"),
        (HERE, b"an-earlier-boot!", "rebooted"),
        ("elsewhere", b"an-earlier-boot!", "unknown-host"),
        ("elsewhere", BOOT, "dead"),
    ],
)
def test_a_free_lease_of_this_boot_proves_death(
    files: list[ByteLocks], host: str, boot_id: bytes, state: str
) -> None:
    """Of another boot, the host tells whether it was this machine; the pid, which lives, tells nothing."""
    holder = ProcessIdentity(host, boot_id, os.getpid(), 1, "anna", "test")
    assert ByteLeases(files[0]).state_of(1, holder, BOOT) == state


def test_a_held_lease_proves_life(files: list[ByteLocks], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a process whose record names another boot; a stopped one is told apart."""
    holder = this_process(ManualClock(), "test")
    leases = ByteLeases(files[0])
    leases.hold(5)
    assert ByteLeases(files[1]).state_of(5, holder, b"x" * 16) == "alive"
    monkeypatch.setattr(liveness, "is_stopped", lambda pid, started: (pid, started) == holder[2:4])
    assert leases.state_of(5, holder, BOOT) == "stopped"
