"""`txnctl transactions blocked`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.transactions.desk_steps import Run, behind, explained, squeezed
from txnctl.commands.transactions.blocked import BLOCKED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


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

    @pytest.mark.usefixtures("blocked_store")
    def test_who_comes_first_and_what_that_frees(self, run: Run) -> None:
        """Holds from, age, owner, alive or not, how many it frees; and the command to type."""
        lines = squeezed(run("transactions", "blocked", "orders").out)
        assert lines[0].startswith("orders 1,200 messages blocked, the oldest for 1h00m as of ")
        assert lines[2] == "# TXN HOLDS FROM AGE IDLE ALIVE DEADLINE OWN FREES OWNER"
        assert lines[3].startswith("1 0:1 1:0 1h00m 1h00m detached in 59m")
        assert " 15 797 job=loader, " in lines[3]
        assert lines[5:] == ["billing waits: 797 behind 0:1", "", "Next: txnctl transactions explain 0:1"]

    @pytest.mark.usefixtures("blocked_store")
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

    @pytest.mark.usefixtures("blocked_store")
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


class TestOwners:
    """The evidence that an owner lives is a kernel lock; everything else is said beside it."""

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
            "own = store.connection.identity\n"
            f"store.connection.identity = ProcessIdentity({host}, bytes(16), {os.getpid()}, own.started, own.user, own.program)"
        )
        behind(path)
        process.kill()
        process.communicate(timeout=30)
        row = explained(run)
        assert row["evidence"]["state"] == row["ownerState"] == state
        assert (row["evidence"]["sameBoot"], row["evidence"]["processRunning"]) == (False, None)
        assert (row["advice"], row["safeToEnd"]) == (advice, safe)


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
