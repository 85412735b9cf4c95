"""`txnctl transactions abort`."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.transactions.transactions_steps import ended, started
from tests.waiting import wait_for
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
