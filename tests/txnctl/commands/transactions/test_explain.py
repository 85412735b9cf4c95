"""`txnctl transactions explain`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.transactions.desk_steps import Run, explained, squeezed

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestExplain:
    """`transactions explain`: why, and is it safe to end it?"""

    @pytest.mark.usefixtures("blocked_store")
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
        assert lines[-4].startswith("Advice: No process holds it and nobody uses it;")
        assert lines[-3].startswith("wait `txnctl transactions wait 0:1 --timeout 60m`: its deadline is at ")
        assert lines[-2].startswith(
            "abort `txnctl transactions abort 0:1 --dry-run` shows what an abort changes;"
        )
        assert [way["choice"] for way in row["choices"]] == ["wait", "abort"]
        assert lines[-1] == "Next: txnctl transactions abort 0:1 --dry-run"

    @pytest.mark.usefixtures("blocked_store")
    def test_one_that_does_not_come_first(self, run: Run) -> None:
        """Ending it frees nothing yet: the advice is to look at the one before it."""
        row = explained(run, "0:2")
        assert (row["advice"], row["command"]) == ("look-at-first", "txnctl transactions explain 0:1")
        assert "0:1 comes first: ending this one frees nothing yet" in run("txn", "explain", "0:2").out

    def test_one_that_frees_nothing_itself_stands_before_one_that_does(self, run: Run, path: Path) -> None:
        """The first is worth ending, the one in the middle refers to the first; nobody is referred round in a circle."""
        with Store.open(path, clock=an_hour_ago()) as store, store.create_producer("orders") as producer:
            for _ in range(3):
                producer.send(b"half", txn=store.begin_transaction(timeout=7200))
            producer.send(b"whole")
        assert [explained(run, f"0:{number}")["command"] for number in (1, 2, 3)] == [
            "txnctl transactions abort 0:1 --dry-run",
            "txnctl transactions explain 0:1",
            "txnctl transactions explain 0:1",
        ]

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

    @pytest.mark.usefixtures("blocked_store")
    def test_labels_and_programs_cannot_drive_a_terminal(self, run: Run, path: Path) -> None:
        """Nor can what the producer calls itself."""
        with Store.open(path, program="evil\x1b[2J", clock=an_hour_ago()) as store:
            txn = store.begin_transaction(labels={"job": "x\x1b[31m"}, timeout=7200)
            store.create_producer("orders").send(b"1", txn=txn)
        for words in (("explain", str(txn)), ("blocked", "--chain")):
            assert "\x1b" not in run("transactions", *words).out


class TestOwners:
    """The evidence that an owner lives is a kernel lock; everything else is said beside it."""

    def test_its_pid_used_by_another(self, run: Run, owners: Any) -> None:
        """A living process of that number, started at another time, revives nothing."""
        process = owners(
            "from storage.process.identity import ProcessIdentity\n"
            "own = store.connection.identity\n"
            f"store.connection.identity = ProcessIdentity(own.host, own.boot_id, {os.getpid()}, 1, own.user, own.program)"
        )
        process.kill()
        process.communicate(timeout=30)
        row = explained(run)
        assert (row["evidence"]["state"], row["evidence"]["pidReused"]) == ("dead", True)
        assert row["advice"] == "reap"
        assert "started later: it is another one." in run("transactions", "explain", "0:1").out
