"""Whole numbers on the command line: `txnctl/cli/whole_number.py`."""

from __future__ import annotations

import click
import pytest

from txnctl.cli.whole_number import WholeNumber

OPTION = click.Option(["-n", "--count"], type=WholeNumber(1))
CONTEXT = click.Context(click.Command("c"))


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("007", 7), ("1795435752120551038", 1795435752120551038)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    """As large as a version of a row, and larger than a float holds."""
    assert WholeNumber(1).convert(text, OPTION, CONTEXT) == number


@pytest.mark.parametrize(
    ("text", "fault"),
    [("x", "is not a whole number"), ("", "is not a whole number"), ("1.5", "is not a whole number"),
     ("1_000", "is not a whole number"), ("\u0663", "is not a whole number"), ("--1", "is not a whole number"),
     ("0", "is too small"), ("-3", "is too small"), ("9" * 5000, "is too large"), (str(1 << 63), "is too large")],
)  # fmt: skip
def test_the_fault_and_the_bounds_are_said(text: str, fault: str) -> None:
    """In words, after the name of the option."""
    with pytest.raises(click.UsageError) as caught:
        WholeNumber(1).convert(text, OPTION, CONTEXT)
    assert caught.value.message == f"-n / --count: {text[:80]!r} {fault} (1 or more)"
    with pytest.raises(click.UsageError) as caught:
        WholeNumber(1, 9000).convert("9001", None, None)
    assert caught.value.message == "'9001' is too large (1 to 9,000)"
