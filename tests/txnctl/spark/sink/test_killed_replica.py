"""The changes of one table, upserted into another by a query whose driver is killed: every state of it is the source's."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from storage import Store, Table
from tests.processes.child import Child
from tests.row_json import row_json
from tests.txnctl.spark.replica import CHANGES_PER_BATCH
from tests.waiting import wait_for
from txnctl.spark.sink import progress

PATIENCE_S = 240.0
TOTAL = 10_000
KILLS_AT = (1, 3)
"""Batches that are stored when the driver is killed."""


def move_money(store: Store, table: Table, count: int, chance: random.Random) -> None:
    """Transfers among up to ten accounts, of which some are opened and closed; their sum never changes."""
    for _ in range(count):
        with store.transaction() as txn:
            balances = {row.key: int(row.value) for row in table.scan(txn=txn)} or {b"A0": TOTAL}
            giver, taker = chance.choice(sorted(balances)), b"A%d" % chance.randrange(10)
            amount = balances[giver] if chance.random() < 0.2 else balances[giver] // 2
            balances[giver] -= amount
            balances[taker] = balances.get(taker, 0) + amount
            for key in {giver, taker}:
                if balances[key]:
                    table.put(key, b"%d" % balances[key], txn=txn)
                else:
                    table.delete(key, txn=txn)


def batches_stored(store: Store) -> int:
    return (
        max(
            (progress.BatchRecord.of_json(row.value).batch_id for row in store.table(progress.SINKS).scan()),
            default=-1,
        )
        + 1
    )


@pytest.mark.slow
@pytest.mark.needs_program("java")
def test_a_replica_has_the_states_of_its_source(store: Store, tmp_path: Path) -> None:
    """SIGKILL of driver and JVM after some batches, twice, while the source goes on changing.

    Each batch is one version of the replica, and equals the source at some version: no transaction was cut, repeated,
    left out, or stored in part.
    """
    store.create_table("source")
    store.create_table("replica")
    progress.make_table(store)
    source, replica, chance = store.table("source"), store.table("replica"), random.Random(7)
    move_money(store, source, 80, chance)
    command = ["-m", "tests.txnctl.spark.replica", store.path, str(tmp_path / "checkpoint")]
    for kill_at in KILLS_AT:
        child = Child(command)
        try:
            jvm = int(child.expect("jvm", PATIENCE_S))
            wait_for(
                lambda child=child, kill_at=kill_at: not child.is_running or batches_stored(store) >= kill_at,
                f"{kill_at} batches are stored",
                PATIENCE_S,
            )
            assert child.is_running, child.complaint()
            os.kill(jvm, signal.SIGKILL)
            child.kill()
        finally:
            child.close()
        move_money(store, source, 10, chance)
    child = Child(command)
    try:
        child.expect("jvm", PATIENCE_S)
        child.expect("done", PATIENCE_S)
        child.succeed(60)
    finally:
        child.close()

    def state(table: Table, version: int) -> dict[bytes, bytes]:
        return {row.key: row.value for row in table.scan(at=version)}

    assert {row.key: row.value for row in replica.scan()} == {row.key: row.value for row in source.scan()}
    states = [state(source, version) for version in sorted({each.version_ns for each in source.changes()})]
    assert all(sum(map(int, each.values())) == TOTAL for each in states)
    copied = [state(replica, version) for version in sorted({each.version_ns for each in replica.changes()})]
    assert len(copied) == batches_stored(store) >= 200 // CHANGES_PER_BATCH - 1
    at = 0
    for each in copied:
        at = states.index(each, at)
    assert row_json(store.reports.list_transactions()) == []
