"""`txnctl transactions abort --fence`, and what the desk sees of owners and messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.errors import ProducerFenced
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.transactions.desk_steps import Run, behind, explained
from txnctl.commands.transactions.abort import ABORTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestOwners:
    """The evidence that an owner lives is a kernel lock; everything else is said beside it."""

    def test_alive(self, run: Run, path: Path, owners: Any) -> None:
        """The lock is held, the process runs; it is waited for."""
        process = owners()
        behind(path)
        row = explained(run)
        assert row["evidence"] == {
            "state": "alive", "lockHeld": True, "sameHost": True, "sameBoot": True, "processRunning": True,
            "pidReused": False,
        }  # fmt: skip
        assert (row["advice"], row["ownerDetails"]["pid"]) == ("wait", process.pid)
        assert run("transactions", "abort", "0:1", "-o", "json").error["code"] == "owner-alive"

    def test_stopped(self, run: Run, path: Path, owners: Any) -> None:
        """It counts as alive; the advice is to continue it, and the command does so."""
        process = owners()
        behind(path)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["lockHeld"]) == ("stopped", True)
        assert (row["advice"], row["command"]) == ("continue", f"kill -CONT {process.pid}")
        assert run("transactions", "abort", "0:1").status == 9
        subprocess.run(["sh", "-c", row["command"]], check=True)
        process.communicate(timeout=30)
        assert run("subscriptions", "lag", "orders", "billing", "-o", "json").json["visible"] == 2


class TestFence:
    """`transactions abort --fence`: the producer as well."""

    def test_an_owner_loses_its_topic_and_who_waits_is_next(self, run: Run, path: Path, start: Any) -> None:
        """The epoch grows; what it had open elsewhere on the topic goes; who waits keeps its place and gets the topic."""
        with Store.open(path, clock=an_hour_ago()) as store:
            owner = store.create_producer("orders", producer_name="loader", access_mode=AccessMode.EXCLUSIVE)
            for _ in range(2):
                owner.send(b"half", txn=store.begin_transaction(timeout=7200))
            waiter = start("producers", "open", "orders", "--access-mode", "WaitForExclusive", "-o", "json")
            until = time.monotonic() + 20
            while not run("producers", "show", "orders", "-o", "json").json["waitingPublishers"]:
                assert time.monotonic() < until
            dry = run("transactions", "abort", "0:1", "--fence", "--dry-run", "-o", "json").json
            real = run("transactions", "abort", "0:1", "--fence", "--reason", "hangs", "-o", "json").json
            assert not undeclared(real, ABORTED)
            assert real["effects"] == dry["effects"]
            (fenced,) = [each for each in real["effects"] if each["kind"] == "producer"]
            epochs = fenced["topicEpochBefore"], fenced["topicEpochAfter"]
            assert (fenced["producerName"], epochs, fenced["transactionsAborted"]) == (
                "loader",
                (0, 1),
                ["0:2"],
            )
            with pytest.raises(ProducerFenced):
                owner.send(b"late")
            promoted = json.loads(waiter.communicate(timeout=30)[0])
        assert (promoted["isOwner"], promoted["epoch"]) == (True, 2)
        assert run("transactions", "list", "-o", "json").json == []

    def test_a_shared_one_goes_and_its_like_stay(self, run: Run, path: Path) -> None:
        """Only who sent the transaction's messages loses its session; the epoch stays."""
        with Store.open(path, clock=an_hour_ago()) as store:
            mine, other = [store.create_producer("orders", producer_name=name) for name in ("mine", "other")]
            mine.send(b"half", txn=store.begin_transaction(timeout=7200))
            out = run("transactions", "abort", "0:1", "--fence").out
            assert "fences       mine (Shared, " in out
            again = run("transactions", "abort", "0:1", "--fence")
            assert again.status == 0
            assert "was aborted already" in again.out
            assert "Its producers were fenced then. Nothing was changed." in again.out
            assert "epoch" not in out
            with pytest.raises(ProducerFenced):
                mine.send(b"late")
            other.send(b"goes on")

    @pytest.mark.usefixtures("blocked_store")
    def test_nobody_there(self, run: Run) -> None:
        """It says so; the command to type keeps the option."""
        out = run("transactions", "abort", "0:1", "--fence", "--dry-run").out
        assert "nobody: no producer of its messages is connected" in out
        assert ' --fence --reason "..."' in out


class TestRedelivered:
    """What an abort gives back is counted exactly."""

    def test_of_a_cumulative_acknowledgement(self, run: Run, path: Path) -> None:
        """All messages that it covered, as many as `lag` shows then."""
        with Store.open(path) as store:
            store.admin.subscriptions.create_subscription(
                "orders", "queue", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
            )
            store.create_producer("orders").send_batch([b"1", b"2", b"3", b"4"])
            with store.subscribe("orders", "billing") as consumer:
                batch = list(consumer.receive_batch(3, timeout=0))
                consumer.acknowledge_cumulative(batch[-1], txn=store.begin_transaction())
        before = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        row = run("transactions", "abort", "0:1", "--force", "-o", "json").json
        assert [effect["messages"] for effect in row["effects"]] == [before["pending"]] == [3]
        assert json.loads(json.dumps(row)) == row
