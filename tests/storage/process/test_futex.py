"""Sleeping on a word of shared memory: woken by a thread or process, or by time, or not at all where it has changed."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.process import futex
from tests.waiting import wait_for

PATIENCE_S = 30.0

WAKER = """
import mmap, os, sys
from storage.process import futex
with open(sys.argv[1], "r+b") as file:
    data = mmap.mmap(file.fileno(), 4096)
address = futex.address_of(data)
data[0:4] = (7).to_bytes(4, sys.byteorder)
while not futex.wake(address, 1):
    pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "page"
    path.write_bytes(bytes(4096))
    return path


@pytest.fixture
def page(file: Path) -> Iterator[mmap.mmap]:
    """A page of zeros that processes share."""
    with file.open("r+b") as opened:
        yield mmap.mmap(opened.fileno(), 4096)


def test_a_sleep_ends_in_time(page: mmap.mmap) -> None:
    """With False, for a sleep that nothing has ended."""
    began = time.monotonic()
    assert not futex.wait(futex.address_of(page), 0, 0.02)
    assert time.monotonic() - began >= 0.02


def test_a_word_that_has_changed_is_not_slept_on(page: mmap.mmap) -> None:
    """With True, for the caller looks again."""
    page[0:4] = b"\1\0\0\0"
    assert futex.wait(futex.address_of(page), 0, PATIENCE_S)


def test_another_process_wakes_through_a_map_of_its_own(file: Path, page: mmap.mmap) -> None:
    """The word belongs to the file, not to an address."""
    address = futex.address_of(page)
    with subprocess.Popen([sys.executable, "-c", WAKER, str(file)], cwd=os.getcwd()) as waker:
        while futex.wait(address, 0, PATIENCE_S) and page[0:4] == bytes(4):
            pass
        assert int.from_bytes(page[0:4], sys.byteorder) == 7
        if waker.poll() is None:
            waker.kill()  # The word was seen before the sleep, so that nobody was asleep to be woken.


def test_as_many_are_woken_as_are_asked_for(page: mmap.mmap) -> None:
    """Threads sleep without the lock of the interpreter."""
    address, ended = futex.address_of(page), []
    threads = [
        threading.Thread(target=lambda: ended.append(futex.wait(address, 0, PATIENCE_S))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: futex.wake(address, 1), "a thread sleeps")
    left = 2
    while left:
        left -= futex.wake(address, futex.EVERYONE)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert ended == [True, True, True]


def test_a_system_without_the_call_sleeps_for_a_moment(
    page: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As callers look again, a short sleep serves."""
    monkeypatch.setattr(futex, "_call", lambda: None)
    began = time.monotonic()
    assert not futex.wait(futex.address_of(page), 0, PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S
    assert futex.wake(futex.address_of(page), 1) == 0


def test_memory_that_is_not_mapped_is_no_reason_to_spin() -> None:
    """The kernel refuses the address; the sleep is a short one."""
    began = time.monotonic()
    assert not futex.wait(0, 0, 0.001)
    assert time.monotonic() - began >= 0.001
