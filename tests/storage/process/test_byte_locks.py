"""Byte locks: exclusive and shared, and dropped when the file is closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import PlatformUnsupported
from storage.process import byte_locks
from storage.process.byte_locks import ByteLocks


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[ByteLocks, ByteLocks]]:
    """Two descriptors of one file, which the kernel keeps apart as it does two processes."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    first, second = ByteLocks(str(path), writable=True), ByteLocks(str(path), writable=True)
    yield first, second
    first.close()
    second.close()


def test_an_exclusive_lock_keeps_both_kinds_out(two: tuple[ByteLocks, ByteLocks]) -> None:
    """Until it is released; a byte beside it is free."""
    first, second = two
    assert first.take_exclusive(7)
    assert not second.take_exclusive(7)
    assert not second.take_shared(7)
    assert second.take_exclusive(8)
    first.release(7)
    assert second.take_exclusive(7)


def test_a_shared_lock_keeps_only_exclusive_ones_out(two: tuple[ByteLocks, ByteLocks]) -> None:
    """And becomes exclusive when the other sharer has gone."""
    first, second = two
    assert first.take_shared(1)
    assert second.take_shared(1)
    assert not first.take_exclusive(1)
    second.release(1)
    assert first.take_exclusive(1)


def test_a_lock_is_seen_by_others_alone(two: tuple[ByteLocks, ByteLocks]) -> None:
    """The kernel reports no conflict of a descriptor with its own locks."""
    first, second = two
    first.take_exclusive(3)
    assert second.is_taken(3)
    assert not first.is_taken(3)
    assert not second.is_taken(4)


def test_closing_drops_every_lock(two: tuple[ByteLocks, ByteLocks]) -> None:
    """Closing again does nothing."""
    first, second = two
    first.take_exclusive(0)
    first.close()
    first.close()
    assert first.descriptor == -1
    assert second.take_exclusive(0)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """The lock file of somebody else's choice must not be opened."""
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link"):
        ByteLocks(str(tmp_path / "link"), writable=True)


def test_an_unknown_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of another kind would not prove what these prove."""
    byte_locks.check_platform()

    class Plan9:
        sysname = "Plan 9"

    monkeypatch.setattr(byte_locks.os, "uname", Plan9)
    with pytest.raises(PlatformUnsupported, match="Plan 9"):
        byte_locks.check_platform()
