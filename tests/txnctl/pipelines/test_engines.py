"""Both engines on the same requests: the same balances, versions, note, subscription, findings and errors, in turns."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage import Store
from storage.errors import TxnctlError
from tests.model_runs import examples
from tests.txnctl.pipelines.engine_steps import (
    FORMS,
    TOPIC,
    Sent,
    backlogs,
    copied,
    left,
    options,
    send,
    settle_locally,
)
from tests.txnctl.pipelines.killed_settlement import MESSAGES, POINTS
from txnctl.pipelines.audit import AuditSources, audit_balances
from txnctl.pipelines.conservation import sums_by_version
from txnctl.pipelines.local_audit import audit_locally
from txnctl.pipelines.request import RequestForm
from txnctl.pipelines.settle import Settler, start_settling
from txnctl.pipelines.settler import BatchSettler, SettleOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")

ROOT = Path(__file__).parents[3]
LARGE = 60
"""Messages of one example: those on the JVM are few, and so they are large."""


def settle_on_spark(
    spark: SparkSession, path: str, settle_options: SettleOptions, max_messages: int
) -> BatchSettler:
    """Settle what is there, on Spark."""
    with Store.open(path) as store, tempfile.TemporaryDirectory() as checkpoint:
        settler = Settler(store, TOPIC, "accounts", settle_options)
        start_settling(spark, settler, options(path, max_messages), checkpoint).wait()
        return settler


def new_store(directory: str, sent: list[Sent]) -> Path:
    """A store with a backlog."""
    place = Path(directory, "store")
    Store.create(str(place))
    with Store.open(str(place)) as store:
        store.create_topic("requests")
        store.create_table("accounts")
        send(store, sent)
    return place


def outcome(settle: Any) -> tuple[object, ...]:
    """What a settlement says."""
    try:
        settler = settle()
    except TxnctlError as error:
        return type(error).__name__, error.code, error.exit_code, error.message
    return (settler.total, settler.batches)


@given(
    st.sampled_from(FORMS).flatmap(lambda form: st.tuples(st.just(form), backlogs(form, LARGE))),
    st.booleans(),
    st.integers(15, 60),
)
@settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
def test_both_engines_leave_the_same(
    spark: SparkSession, drawn: tuple[RequestForm, list[Sent]], skip: bool, max_messages: int
) -> None:
    """Balances at every version, the note, the cursor; and what audit finds in them."""
    form, sent = drawn
    settle_options = SettleOptions(form, skip=skip)
    with tempfile.TemporaryDirectory() as directory:
        place = new_store(directory, sent)
        other = copied(place, "other")
        said = outcome(lambda: settle_locally(str(place), settle_options, max_messages))
        assert outcome(lambda: settle_on_spark(spark, other, settle_options, max_messages)) == said
        assert left(other)._replace(cursor="") == left(str(place))._replace(cursor="")
        if skip:
            assert left(other).cursor == left(str(place)).cursor
        sources = AuditSources({"path": other, "topics": "requests"}, {"path": other, "table": "accounts"})
        with Store.open(other) as store:
            for key, value in ((b"odd", b"1\n"), (b"\xff", b"2")):
                store.table("accounts").put(key, value)
            found = audit_locally(store, sources, form=form, with_days=True)
        assert audit_balances(spark, sources, form=form, with_days=True) == found
        assert not skip or found.differing == 2


def test_killed_engines_take_turns(spark: SparkSession, tmp_path: Path) -> None:
    """The local engine is killed at each point, Spark settles a batch, and so on: each request counts once."""
    sent = []
    for number in range(1, 60):
        amount = f'{{"delta": "{number}"}}'.encode(), f'{{"delta": "-{number}"}}'.encode()
        accounts = f"B{number % 4}".encode(), f"B{(number + 1) % 4}".encode()
        sent.append(Sent([*zip(accounts, amount, strict=True)], "commit"))
    path = str(new_store(str(tmp_path), sent))
    kills = 0
    for point, number in zip(POINTS, count(2), strict=False):
        words = [
            sys.executable,
            "-m",
            "tests.txnctl.pipelines.killed_settlement",
            path,
            point,
            str(number * 2),
        ]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        kills += done.returncode != 0
        with Store.open(path) as store, tempfile.TemporaryDirectory() as checkpoint:
            settler = Settler(store, TOPIC, "accounts")
            stream = start_settling(spark, settler, options(path, MESSAGES), checkpoint, interval_s=0.01)
            while not settler.batches and settler.settled_through() is not None and number < 5:
                assert not stream.has_ended(0.05)
            stream.stop()
    assert kills > 1
    settle_locally(path, SettleOptions(), MESSAGES)
    with Store.open(path) as store:
        expected = dict.fromkeys(range(4), 0)
        for number in range(1, 60):
            expected[number % 4] += number
            expected[(number + 1) % 4] -= number
        found = {row.key.decode(): row.value.decode() for row in store.table("accounts").scan()}
        assert found == {f"B{account}": f"{crowns}.00" for account, crowns in expected.items()}
        assert sums_by_version(store, "accounts").changes == []
        assert store.maintenance.verify_store(full=True) == []
