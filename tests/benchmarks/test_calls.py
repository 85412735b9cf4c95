"""Calls of Python an operation (`benchmarks/calls.py`): they do not depend on the machine, so a test may hold them."""

from __future__ import annotations

import pytest

from benchmarks import calls
from benchmarks.contract import Sense, Target
from benchmarks.report import Comparison, table_lines

LIMITS = {
    "send": 80,
    "transaction of 3 x 10 messages": 291,
    "begin + abort": 65,
    "transfer": 375,
    "put": 224,
    "scan, per row": 5,
    "receive + ack by 100 of single messages, per message": 36,
    "receive + ack by 1,000 of single messages, per message": 34,
    "receive + ack by 1,000 of batches of 1,000, per message": 1,
}
"""The calls of each operation at most: what it takes today, and a few more."""


def test_each_operation_has_a_limit() -> None:
    """A new operation is held too."""
    assert LIMITS.keys() == calls.OPERATIONS.keys()


@pytest.mark.parametrize("name", list(LIMITS))
def test_operation_takes_no_more_calls(name: str) -> None:
    """`python -m benchmarks.calls NAME --functions 40` shows where the calls are."""
    assert calls.count(name).calls <= LIMITS[name]


def test_count_repeats() -> None:
    """Two counts in stores of their own are equal."""
    assert calls.count("send") == calls.count("send")


def test_calls_are_printed_by_operation_and_function(capsys: pytest.CaptureFixture[str]) -> None:
    """The requested operations alone, each followed by its functions."""
    assert calls.main(["send", "put", "--functions", "3"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == list(calls.HEADINGS)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["send", "put"]
    assert len(lines) == 2 * (1 + 3)


def test_unknown_operation_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped operation is named beside those that exist."""
    assert calls.main(["sent"]) == 2
    assert "no operation sent; there are send, " in capsys.readouterr().err


def test_table_of_times_has_the_calls() -> None:
    """A comparison of a counted operation shows its calls; any other shows none."""
    sends = Comparison(Target("P1", "what", "beside", Sense.SPEED, 0.5, 0.8), ours=2.0, peer=1.0)
    other = Comparison(Target("D1", "what", "payload", Sense.AMOUNT, 1.5, None), ours=1.2)
    _heading, _rule, first, second = table_lines(calls.with_calls([sends, other]))
    assert float(first.split("|")[-2]) == pytest.approx(calls.count("send").calls, abs=0.5)
    assert second.split("|")[-2].strip() == ""
