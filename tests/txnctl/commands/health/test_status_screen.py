"""Status screen: `txnctl/commands/health/status_screen.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store


@pytest.mark.usefixtures("stuck")
def test_what_is_wrong_comes_first(run: Callable[..., Any]) -> None:
    """Then the next command, then the parts of the store."""
    lines = run("status").out.splitlines()
    assert " ".join(lines[0].split()[:4]) == "bank.store WARNING: 2 findings"
    assert lines[2] == "  ! 1 open transaction is late: 0:2"
    assert lines[3].endswith(
        "3 committed messages of orders wait behind transaction 0:1; billing cannot read on; 1 key of table balances "
        "(B1) is held by it"
    )
    assert lines[5] == "Next: txnctl doctor"
    squeezed = [" ".join(line.split()) for line in lines]
    assert "orders 5 3 0:1 2 1 0 0" in squeezed
    assert "balances 0 0 1 0:1" in squeezed
    assert any(line.startswith("transactions 2 open; 1 late; the oldest 0:1 for 1h00m") for line in squeezed)


def test_it_fits_one_screen_whatever_there_is(run: Callable[..., Any], path: Path) -> None:
    """Of many topics those with something to tell come first, and it is said where the others are."""
    with Store.open(path) as store:
        for number in range(20):
            store.create_topic(f"topic-{number}")
        store.create_producer("topic-19").send(b"1", txn=store.begin_transaction())
    lines = run("status").out.splitlines()
    assert len(lines) <= 40
    first = next(index for index, line in enumerate(lines) if line.split()[:1] == ["TOPIC"])
    assert lines[first + 1].split()[0] == "topic-19"
    assert "  and 9 more: txnctl topics list" in lines
