"""Reading a store in a forked process, for `doctor` and `check`."""

from __future__ import annotations

import os
import signal

import pytest

from storage.errors import CorruptStore
from txnctl.commands.health.survey import _read_apart


def test_a_result_comes_back_pickled() -> None:
    """From a process of its own."""
    data = _read_apart("/s", lambda: [os.getpid()])
    assert data
    assert str(os.getpid()).encode() not in data


def test_an_error_is_left_to_the_parent() -> None:
    """The parent reads again, and raises the error itself."""

    def fail() -> object:
        raise LookupError

    assert _read_apart("/s", fail) == b""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT])
def test_a_death_by_a_signal_of_damage_is_damage(number: signal.Signals) -> None:
    """It names the signal, and the check that names the damage."""
    with pytest.raises(CorruptStore, match=f"/s is damaged: .* {number.name}") as raised:
        _read_apart("/s", lambda: os.kill(os.getpid(), number))
    assert "verify" in str(raised.value.hint)


def test_a_reader_that_was_killed_is_no_damage() -> None:
    """The kernel kills for want of memory, an operator by mistake."""
    assert _read_apart("/s", lambda: os.kill(os.getpid(), signal.SIGKILL)) == b""
