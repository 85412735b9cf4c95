"""Spans of time in messages: `storage/values/durations.py`."""

from __future__ import annotations

import pytest

from storage.values.durations import duration_text, given_duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0"), (1, "1ms"), (1000, "1s"), (90_000, "90s"), (5_400_000, "90m"), (86_400_000, "1d")],
)
def test_a_duration_is_exact_in_the_largest_unit(milliseconds: int, text: str) -> None:
    """As an option takes it."""
    assert duration_text(milliseconds) == text
    assert given_duration(milliseconds) == text


@pytest.mark.parametrize("value", ["soon", None, True, 1.5], ids=repr)
def test_no_number_of_milliseconds_is_shown_as_it_is(value: object) -> None:
    """Whatever a program gave."""
    assert given_duration(value) == repr(value)
