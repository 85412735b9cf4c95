"""Steps that the tests of demo share."""

from __future__ import annotations

from typing import Any

SMALL = ("--accounts", "6", "--seed", "4")


def failed(facts: dict[str, Any]) -> list[Any]:
    """The checks that did not hold."""
    return [check for check in facts["checks"] if not check["ok"]]
