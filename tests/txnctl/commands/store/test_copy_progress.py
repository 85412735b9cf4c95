"""The progress of a copy: begun when its size is known, counted in KiB, ended in any case."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.store.copy_progress import CopyProgress


class Bar:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.done, self.is_over = 0, False

    def advance(self, count: int) -> None:
        self.done += count

    def __exit__(self, *exc: object) -> None:
        self.is_over = True


class Bars:
    """A context that makes one."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.bar = Bar()

    def progress(self, label: str, total: int, unit: str) -> Bar:
        self.made.append((label, total, unit))
        return self.bar


def test_no_bar_before_the_size_is_known() -> None:
    """Then one, however often it is called."""
    bars = Bars()
    with CopyProgress(bars, "copying") as progress:  # type: ignore[arg-type]
        assert bars.made == []
        progress(1000, 10 << 10)
        progress(2000, 10 << 10)
    assert bars.made == [("copying", 10, "KiB")]
    assert bars.bar.is_over


def test_bytes_add_up_to_kib() -> None:
    """No byte is lost between two steps."""
    bars = Bars()
    with CopyProgress(bars, "copying") as progress:  # type: ignore[arg-type]
        for done in range(0, (7 << 10) + 1, 700):
            progress(done, 7 << 10)
        progress(7 << 10, 7 << 10)
    assert bars.bar.done == 7


def test_an_error_ends_the_bar() -> None:
    """And comes through."""
    bars = Bars()

    def fail() -> None:
        with CopyProgress(bars, "copying") as progress:  # type: ignore[arg-type]
            progress(0, 1024)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert bars.bar.is_over
