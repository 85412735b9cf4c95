"""Steps that the tests of subscriptions share."""

from __future__ import annotations

from typing import Any


def lag(run: Any, subscription: str = "billing") -> dict[str, Any]:
    """Its row of `subscriptions lag`."""
    row: dict[str, Any] = run("subscriptions", "lag", "orders", subscription, "-o", "json").json
    return row
