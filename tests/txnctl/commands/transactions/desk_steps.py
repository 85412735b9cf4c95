"""Steps that the tests of desk share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from storage import Store
from txnctl.commands.transactions.explain import EXPLAINED
from txnctl.output.field import undeclared

Run = Callable[..., Any]


def behind(path: Path) -> None:
    """Send a message that waits behind what is open."""
    with Store.open(path) as store:
        store.create_producer("orders").send(b"whole")


def explained(run: Run, txn: str = "0:1") -> dict[str, Any]:
    """`transactions explain` as JSON; its fields are declared."""
    row: dict[str, Any] = run("transactions", "explain", txn, "-o", "json").json
    assert not undeclared(row, EXPLAINED)
    return row


def squeezed(text: str) -> list[str]:
    """The lines with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]
