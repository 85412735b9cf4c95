"""Steps that the tests of generated share."""

from __future__ import annotations

from pathlib import Path

from txnctl.generate.tree import pages

CHECKOUT = Path(__file__).parents[2]


PAGES = list(pages())
