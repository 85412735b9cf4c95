"""`txnctl transactions`: every command, in every format, and `run` with real processes, signals and deaths."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.commands.transactions.abort import ABORTED
from txnctl.commands.transactions.commit import COMMITTED
from txnctl.fields.transaction import FIELDS, ROW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders",)

PYTHON = [sys.executable, "-m", "txnctl"]


@pytest.fixture
def stuck(path: Path) -> str:
    """A transaction with messages and acknowledgements behind which others wait, and one that waits next; its id."""
    with Store.open(path) as store:
        store.create_topic("payments-in")
        orders = store.create_producer("orders")
        payments = store.create_producer("payments-in")
        for name, level in (("billing", None), ("monitor", IsolationLevel.READ_UNCOMMITTED)):
            store.admin.subscriptions.create_subscription(
                "orders", name, subscription_isolation_level=level or IsolationLevel.READ_COMMITTED,
                initial_position=EARLIEST,
            )  # fmt: skip
        loader = store.subscribe(
            "payments-in", "loader", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        payments.send_batch([b"in"] * 20)
        txn = store.begin_transaction(labels={"job": "loader"})
        loader.acknowledge(loader.receive_batch(15, timeout=0), txn=txn)
        for _ in range(5):
            orders.send_batch([b"held"] * 3, txn=txn)
            orders.send(b"plain")
        orders.send_batch([b"plain"] * 792)
        following = store.begin_transaction(labels={"job": "fulfil"})
        orders.send_batch([b"next"] * 4, txn=following)
        orders.send_batch([b"plain"] * 403)
        loader.close()
        return str(txn)


def started(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """`txnctl` with these words, its streams pipes."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
    return subprocess.Popen([*PYTHON, *words], **streams)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Its exit code, what it printed, and what it said."""
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()


class TestBeginAndCommit:
    """A transaction across several command lines."""

    def test_begin_prints_the_id_alone(self, run: Any) -> None:
        """In the default format and with -o name; JSON says more."""
        assert (run("transactions", "begin").out, run("txn", "begin", "-o", "name").out) == ("0:1\n", "0:2\n")
        row = run(
            "txn", "begin", "--timeout", "15m", "--label", "job=load", "--label", "on=x=y", "-o", "json"
        ).json
        assert not undeclared(row, FIELDS)
        assert (row["txnId"], row["state"], row["timeoutMs"]) == ("0:3", "OPEN", 900_000)
        assert row["labels"] == {"job": "load", "on": "x=y"}
        assert row["ownerState"] == "detached"

    @pytest.mark.parametrize(
        "words",
        [("--timeout", "25h"), ("--timeout", "0ms"), ("--label", "a=1", "--label", "a=2"), ("--label", "=x")],
    )
    def test_begin_refuses_what_is_out_of_bounds(self, run: Any, words: tuple[str, ...]) -> None:
        """And begins nothing."""
        assert run("transactions", "begin", *words).status == 2
        assert run("transactions", "list", "-o", "json").json == []

    @pytest.mark.parametrize("ending", ["commit", "abort"])
    def test_an_ending_can_be_repeated_and_says_so(self, run: Any, ending: str) -> None:
        """A script that lost the answer may ask again."""
        run("transactions", "begin")
        first, again = [run("transactions", ending, "0:1", "-o", "json") for _ in range(2)]
        assert (first.status, first.json["already"]) == (0, False)
        assert (again.status, again.json["already"]) == (0, True)
        assert not undeclared(again.json, COMMITTED if ending == "commit" else ABORTED)
        assert "already" in run("transactions", ending, "0:1").out

    @pytest.mark.parametrize(("first", "then"), [("commit", "abort"), ("abort", "commit")])
    def test_the_other_ending_is_a_conflict_that_says_when_and_by_whom(
        self, run: Any, first: str, then: str
    ) -> None:
        """Exit 4."""
        run("transactions", "begin")
        run("transactions", first, "0:1")
        outcome = run("transactions", then, "0:1")
        assert outcome.status == 4
        assert f"was {first.replace('commit', 'committ')}ed at 20" in outcome.err
        assert "by " in outcome.err

    @pytest.mark.parametrize("words", [("commit",), ("abort",), ("show",), ("wait",)])
    def test_without_an_id_the_environment_names_it(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
    ) -> None:
        """TXNCTL_TXN; without that either, it is bad input."""
        run("transactions", "begin")
        assert run("transactions", *words).status == 2
        monkeypatch.setenv("TXNCTL_TXN", "nonsense")
        outcome = run("transactions", *words)
        assert outcome.status == 2
        assert "TXNCTL_TXN" in outcome.err
        monkeypatch.setenv("TXNCTL_TXN", "(0,1)")
        if words == ("wait",):
            run("transactions", "commit")
        assert run("transactions", *words).status == 0

    def test_an_unknown_one_is_not_found(self, run: Any) -> None:
        """Exit 3, for reading and for changing."""
        for command in ("show", "commit", "abort", "wait"):
            assert run("transactions", command, "0:77").status == 3

    def test_after_its_deadline_it_cannot_be_committed(self, run: Any) -> None:
        """Exit 4; it is aborted, and `list --ended` tells why."""
        run("transactions", "begin", "--timeout", "1ms")
        time.sleep(0.005)
        outcome = run("transactions", "commit", "0:1", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-timed-out")
        assert run("transactions", "list", "--ended", "-o", "json").json[0]["reason"] == "timed-out"


class TestList:
    """`transactions list`."""

    def test_nothing_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("transactions", "list", "-o", "json").json == []
        outcome = run("transactions", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no unfinished transactions" in outcome.err

    def test_unfinished_oldest_first_and_ended_newest_first(self, run: Any) -> None:
        """`--limit` and `--topic` choose."""
        for _ in range(4):
            run("transactions", "begin")
        run("transactions", "commit", "0:1")
        run("transactions", "abort", "0:2")
        assert run("transactions", "list", "-o", "name").out == "0:3\n0:4\n"
        assert run("transactions", "list", "-n", "1", "-o", "name").out == "0:3\n"
        assert run("transactions", "list", "--ended", "-o", "name").out == "0:2\n0:1\n"
        assert run("transactions", "list", "--topic", "orders", "-o", "name").out == ""
        assert run("transactions", "list", "--topic", "nowhere").status == 3

    def test_table_and_json_agree(self, run: Any, stuck: str) -> None:
        """Ids, counts, topics, owner."""
        rows = run("transactions", "list", "-o", "json").json
        assert [row["txnId"] for row in rows] == [stuck, "0:2"]
        assert not undeclared(rows[0], ROW)
        assert (rows[0]["messages"], rows[0]["acknowledgements"]) == (15, 15)
        assert rows[0]["topics"] == ["persistent://public/default/orders"]
        heading, first, _second = run("transactions", "list").out.splitlines()
        assert heading.split()[:5] == ["TXN", "AGE", "IDLE", "DEADLINE", "ALIVE"]
        assert first.split()[0] == stuck
        for cell in ("detached", rows[0]["owner"].split(" (")[0], "orders", "job=loader"):
            assert f" {cell}" in first

    def test_an_overdue_one_says_so_and_reading_does_not_end_it(self, run: Any) -> None:
        """Pure readers never write."""
        run("transactions", "begin", "--timeout", "1ms")
        time.sleep(0.005)
        row = run("transactions", "list", "-o", "json").json[0]
        assert (row["state"], row["overdue"]) == ("OPEN", True)
        assert "OVERDUE" in run("transactions", "list").out
        assert "\x1b[1;31mOVERDUE\x1b[0m" in run("transactions", "list", "--color", "always").out
        assert "reap" in run("transactions", "show", "0:1").out
        assert run("transactions", "list", "-o", "json").json[0]["state"] == "OPEN"

    def test_labels_cannot_drive_a_terminal(self, run: Any) -> None:
        """Nor break the table."""
        run("transactions", "begin", "--label", "job=a\x1b[2Jb\nc")
        out = run("transactions", "list").out
        assert "job=a\\x1b[2Jb\\nc" in out
        assert len(out.splitlines()) == 2
        assert "job=a\\x1b[2Jb\\nc" in run("transactions", "show", "0:1").out


class TestShow:
    """`transactions show`."""

    def test_everything_of_an_open_one(self, run: Any, stuck: str) -> None:
        """What it touched, with positions; the evidence of liveness; the next command."""
        row = run("transactions", "show", stuck, "-o", "json").json
        assert not undeclared(row, FIELDS)
        assert {part["kind"]: part["messages"] for part in row["parts"]} == {"topic": 15, "subscription": 15}
        out = run("transactions", "show", stuck).out
        assert f"{stuck}         OPEN, version {row['version']}" in out
        for text in (
            "produced to orders",
            "1:0, 1:2",
            "pending on payments-in, loader",
            "detached: no process",
        ):
            assert text in out
        assert out.endswith(f"Next: txnctl transactions abort {stuck} --dry-run\n")

    def test_of_an_ended_one_why_and_by_whom(self, run: Any, stuck: str) -> None:
        """With the reason given."""
        run("transactions", "abort", stuck, "--reason", "the loader hangs")
        row = run("transactions", "show", stuck, "-o", "json").json
        assert (row["state"], row["reason"], row["reasonText"]) == ("ABORTED", "asked", "the loader hangs")
        assert row["idleMs"] is None
        out = run("transactions", "show", stuck).out
        assert "asked: the loader hangs" in out
        assert row["endedBy"] in out
        assert "Next" not in out

    def test_an_id_may_be_shortened_for_reading_only(self, run: Any) -> None:
        """Where it is the beginning of one id alone."""
        for _ in range(12):
            run("transactions", "begin")
        run("transactions", "commit", "0:2")
        outcome = run("transactions", "show", "0:2", "-o", "name")
        assert outcome.out == "0:2\n"
        with Store.open(os.environ["TXNCTL_STORE"]) as store:
            for _ in range(8):
                store.begin_transaction()
        outcome = run("transactions", "show", "0:3", "-o", "name")
        assert (outcome.out, outcome.err) == ("0:3\n", "")
        assert run("transactions", "abort", "0:30").status == 3


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


class TestWaitAndReap:
    """`transactions wait` and `transactions reap`."""

    def test_wait_gives_up(self, run: Any) -> None:
        """Exit 7."""
        run("transactions", "begin")
        assert run("transactions", "wait", "0:1", "--timeout", "20ms").status == 7

    def test_wait_wakes_at_the_end(self, run: Any) -> None:
        """Committed elsewhere: success. `--exit-code` tells an abort apart."""
        run("transactions", "begin")
        waiting = started("transactions", "wait", "0:1", "-o", "json")
        time.sleep(0.3)
        assert waiting.poll() is None
        run("transactions", "commit", "0:1")
        status, out, _ = ended(waiting)
        assert status == 0
        assert '"state": "COMMITTED"' in out
        assert "was committed at" in run("transactions", "wait", "0:1", "--exit-code").out
        run("transactions", "begin")
        run("transactions", "abort", "0:2")
        assert run("transactions", "wait", "0:2").status == 0
        assert run("transactions", "wait", "0:2", "--exit-code").status == 8

    def test_wait_ends_what_becomes_overdue(self, run: Any) -> None:
        """There is no daemon: who waits does it."""
        run("transactions", "begin", "--timeout", "100ms")
        row = run("transactions", "wait", "0:1", "--timeout", "10s", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "timed-out")

    def test_reap_says_what_it_ends(self, run: Any) -> None:
        """A dry run the same, and nothing else changes."""
        run("transactions", "begin", "--timeout", "1h")
        run("transactions", "begin", "--timeout", "1ms")
        time.sleep(0.005)
        dry = run("transactions", "reap", "--dry-run", "-o", "json").json
        assert run("transactions", "show", "0:2", "-o", "json").json["state"] == "OPEN"
        real = run("transactions", "reap", "--reason", "cron", "-o", "json").json
        for rows in (dry, real):
            assert [(row["txnId"], row["state"], row["reason"]) for row in rows] == [
                ("0:2", "ABORTED", "timed-out")
            ]
            assert not undeclared(rows[0], ROW)
        assert run("transactions", "list", "-o", "name").out == "0:1\n"
        assert run("transactions", "reap", "-o", "json").json == []


class TestRun:
    """`transactions run -- CMD`."""

    def test_success_commits_all_at_once(self, run: Any, path: Path) -> None:
        """The command finds transaction and store in its environment, and gets stdin, arguments and stdout."""
        script = (
            'cat; echo $TXNCTL_TXN $TXNCTL_STORE "$@";'
            f"{sys.executable} -m txnctl subscriptions create orders s --from earliest >/dev/null"
        )
        process = started("transactions", "run", "--label", "job=x", "sh", "-c", script, "sh", "-o", "a b")
        out, err = process.communicate(b"from stdin\n", timeout=30)
        assert (process.returncode, err) == (0, b"")
        assert out.decode() == f"from stdin\n0:1 {path} -o a b\n"
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["attached"], row["labels"]) == ("COMMITTED", True, {"job": "x"})

    def test_what_the_command_produces_is_visible_after_it_or_never(self, path: Path) -> None:
        """Exit 0 commits, anything else aborts."""
        program = (
            "import os, sys; from storage import Store\n"
            "with Store.open(os.environ['TXNCTL_STORE']) as store:\n"
            "    store.create_producer('orders').send(sys.argv[1].encode(), txn=os.environ['TXNCTL_TXN'])\n"
            "sys.exit(int(sys.argv[2]))\n"
        )
        for value, code in (("kept", 0), ("dropped", 3)):
            status, _, err = ended(
                started("transactions", "run", "--", sys.executable, "-c", program, value, str(code))
            )
            assert status == code
            assert ("is aborted" in err) == (code == 3)
        with Store.open(path) as store:
            assert [m.value for m in store.reader("orders").read_batch(10)] == [b"kept"]

    @pytest.mark.parametrize(
        ("script", "status"),
        [("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
    )
    def test_it_exits_as_the_command_did(self, run: Any, script: str, status: int) -> None:
        """128 and the number for a signal; aborted, with the reason recorded."""
        assert ended(started("transactions", "run", "--", "sh", "-c", script))[0] == status
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["reasonText"]) == ("ABORTED", f"sh exited with {status}")

    @pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/", 126)])
    def test_what_cannot_be_run(self, run: Any, command: str, status: int) -> None:
        """As every command that runs another: 127 not found, 126 not runnable; nothing stays open."""
        found, out, err = ended(started("transactions", "run", command))
        assert (found, out) == (status, "")
        assert command in err
        assert run("transactions", "list", "-o", "json").json == []

    def test_a_nested_run_is_refused(self, run: Any) -> None:
        """Exit 4; the outer one is not harmed by it."""
        inner = f"{sys.executable} -m txnctl transactions run -- true; test $? = 4"
        status, _, err = ended(started("transactions", "run", "--", "sh", "-c", inner))
        assert status == 0
        assert "do not nest" in err
        assert run("transactions", "list", "--ended", "-o", "name").out == "0:1\n"

    def test_an_ending_by_the_command_itself_stands(self) -> None:
        """Aborted: run reports that its commit failed. Committed: it says so, and exits as the command."""
        txnctl = f"{sys.executable} -m txnctl"
        status, _, err = ended(
            started("transactions", "run", "--", "sh", "-c", f"{txnctl} transactions abort >/dev/null")
        )
        assert status == 4
        assert "sh succeeded, but the commit of its transaction failed" in err
        script = f"{txnctl} transactions commit >/dev/null; exit 5"
        status, _, err = ended(started("transactions", "run", "--", "sh", "-c", script))
        assert status == 5
        assert "had been committed by then" in err

    def test_a_deadline_that_passes_meanwhile(self) -> None:
        """The command succeeded, the commit did not: exit 4."""
        status, _, err = ended(started("transactions", "run", "--timeout", "50ms", "--", "sleep", "0.1"))
        assert status == 4
        assert "sleep succeeded, but" in err
        assert "--timeout" in err

    def test_it_holds_up_nobody(self, run: Any) -> None:
        """While the command runs others write, and LMDB has no reader of it."""
        process = started("transactions", "run", "--", "sh", "-c", "echo ready; cat")
        assert process.stdout is not None
        process.stdout.readline()
        assert run("transactions", "begin", "--lock-timeout", "50ms").status == 0
        with Store.open(os.environ["TXNCTL_STORE"], read_only=True) as store:
            assert [
                row
                for row in row_json(store.reports.list_readers())
                if row["pid"] == process.pid and row["commit"] is not None
            ] == []
        assert ended(process)[0] == 0

    def test_descriptors_and_ignored_signals_are_the_commands(self, run: Any, tmp_path: Path) -> None:
        """`3<file` passes through; an ignored SIGCHLD (inherited) does not hide the exit code."""
        given = tmp_path / "given"
        given.write_text("from 3\n")
        line = f"trap '' CHLD; exec {sys.executable} -m txnctl transactions run -- sh -c 'cat <&3; exit 6' 3<{given}"
        found = subprocess.run(["sh", "-c", line], capture_output=True, check=False, timeout=30)
        assert (found.returncode, found.stdout) == (6, b"from 3\n")
        assert run("transactions", "show", "0:1", "-o", "json").json["state"] == "ABORTED"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_signal_is_passed_on_and_the_transaction_aborted(
        self, run: Any, number: signal.Signals
    ) -> None:
        """Even if the command takes it for a reason to exit 0: what was told to stop is not a success."""
        name = number.name.removeprefix("SIG")
        script = f"trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.01; done"
        process = started("transactions", "run", "--", "sh", "-c", script, start_new_session=True)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        status, out, _ = ended(process)
        assert (status, out) == (128 + number, f"got {name}\n")
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["reasonText"]) == ("ABORTED", f"{number.name} was received")

    @pytest.mark.parametrize(("code", "state"), [(0, "COMMITTED"), (7, "ABORTED")])
    def test_ctrl_c_is_the_commands(self, run: Any, code: int, state: str) -> None:
        """It reaches the command once, from the terminal; what it makes of it decides."""
        script = f"n=0; trap 'n=$((n+1))' INT; echo ready; sleep 0.4; sleep 0.1; echo n=$n; exit {code}"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [*PYTHON, "transactions", "run", "--", "sh", "-c", script])
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        while True:
            try:
                got = os.read(terminal, 1000)
            except OSError:
                break
            seen += got
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        assert b"n=1" in seen
        assert (b"is committed" in seen) == (code == 0)
        assert run("transactions", "show", "0:1", "-o", "json").json["state"] == state


class TestDeath:
    """Rule 9: kill -9 of an owner shows as orphaned at once, and the next writer frees what it held."""

    @pytest.fixture
    def orphan(self, run: Any, path: Path, tmp_path: Path) -> Path:
        """A `run` killed outright in the middle, with a message in its transaction; what its command was told."""
        told = tmp_path / "told"
        program = (
            "import os, signal, sys, time; from storage import Store\n"
            "def tell(*_):\n"
            f"    open({str(told)!r}, 'w').write('SIGTERM')\n"
            "    sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, tell)\n"
            "with Store.open(os.environ['TXNCTL_STORE']) as store:\n"
            "    store.create_producer('orders').send(b'half', txn=os.environ['TXNCTL_TXN'])\n"
            "print('ready', flush=True)\n"
            "time.sleep(60)\n"
        )
        words = ("--store", str(path), "--", sys.executable, "-c", program)
        with started("transactions", "run", *words, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert run("transactions", "list", "-o", "json").json[0]["ownerState"] == "alive"
            process.send_signal(signal.SIGSTOP)
            wait_for(
                lambda: bool(run("transactions", "list", "-o", "json").json[0]["ownerState"] == "stopped"),
                "a stopped process counts as alive, and is called stopped",
            )
            process.kill()
        return told

    def test_it_is_orphaned_at_once(self, run: Any, orphan: Path) -> None:
        """In list and show, table and JSON; the command was told."""
        row = run("transactions", "list", "-o", "json").json[0]
        assert (row["state"], row["ownerState"], row["orphaned"]) == ("OPEN", "dead", True)
        assert "ORPHANED" in run("transactions", "list").out
        out = run("transactions", "show", "0:1").out
        assert "ORPHANED: its process is dead" in out
        assert out.endswith("Next: txnctl transactions reap\n")
        wait_for(lambda: orphan.exists() and orphan.read_text() == "SIGTERM", "the command was told")

    @pytest.mark.usefixtures("orphan")
    def test_the_next_writer_frees_what_it_held(self, run: Any, path: Path) -> None:
        """Whoever writes next; a living process with the same pid would not keep it open."""
        run("transactions", "begin")
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "owner-dead")
        with Store.open(path, read_only=True) as store:
            assert store.reader("orders").read_batch(10) == []
            assert row_json(store.reports.topic_stats("orders"))["ongoingTxnCount"] == 0

    @pytest.mark.usefixtures("orphan")
    def test_reap_frees_it_too(self, run: Any) -> None:
        """And names it; the owner check of abort does not stand in the way either."""
        assert run("transactions", "abort", "0:1", "--dry-run").status == 0
        rows = run("transactions", "reap", "-o", "json").json
        assert [(row["txnId"], row["reason"]) for row in rows] == [("0:1", "owner-dead")]
