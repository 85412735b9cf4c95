"""Money: an integer of hellers (hundredths of a crown), so that sums are exact.

An amount is written with exactly two decimals ("-2692.00"); fewer are accepted when read, never more.
"""

from __future__ import annotations

import re

HELLERS_MAX = 10**17 - 1
"""The largest amount: 15 digits before the point, and two behind it."""

_AMOUNT = re.compile(r"(-?)([0-9]{1,15})(?:\.([0-9]{1,2}))?")


def parse_hellers(text: str) -> int:
    """Parse a decimal amount; ValueError for other text."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount: {text!r}")
    sign, crowns, hundredths = match.groups()
    hellers = int(crowns) * 100 + int((hundredths or "0").ljust(2, "0"))
    return -hellers if sign else hellers


def format_hellers(hellers: int, *, grouped: bool = False) -> str:
    """Format an amount with two decimals; `grouped` separates thousands ("-2,692.00")."""
    crowns, hundredths = divmod(abs(hellers), 100)
    sign = "-" if hellers < 0 else ""
    return f"{sign}{crowns:,}.{hundredths:02d}" if grouped else f"{sign}{crowns}.{hundredths:02d}"
