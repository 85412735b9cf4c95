"""The named anomalies (G0, G1a, G1b, G1c, OTV, PMP, P4, G-single, G2-item, G2) at each level: invariant 12.

The interleavings are in `interleavings`; `tests/processes/test_table_anomalies.py` runs the same ones with every step
a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest

from storage import CheckMode, Store
from storage.process.clock import ManualClock
from tests.processes.memory import directory_in_memory
from tests.storage.conftest import check_whole
from tests.storage.table.history import History
from tests.storage.table.interleaved import KINDS, Interleaved
from tests.storage.table.interleavings import ANOMALIES, Interleaving


@pytest.fixture
def path(clock: ManualClock) -> Iterator[str]:
    """Where an empty store lies, in memory: there are thousands of commits to come. It is verified at the end."""
    with directory_in_memory() as directory:
        place = f"{directory}/store"
        Store.create(place, clock=clock)
        yield place
        check_whole(place, clock)


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=repr)
def test_at_serializable_every_step_comes_to_what_the_rules_say(
    anomaly: Interleaving, path: str, clock: ManualClock
) -> None:
    """Who is refused, why, and what everybody sees; the anomaly does not happen."""
    running = Interleaved(path, clock, "accounts")
    for name in anomaly.transactions:
        running.begin(name, "detached")
    assert running.run(anomaly.rows) == [row.serializable for row in anomaly.rows]
    assert running.end() == anomaly.end_serializable
    assert History(running.recorded()).check() == []
    running.close()


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=repr)
def test_at_read_committed_every_step_comes_to_what_the_rules_say(
    anomaly: Interleaving, path: str, clock: ManualClock
) -> None:
    """In each check mode: nothing uncommitted or half-committed is seen, nobody is aborted, writing is refused."""
    for number, (kind, check) in enumerate(product(["detached", "attached"], CheckMode)):
        running = Interleaved(path, clock, f"t{number}")
        for name in anomaly.transactions:
            if name in anomaly.writers:
                running.begin(name, "detached")
            else:
                running.begin(name, kind, isolation="read-committed", check=check)
        assert running.run(anomaly.rows) == [row.read_committed for row in anomaly.rows], (kind, check)
        assert running.end() == anomaly.end_read_committed
        running.close()


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=repr)
def test_no_anomaly_whoever_began_first_and_whatever_its_kind(
    anomaly: Interleaving, path: str, clock: ManualClock
) -> None:
    """All orders of beginning, all kinds mixed; and the one that began last commits if it tries."""
    for number, (order, kinds) in enumerate(
        product(permutations(anomaly.transactions), product(KINDS, repeat=2))
    ):
        running = Interleaved(path, clock, f"t{number}")
        for place, name in enumerate(order):
            running.begin(name, kinds[place % 2])
        outcomes = running.run(anomaly.rows)
        assert History(running.recorded()).check() == [], (order, kinds, outcomes)
        for row, outcome in zip(anomaly.rows, outcomes, strict=True):
            if row.txn == order[-1]:
                assert not outcome.startswith("!"), f"{order[-1]} began last and is refused: {row}"
        running.close()


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=repr)
def test_no_anomaly_whichever_has_the_higher_priority(
    anomaly: Interleaving, path: str, clock: ManualClock
) -> None:
    """All orders of beginning; the highest loses no push."""
    for number, (order, highest) in enumerate(
        product(permutations(anomaly.transactions), anomaly.transactions)
    ):
        running = Interleaved(path, clock, f"t{number}")
        for name in order:
            running.begin(name, "detached", priority="highest" if name == highest else "low")
        outcomes = running.run(anomaly.rows)
        assert History(running.recorded()).check() == [], (order, highest, outcomes)
        for row, outcome in zip(anomaly.rows, outcomes, strict=True):
            assert row.txn != highest or outcome != "!lost-conflict"
        running.close()
