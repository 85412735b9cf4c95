"""Hellers: `txnctl/pipelines/hellers.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from txnctl.pipelines.hellers import format_hellers, parse_hellers

# --- money ------------------------------------------------------------------------------------------------


@given(st.integers(min_value=-(10**17) + 1, max_value=10**17 - 1))
def test_money_survives_being_written_and_read(hellers: int) -> None:
    """Every amount comes back from its text exactly."""
    assert parse_hellers(format_hellers(hellers)) == hellers


@pytest.mark.parametrize(
    ("text", "hellers"), [("0", 0), ("-0.05", -5), ("12.3", 1230), ("-2692.00", -269200), ("007.10", 710)]
)
def test_money_is_read_in_every_way_it_is_written(text: str, hellers: int) -> None:
    """Decimals may be fewer than two; the sign counts below one crown too."""
    assert parse_hellers(text) == hellers


@pytest.mark.parametrize(
    "text", ["", "-", "1.", ".5", "1.234", "1e5", "+1", " 1", "1,000.00", "NaN", "٣.00", "1\n", "1" * 16]
)
def test_what_is_not_money_is_refused(text: str) -> None:
    """Nothing is rounded, guessed or trimmed."""
    with pytest.raises(ValueError, match="not an amount"):
        parse_hellers(text)


def test_money_for_people_has_its_thousands_apart() -> None:
    """The sign stands before the first group."""
    assert format_hellers(-123456789, grouped=True) == "-1,234,567.89"
    assert format_hellers(-5) == "-0.05"
