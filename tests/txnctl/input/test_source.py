"""Source: `txnctl/input/source.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.produce.produce_steps import values

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestLines:
    """The default input."""

    def test_a_dash_is_standard_input(self, run: Any, path: Path) -> None:
        """As everywhere."""
        run("produce", "orders", "-", stdin=b"a\n")
        assert values(path) == [b"a"]
