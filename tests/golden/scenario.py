"""All command lines of the golden file, in the order in which they run."""

from __future__ import annotations

from tests.golden.machine import commands_with_formats
from tests.golden.parts import (
    bank,
    changes,
    copies,
    errors,
    producers,
    stuck,
    subscriptions,
    tables,
    transactions,
)
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Run every part."""
    for part in (bank, transactions, subscriptions, producers, tables, stuck, errors, copies, changes):
        part.play(teller)
    for line, formats in commands_with_formats().items():
        if "help" in formats:
            teller.fields(line)
