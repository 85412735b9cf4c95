"""The operator's desk: `transactions blocked`, `explain`, `abort --fence`, `slow`, `orphans`, `history`.

Owners are real processes that are killed, stopped, replaced or gone over a reboot; see test_timeline.py for the drawing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.errors import ProducerFenced
from tests.row_json import row_json
from tests.txnctl.an_hour_ago import an_hour_ago
from txnctl.commands.transactions.abort import ABORTED
from txnctl.commands.transactions.blocked import BLOCKED
from txnctl.commands.transactions.explain import EXPLAINED
from txnctl.commands.transactions.holding import HOLDING
from txnctl.fields.transaction import ROW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")

Run = Callable[..., Any]


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert row_json(store.maintenance.verify_store()) == []


@pytest.fixture
def stuck(path: Path) -> None:
    """0:1 holds 15 messages and 797 behind them, 0:2 comes next and holds 403; nobody has used them for an hour."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders", producer_name="loader")
        first = store.begin_transaction(labels={"job": "loader"}, timeout=7200)
        producer.send_batch([b"held"] * 15, txn=first)
        producer.send_batch([b"plain"] * 797)
        second = store.begin_transaction(labels={"job": "fulfil"}, timeout=7200)
        producer.send_batch([b"next"] * 4, txn=second)
        producer.send_batch([b"plain"] * 403)
        producer.close()


@pytest.fixture
def owners(path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that hold an attached transaction with a message, ready when they are returned."""
    processes = []

    def start(body: str = "") -> subprocess.Popen[bytes]:
        program = (
            "import os, sys\n"
            "from storage import Store\n"
            "store = Store.open(sys.argv[1], program='loader')\n"
            f"{body}\n"
            "txn = store.transaction(timeout=3600)\n"
            "store.create_producer('orders').send(b'half', txn=txn)\n"
            "txn.flush()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
            "txn.commit()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


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


class TestBlocked:
    """`transactions blocked`: by whom?"""

    def test_nothing_blocked_is_success(self, run: Run, path: Path) -> None:
        """Nothing on standard output, a note of what there is, an empty array."""
        outcome = run("transactions", "blocked")
        assert (outcome.status, outcome.out) == (0, "")
        assert "nothing is blocked: no open transaction has messages there" in outcome.err
        with Store.open(path) as store:
            store.create_producer("orders").send(b"half", txn=store.begin_transaction())
        assert "1 open transaction holds nothing back" in run("transactions", "blocked", "orders").err
        assert run("transactions", "blocked", "-o", "json").json == []
        assert run("transactions", "blocked", "--exit-code").status == 0
        assert run("transactions", "blocked", "nowhere").status == 3

    @pytest.mark.usefixtures("stuck")
    def test_who_comes_first_and_what_that_frees(self, run: Run) -> None:
        """Holds from, age, owner, alive or not, how many it frees; and the command to type."""
        lines = squeezed(run("transactions", "blocked", "orders").out)
        assert lines[0].startswith("orders 1,200 messages blocked, the oldest for 1h00m as of ")
        assert lines[2] == "# TXN HOLDS FROM AGE IDLE ALIVE DEADLINE OWN FREES OWNER"
        assert lines[3].startswith("1 0:1 1:0 1h00m 1h00m detached in 59m")
        assert " 15 797 job=loader, " in lines[3]
        assert lines[5:] == ["billing waits: 797 behind 0:1", "", "Next: txnctl transactions explain 0:1"]

    @pytest.mark.usefixtures("stuck")
    def test_the_chain_in_order(self, run: Run) -> None:
        """Who follows, and what each frees in its turn."""
        rows = run("transactions", "blocked", "--chain", "-o", "json").json
        assert [(row["txnId"], row["place"], row["holdsFrom"], row["frees"]) for row in rows] == [
            ("0:1", 1, "1:0", 797),
            ("0:2", 2, "1:2", 403),
        ]
        assert [row["unblocks"] for row in rows] == [{"billing": 797}, {"billing": 403}]
        assert [row["blockedNext"] for row in rows] == ["0:2", None]
        assert not undeclared(rows[0], BLOCKED)
        assert "billing waits: 797 behind 0:1, 403 behind 0:2" in run("txn", "blocked", "--chain").out
        assert run("transactions", "blocked", "--chain", "-o", "name").out == "0:1\n0:2\n"
        assert run("transactions", "blocked", "--exit-code").status == 8

    @pytest.mark.usefixtures("stuck")
    def test_the_numbers_are_those_of_lag(self, run: Run) -> None:
        """Each command says the same of the same thing."""
        (row,) = run("transactions", "blocked", "orders", "-o", "json").json
        lag = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        assert row["blockedMessages"] == lag["blocked"] == 1200
        assert row["ifEnded"]["staysBlocked"] == 1200 - row["frees"] == 403
        assert row["ifEnded"]["maxReadPositionBefore"] == lag["maxReadPosition"]

    def test_every_topic_on_which_something_is_blocked(self, run: Run, path: Path) -> None:
        """One transaction may hold several; one topic after the other."""
        with Store.open(path) as store:
            store.create_topic("payments")
            txn = store.begin_transaction()
            for topic in ("orders", "payments"):
                producer = store.create_producer(topic)
                producer.send(b"half", txn=txn)
                producer.send(b"whole")
        rows = run("transactions", "blocked", "-o", "json").json
        assert [(row["name"], row["txnId"]) for row in rows] == [("orders", "0:1"), ("payments", "0:1")]
        out = run("transactions", "blocked").out
        assert out.count("1 message blocked") == 2
        assert out.count("Next:") == 1


class TestExplain:
    """`transactions explain`: why, and is it safe to end it?"""

    @pytest.mark.usefixtures("stuck")
    def test_an_idle_detached_one_that_holds_others_up(self, run: Run) -> None:
        """Facts, whom it blocks and who blocks next, and a look at what ending it changes."""
        row = explained(run)
        assert (row["advice"], row["safeToEnd"]) == ("end", None)
        assert row["command"] == "txnctl transactions abort 0:1 --dry-run"
        (held,) = row["blocks"]
        assert (held["place"], held["frees"], held["unblocks"]) == (1, 797, {"billing": 797})
        lines = squeezed(run("transactions", "explain", "0:1").out)
        assert lines[0].startswith("0:1 OPEN, version ")
        assert "orders 1:0 1 797 billing 797 403 stay blocked behind 0:2" in lines
        assert lines[-2].startswith("Advice: No process holds it and nobody uses it;")
        assert lines[-1] == "Next: txnctl transactions abort 0:1 --dry-run"

    @pytest.mark.usefixtures("stuck")
    def test_one_that_does_not_come_first(self, run: Run) -> None:
        """Ending it frees nothing yet: the advice is to look at the one before it."""
        row = explained(run, "0:2")
        assert (row["advice"], row["command"]) == ("look-at-first", "txnctl transactions explain 0:1")
        assert "0:1 comes first: ending this one frees nothing yet" in run("txn", "explain", "0:2").out

    def test_one_that_holds_nobody_up_is_left_alone(self, run: Run, path: Path) -> None:
        """Neither messages nor acknowledgements nor keys wait for it."""
        with Store.open(path, clock=an_hour_ago()) as store:
            store.create_producer("orders").send(b"half", txn=store.begin_transaction(timeout=7200))
        row = explained(run)
        assert (row["advice"], row["command"]) == ("leave", None)
        assert "Nobody waits for it" in run("transactions", "explain", "0:1").out

    @pytest.mark.parametrize("what", ["acknowledgement", "cumulative", "key"])
    def test_pending_acknowledgements_and_keys_are_held_too(self, run: Run, path: Path, what: str) -> None:
        """How many messages go to nobody, which keys; ending it is worth a look."""
        with Store.open(path, clock=an_hour_ago()) as store:
            txn = store.begin_transaction(timeout=7200)
            store.create_producer("orders").send_batch([b"1", b"2", b"3"])
            if what == "key":
                store.table("balances").put(b"B1", b"100", txn=txn)
            else:
                with store.subscribe("orders", "billing") as consumer:
                    batch = list(consumer.receive_batch(2, timeout=0))
                    if what == "cumulative":
                        consumer.acknowledge_cumulative(batch[-1], txn=txn)
                    else:
                        consumer.acknowledge(batch, txn=txn)
        row, out = explained(run), run("transactions", "explain", "0:1").out
        assert row["advice"] == "end"
        if what == "key":
            assert row["parts"][0]["keyList"] == [{"key": "B1"}]
            assert "holds keys of table balances" in out
        else:
            assert row["pending"][0]["messages"] == 2
            assert "2 messages of orders go to nobody on billing until it ends" in out

    def test_one_at_work_is_waited_for(self, run: Run, path: Path) -> None:
        """It was used within the last minute."""
        with Store.open(path) as store:
            store.create_producer("orders").send(b"half", txn=store.begin_transaction())
        row = explained(run)
        assert (row["advice"], row["safeToEnd"]) == ("wait", False)
        assert row["command"] == "txnctl transactions wait 0:1 --timeout 1m"

    @pytest.mark.parametrize("ending", ["commit", "abort"])
    def test_an_ended_one_needs_nothing(self, run: Run, ending: str) -> None:
        """No evidence, no command."""
        run("transactions", "begin")
        run("transactions", ending, "0:1")
        row = explained(run)
        assert (row["advice"], row["command"], row["evidence"]) == ("nothing", None, None)
        assert "It has ended and holds nothing back." in run("transactions", "explain", "0:1").out

    def test_an_overdue_one_is_reaped(self, run: Run, path: Path) -> None:
        """It can never commit: ending it is safe."""
        with Store.open(path, clock=an_hour_ago()) as store:
            store.begin_transaction(timeout=60)
        row = explained(run)
        assert (row["advice"], row["safeToEnd"], row["command"]) == ("reap", True, "txnctl transactions reap")

    def test_an_id_that_begins_so_is_enough(self, run: Run) -> None:
        """As for `show`; an unknown one is not found."""
        with Store.open(os.environ["TXNCTL_STORE"]) as store:
            for _ in range(20):
                store.begin_transaction()
        outcome = run("transactions", "explain", "0:20")
        assert outcome.out.startswith("0:20 ")
        assert run("transactions", "explain", "0:77").status == 3

    @pytest.mark.usefixtures("stuck")
    def test_labels_and_programs_cannot_drive_a_terminal(self, run: Run, path: Path) -> None:
        """Nor can what the producer calls itself."""
        with Store.open(path, program="evil\x1b[2J", clock=an_hour_ago()) as store:
            txn = store.begin_transaction(labels={"job": "x\x1b[31m"}, timeout=7200)
            store.create_producer("orders").send(b"1", txn=txn)
        for words in (("explain", str(txn)), ("blocked", "--chain")):
            assert "\x1b" not in run("transactions", *words).out


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

    def test_killed(self, run: Run, path: Path, owners: Any) -> None:
        """At once it is an orphan that is safe to end; the command frees what it held."""
        process = owners()
        behind(path)
        process.kill()
        process.communicate(timeout=30)
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["lockHeld"]) == ("dead", False)
        assert row["evidence"]["processRunning"] is False
        assert (row["advice"], row["safeToEnd"]) == ("reap", True)
        assert "ORPHANED" in run("transactions", "blocked").out
        assert run(*row["command"].split()[1:]).status == 0
        assert run("subscriptions", "lag", "orders", "billing", "-o", "json").json["visible"] == 1

    def test_its_pid_used_by_another(self, run: Run, owners: Any) -> None:
        """A living process of that number, started at another time, revives nothing."""
        process = owners(
            "from storage.process.identity import ProcessIdentity\n"
            "own = store.connection.owner\n"
            f"store.connection._owner = ProcessIdentity(own.host, own.boot_id, {os.getpid()}, 1, own.user, own.program)"
        )
        process.kill()
        process.communicate(timeout=30)
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["pidReused"]) == ("dead", True)
        assert row["advice"] == "reap"
        assert "started later: it is another one." in run("transactions", "explain", "0:1").out

    @pytest.mark.parametrize(
        ("host", "state", "advice", "safe"),
        [("own.host", "rebooted", "reap", True), ("'db-9'", "unknown-host", "end", None)],
    )
    def test_of_another_boot(
        self, run: Run, path: Path, owners: Any, host: str, state: str, advice: str, safe: bool | None
    ) -> None:
        """On this machine nobody is left; on another nothing is proven, and the pid says nothing."""
        process = owners(
            "from storage.process.identity import ProcessIdentity\n"
            "own = store.connection.owner\n"
            f"store.connection._owner = ProcessIdentity({host}, bytes(16), {os.getpid()}, own.started, own.user, own.program)"
        )
        behind(path)
        process.kill()
        process.communicate(timeout=30)
        row = explained(run)
        assert row["evidence"]["state"] == row["ownerState"] == state
        assert (row["evidence"]["sameBoot"], row["evidence"]["processRunning"]) == (False, None)
        assert (row["advice"], row["safeToEnd"]) == (advice, safe)

    def test_detached(self, run: Run) -> None:
        """No process is asked after: its deadline alone rules."""
        run("transactions", "begin")
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["lockHeld"]) == ("detached", None)


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

    @pytest.mark.usefixtures("stuck")
    def test_nobody_there(self, run: Run) -> None:
        """It says so; the command to type keeps the option."""
        out = run("transactions", "abort", "0:1", "--fence", "--dry-run").out
        assert "nobody: no producer of its messages is connected" in out
        assert ' --fence --reason "..."' in out


class TestTwice:
    """What happens on the way of a dry run happens on the way of the real one."""

    def test_a_dead_owner_found_by_the_dry_run_is_found_again(self, path: Path, owners: Any) -> None:
        """By the same handle, at once: the numbers are the same."""
        process = owners()
        with Store.open(path) as store:
            store.create_producer("orders").send(b"half", txn=store.begin_transaction())
        behind(path)
        process.kill()
        process.communicate(timeout=30)
        with Store.open(path) as store:
            dry, real = [
                row_json(store.admin.transactions.abort_transaction("0:2", dry_run=dry_run))["effects"]
                for dry_run in (True, False)
            ]
        assert dry == real
        assert real[0]["unblocks"]["billing"]["visibleAfter"] == 1
        assert real[0]["blockedNext"] is None


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


class TestAttention:
    """`transactions slow` and `orphans`."""

    @pytest.mark.usefixtures("stuck")
    def test_the_oldest_first_with_what_waits_for_each(self, run: Run) -> None:
        """And the command about the one that holds most."""
        rows = run("transactions", "slow", "-o", "json").json
        assert [(row["txnId"], row["frees"]) for row in rows] == [("0:1", 797), ("0:2", 403)]
        assert not undeclared(rows[0], HOLDING)
        out = run("transactions", "slow").out
        assert squeezed(out)[0].startswith("TXN AGE IDLE DEADLINE ALIVE FREES OWNER")
        assert out.endswith("Next: txnctl transactions explain 0:1\n")
        assert run("transactions", "slow", "--exit-code").status == 8

    @pytest.mark.usefixtures("stuck")
    def test_only_those_over_the_given_age(self, run: Run) -> None:
        """One of an hour ago is none of two hours; one of this moment is over nothing."""
        run("transactions", "begin")
        assert run("transactions", "slow", "--over", "59m", "-o", "name").out == "0:1\n0:2\n"
        assert run("transactions", "slow", "--over", "0ms", "-o", "name").out == "0:1\n0:2\n0:3\n"
        outcome = run("transactions", "slow", "--over", "2h")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no transaction has been open for longer than 2h00m" in outcome.err

    def test_an_orphan_is_listed_until_somebody_writes(self, run: Run, path: Path, owners: Any) -> None:
        """With what it holds back; others are not."""
        process = owners()
        behind(path)
        run("transactions", "begin")
        assert run("transactions", "orphans", "-o", "json").json == []
        assert "no open transaction has lost its process" in run("transactions", "orphans").err
        process.kill()
        process.communicate(timeout=30)
        (row,) = run("transactions", "orphans", "-o", "json").json
        assert (row["txnId"], row["frees"], row["orphaned"]) == ("0:1", 1, True)
        assert run("transactions", "orphans").out.endswith("Next: txnctl transactions reap\n")
        assert run("transactions", "orphans", "--exit-code").status == 8
        assert run("transactions", "reap", "-o", "name").out == "0:1\n"
        assert run("transactions", "orphans", "-o", "json").json == []


class TestHistory:
    """`transactions history`."""

    @pytest.fixture
    def ended(self, path: Path) -> None:
        """Half an hour ago one timed out; since then one was committed and one aborted, which began before it."""
        clock = an_hour_ago()
        with Store.open(path, clock=clock) as store:
            for _ in range(3):
                store.begin_transaction(timeout=7200)
            store.begin_transaction(timeout=60)
            clock.advance(1800)
            store.admin.transactions.reap_transactions()
        with Store.open(path) as store:
            store.create_producer("orders").send(b"1", txn="0:2")
            store.commit_transaction("0:2")
            store.admin.transactions.abort_transaction("0:1", reason="wrong file")

    @pytest.mark.usefixtures("ended")
    def test_the_one_that_ended_last_comes_first(self, run: Run) -> None:
        """Outcome, reason, by whom, after how long; and how many in which way."""
        rows = run("transactions", "history", "-o", "json").json
        assert [(row["txnId"], row["state"], row["reason"]) for row in rows] == [
            ("0:1", "ABORTED", "asked"),
            ("0:2", "COMMITTED", None),
            ("0:4", "ABORTED", "timed-out"),
        ]
        assert not undeclared(rows[0], ROW)
        assert rows[2]["ageMs"] == 1_800_000
        lines = squeezed(run("transactions", "history").out)
        assert lines[0].startswith("TXN STATE ENDED OPEN FOR REASON BY ")
        assert "1h00m asked: wrong file" in lines[1]
        assert lines[-1] == "1 asked, 1 committed, 1 timed-out"

    @pytest.mark.usefixtures("ended")
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("--topic", "orders"), "0:2\n"),
            (("--reason", "timed-out"), "0:4\n"),
            (("--reason", "TIMED_OUT"), "0:4\n"),
            (("--since", "10m"), "0:1\n0:2\n"),
            (("--since", "2h", "-n", "1"), "0:1\n"),
            (("--since", "2020-01-01T00:00:00Z"), "0:1\n0:2\n0:4\n"),
            (("--since", "2100-01-01"), ""),
        ],
    )
    def test_what_was_asked_for(self, run: Run, words: tuple[str, ...], found: str) -> None:
        """By topic, reason, time, number."""
        assert run("transactions", "history", *words, "-o", "name").out == found

    @pytest.mark.parametrize(
        ("words", "status"),
        [(("--reason", "because"), 2), (("--since", "yesterday"), 2), (("--topic", "nowhere"), 3)],
    )
    def test_what_cannot_be_asked(self, run: Run, words: tuple[str, ...], status: int) -> None:
        """Bad input, or not found."""
        assert run("transactions", "history", *words).status == status

    def test_nothing_is_success(self, run: Run) -> None:
        """An empty array, or a note."""
        assert run("transactions", "history", "-o", "json").json == []
        assert "no transaction ended like that" in run("transactions", "history").err
