"""The named anomalies with every step a process of its own: nothing that is promised lives in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage import Store
from tests.processes.child import Child, Children
from tests.processes.memory import store_in_memory
from tests.storage.table.interleavings import ANOMALIES, START, Interleaving

LEVELS = [("serializable", "-"), ("read-committed", "minimal")]


@pytest.fixture
def path() -> Iterator[str]:
    """A store with the table `accounts`, where x is 10 and y is 20. It is verified at the end."""
    with store_in_memory() as place:
        with Store.open(place) as store:
            store.create_table("accounts")
            accounts = store.table("accounts")
            accounts.import_rows((key.encode(), value.encode()) for key, value in START.items())
        yield place


def come(steps: Child, *words: str) -> str:
    """What a step came to, taken by a process of its own."""
    steps.say(" ".join(words))
    return steps.expect("came")


@pytest.mark.parametrize(("isolation", "check"), LEVELS, ids=["serializable", "read-committed"])
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=repr)
def test_every_step_comes_to_what_the_rules_say_whichever_process_takes_it(
    anomaly: Interleaving, isolation: str, check: str, path: str, children: Children
) -> None:
    """The same steps with the same outcomes as in one process."""
    is_serializable = isolation == "serializable"
    steps = children.module("table_steps", path, "accounts")
    ids = {}
    for name in anomaly.transactions:
        level = ("serializable", "-") if name in anomaly.writers else (isolation, check)
        ids[name] = come(steps, "begin", *level, "medium")
    for row in anomaly.rows:
        verb, *words = row.words
        expected = row.serializable if is_serializable else row.read_committed
        assert come(steps, verb, ids[row.txn], *words) == expected, row
    with Store.open(path, read_only=True) as store:
        rows = store.table("accounts").scan()
        end = " ".join(f"{row.key.decode()}={row.value.decode()}" for row in rows)
    assert end == (anomaly.end_serializable if is_serializable else anomaly.end_read_committed)
