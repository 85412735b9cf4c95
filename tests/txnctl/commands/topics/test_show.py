"""`txnctl topics show`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.topics import (
    show,
)

pytestmark = pytest.mark.usefixtures("path")


class TestShow:
    """`topics show`."""

    @pytest.mark.usefixtures("stuck")
    def test_it_names_the_subscriptions_and_the_counts(self, run: Any) -> None:
        """All declared fields, no other."""
        row = run("topics", "show", "orders", "-o", "json").json
        assert set(row) == {field.name for field in show.SHOWN}
        assert row["subscriptions"] == ["billing", "monitor"]
        assert row["createdMs"] <= row["asOfMs"]
        assert "billing, monitor" in run("topics", "show", "orders").out
