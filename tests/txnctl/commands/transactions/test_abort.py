"""`txnctl transactions abort`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.errors import ProducerFenced
from tests.row_json import row_json
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.transactions.desk_steps import Run, behind, explained
from tests.txnctl.commands.transactions.transactions_steps import ended, started
from tests.txnctl.processes import wait_for
from txnctl.commands.transactions.abort import ABORTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestAbort:
    """`transactions abort`: what it would do, and doing it."""

    def test_the_dry_run_says_what_the_sample_of_the_contract_says(self, run: Any, stuck: str) -> None:
        """Discards, redelivers, moves, unblocks, who blocks next, and the command to type."""
        out = run("transactions", "abort", stuck, "--dry-run").out
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert lines[0] == "DRY RUN: nothing was changed."
        assert lines[2].startswith(f"Abort {stuck} (OPEN, version 7, idle ")
        assert "detached, begun by " in lines[2]
        assert lines[3:8] == [
            "discards 15 messages orders 1:0..1:8",
            "redelivers 15 messages payments-in to subscription loader",
            "moves orders maxReadPosition 1:-1 -> 1:10",
            "unblocks 797 of 1,200 billing 0 -> 797 visible",
            lines[7],
        ]
        assert lines[7].startswith("then 403 stay blocked behind 0:2 (job=fulfil, detached, active ")
        assert (
            lines[-2] == "See: txnctl topics peek orders --isolation-level read-uncommitted --from 1:0 -n 15"
        )
        assert run(*lines[-2].split()[2:]).out.count("\n") >= 15
        assert lines[-1] == f'Run: txnctl transactions abort {stuck} --if-version 7 --reason "..."'

    def test_dry_run_numbers_are_the_real_ones(self, run: Any, stuck: str) -> None:
        """Rule 10: the same effects; and what they say is what `lag` then shows. A dry run changes nothing."""
        before = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        dry = run("transactions", "abort", stuck, "--dry-run", "-o", "json").json
        assert run("transactions", "show", stuck, "-o", "json").json["state"] == "OPEN"
        after_dry = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        assert (before["visible"], before["blocked"]) == (after_dry["visible"], after_dry["blocked"])
        real = run("transactions", "abort", stuck, "--if-version", str(dry["version"]), "-o", "json").json
        for row in (dry, real):
            assert not undeclared(row, ABORTED)
            for effect in row["effects"]:
                (effect.get("blockedNext") or {}).pop("idleMs", None)
        assert real["effects"] == dry["effects"]
        assert (dry["dryRun"], real["dryRun"]) == (True, False)
        lag = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        topic = next(effect for effect in real["effects"] if effect["kind"] == "topic")
        freed = topic["unblocks"]["billing"]
        assert (
            (lag["visible"], lag["blocked"]) == (freed["visibleAfter"], freed["blockedAfter"]) == (797, 403)
        )
        assert lag["maxReadPosition"] == topic["maxReadPositionAfter"]
        assert lag["blockedBy"]["txnId"] == topic["blockedNext"]["txnId"] == "0:2"
        loader = run("subscriptions", "lag", "payments-in", "loader", "-o", "json").json
        assert (loader["visible"], loader["pending"]) == (20, 0)

    def test_the_id_is_taken_as_its_help_says(self, run: Any, stuck: str) -> None:
        """Each of the three ways of writing it that the help shows names the same transaction."""
        assert "0:42, (0,42) or 42" in " ".join(run("transactions", "abort", "--help").out.split())
        number = stuck.removeprefix("0:")
        for written in (stuck, f"(0,{number})", number):
            row = run("transactions", "abort", written, "--dry-run", "-o", "json").json
            assert row["txnId"] == stuck

    def test_another_version_is_refused(self, run: Any, stuck: str) -> None:
        """The one looked at is the one aborted: exit 4, and it stays open."""
        outcome = run("transactions", "abort", stuck, "--if-version", "3", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-changed")
        assert run("transactions", "show", stuck, "-o", "json").json["state"] == "OPEN"

    def test_a_living_active_owner_is_protected(self, run: Any) -> None:
        """Exit 9 unless --force; no question is asked, and --yes does not override; the reason is to be filled in."""
        owner = started("transactions", "run", "--", "sh", "-c", "echo ready; cat")
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        outcome = run("transactions", "abort", "0:1", "--yes", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (9, "owner-alive")
        dry = run("transactions", "abort", "0:1", "--dry-run").out
        assert "  refused      without --force: the owner of transaction 0:1, " in dry
        assert '--if-version 1 --force --reason "..."\n' in dry
        assert run("transactions", "abort", "0:1").status == 9
        command = run("transactions", "abort", "0:1", "--dry-run", "--force").out.splitlines()[-1]
        words = shlex.split(command.removeprefix("Run: txnctl "))
        assert run(*words).status == 2
        assert run(*words[:-1], "hangs").status == 0
        status, _, err = ended(owner)
        assert status == 4
        assert "sh succeeded, but the commit of its transaction failed" in err

    def test_a_stopped_active_owner_is_called_stopped(self, run: Any) -> None:
        """Nobody could let it finish: the hint continues it."""
        owner = started("transactions", "run", "--", "sh", "-c", "echo ready; cat")
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        owner.send_signal(signal.SIGSTOP)
        wait_for(lambda: run("txn", "show", "0:1", "-o", "json").json["ownerState"] == "stopped", "it stops")
        error = run("transactions", "abort", "0:1", "-o", "json").error
        row = run("transactions", "abort", "0:1", "--dry-run", "-o", "json").json
        assert not undeclared(row, ABORTED)
        owner.send_signal(signal.SIGCONT)
        ended(owner)
        assert "is stopped and used it " in error["message"]
        assert error["hint"].startswith(f"Continue it with kill -CONT {owner.pid}, or abort it all the same")
        assert "is stopped and used it " in row["refused"]

    def test_a_detached_one_used_just_now_is_aborted_with_a_warning(self, run: Any) -> None:
        """No process can be asked; before and after."""
        run("transactions", "begin")
        for words, told in ((("--dry-run",), "may be at work in it"), ((), "may have been at work in it")):
            out = run("transactions", "abort", "0:1", *words).out
            (line,) = [each for each in out.splitlines() if each.startswith("  careful ")]
            assert "used " in line
            assert line.endswith(f" ago: somebody {told}")

    def test_what_it_did_stands_in_the_audit_trail(self, run: Any, path: Path, stuck: str) -> None:
        """With the reason; a dry run leaves no trace."""
        run("transactions", "abort", stuck, "--dry-run")
        run("transactions", "abort", stuck, "--reason", "stuck")
        with Store.open(path) as store:
            rows = [
                row
                for row in row_json(store.reports.list_audit_records())
                if row["action"] == "transactions abort"
            ]
        assert [(row["target"], row["reason"]) for row in rows] == [(stuck, "stuck")]


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
