"""Several people at one store: rules 9, 10, 12 and 13 of the command line's contract, with real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.processes import drained, shown

pytestmark = pytest.mark.usefixtures("path")

PYTHON = [sys.executable, "-m", "txnctl"]

SEEK = ("subscriptions", "seek", "orders", "billing", "latest")
SKIP = ("subscriptions", "skip", "orders", "billing", "2")
CLEAR = ("subscriptions", "clear-backlog", "orders", "billing")
DELETE = ("subscriptions", "delete", "orders", "billing")
DESTRUCTIVE = [SEEK, SKIP, CLEAR, DELETE]


@pytest.fixture
def path(path: Path) -> Path:
    """A store in which `billing` has three messages before it; verified in full when the test is over."""
    with Store.open(path) as store:
        store.create_topic("orders")
        store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        store.create_producer("orders").send_batch([b"a", b"b", b"c"])
    return path


def both(*lines: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """Run command lines at the same time; exit code, output and what was said of each, in order of exit code."""
    processes = [
        subprocess.Popen(
            [*PYTHON, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for words in lines
    ]
    found = [process.communicate(timeout=30) for process in processes]
    codes = [process.returncode for process in processes]
    return sorted((code, out.decode(), err.decode()) for code, (out, err) in zip(codes, found, strict=True))


def messages(run: Any) -> int:
    """How many messages `billing` may be handed."""
    visible: int = run("subscriptions", "lag", "orders", "billing", "-o", "json").json["visible"]
    return visible


class TestTwoOperators:
    """Rule 12: one succeeds, the other is told so."""

    def test_both_abort_the_same_transaction(self, run: Any) -> None:
        """One aborts it; the other hears when, why and by whom it was done."""
        both(("transactions", "begin"))  # By a process that has ended, as a shell's.
        found = both(*[("transactions", "abort", "0:1", "--reason", f"operator {n}") for n in (1, 2)])
        assert [code for code, _, _ in found] == [0, 0]
        did = [out for _, out, _ in found if out.startswith("Aborted 0:1 (OPEN")]
        told = [out for _, out, _ in found if "was aborted already at" in out]
        assert (len(did), len(told)) == (1, 1)
        reason = run("transactions", "show", "0:1", "-o", "json").json["reasonText"]
        assert f"asked: {reason}." in told[0]

    def test_both_abort_the_version_that_they_looked_at(self, run: Any) -> None:
        """The abort followed the version that both looked at: the other is told, and may ask again."""
        both(("transactions", "begin"))  # By a process that has ended, as a shell's.
        found = both(*[("transactions", "abort", "0:1", "--if-version", "1") for _ in range(2)])
        assert [code for code, _, _ in found] == [0, 0]
        assert sum("was aborted already at" in out for _, out, _ in found) == 1
        assert run("transactions", "abort", "0:1", "--if-version", "1").status == 0
        assert run("transactions", "abort", "0:1", "--if-version", "9").status == 4

    def test_one_commits_and_the_other_aborts(self, run: Any) -> None:
        """Exactly one of both happens, and the other says which."""
        both(("transactions", "begin"))  # By a process that has ended, as a shell's.
        found = both(("transactions", "commit", "0:1"), ("transactions", "abort", "0:1"))
        assert [code for code, _, _ in found] == [0, 4]
        state = run("transactions", "show", "0:1", "-o", "json").json["state"]
        assert f"it was {state.lower()} at" in found[1][2]

    def test_both_skip(self, run: Any) -> None:
        """Each skips its own: nothing is skipped twice, nothing is lost."""
        found = both(*[("subscriptions", "skip", "orders", "billing", "1", "--yes") for _ in range(2)])
        assert [out.startswith("Skipped 1 message ") for _, out, _ in found] == [True, True]
        assert messages(run) == 1

    def test_both_delete(self) -> None:
        """One does; to the other it is not found."""
        assert [code for code, _, _ in both(*[(*DELETE, "--yes")] * 2)] == [0, 3]

    def test_a_transaction_used_meanwhile_is_not_the_one_looked_at(self, run: Any, path: Path) -> None:
        """The dry run's version is refused, and nothing is lost."""
        both(("transactions", "begin"))  # By a process that has ended, as a shell's.
        dry = run("transactions", "abort", "0:1", "--dry-run", "-o", "json").json
        with Store.open(path) as store:
            store.create_producer("orders").send(b"meanwhile", txn="0:1")
        outcome = run("transactions", "abort", "0:1", "--if-version", str(dry["version"]))
        assert outcome.status == 4
        assert run("transactions", "commit", "0:1").status == 0
        assert messages(run) == 4


class TestNobodyToAsk:
    """Rule 13: no terminal and no --yes: code 9, and the plan on standard error."""

    @pytest.mark.parametrize("words", DESTRUCTIVE, ids=lambda words: words[1])
    def test_without_a_terminal_it_is_refused_with_the_plan(self, run: Any, words: tuple[str, ...]) -> None:
        """Even if somebody pipes a yes in; nothing was changed."""
        outcome = run(*words, stdin=b"y\n")
        assert (outcome.status, outcome.out) == (9, "")
        assert "billing" in outcome.err or "markDeletePosition 1:-1 -> 1:0" in outcome.err
        assert "--yes" in outcome.err
        assert len(outcome.err.splitlines()) >= 3
        assert messages(run) == 3

    @pytest.mark.parametrize("words", DESTRUCTIVE, ids=lambda words: words[1])
    def test_in_json_the_plan_is_in_the_error(self, run: Any, words: tuple[str, ...]) -> None:
        """One object on standard error."""
        outcome = run(*words, "-o", "json")
        assert (outcome.status, outcome.out) == (9, "")
        assert outcome.error["code"] == "needs-confirmation"
        assert outcome.error["details"]["plan"]
        assert len(outcome.err.splitlines()) == 1

    @pytest.mark.parametrize("words", DESTRUCTIVE, ids=lambda words: words[1])
    def test_a_dry_run_asks_nothing(self, run: Any, words: tuple[str, ...]) -> None:
        """It changes nothing."""
        outcome = run(*words, "--dry-run")
        assert (outcome.status, outcome.err) == (0, "")
        assert messages(run) == 3

    @pytest.mark.parametrize(("answer", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 9, 3), (b"\n", 9, 3)])
    def test_on_a_terminal_it_asks(self, run: Any, answer: bytes, status: int, left: int) -> None:
        """y goes on, anything else does not."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [*PYTHON, *CLEAR])
        assert b"skips     3 messages of billing on orders" in shown(terminal, b"[y/N] ")
        os.write(terminal, answer)
        drained(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
        assert messages(run) == left


class TestReusedPid:
    """Rule 9: a lock proves that an owner lives, never its pid."""

    def test_a_reused_pid_does_not_revive_an_orphan(self, run: Any, path: Path) -> None:
        """A transaction whose record names a living process, that never held its lock, is orphaned."""
        program = (
            "import os, sys\n"
            "from storage import Store\n"
            "from storage.process.identity import ProcessIdentity, started\n"
            "store = Store.open(sys.argv[1]); own = store.connection.identity; pid = os.getppid()\n"
            "store.connection.identity = ProcessIdentity(own.host, own.boot_id, pid, started(pid), own.user, own.program)\n"
            "txn = store.transaction()\n"
            "store.create_producer('orders').send(b'half', txn=txn)\n"
            "txn.flush()\n"
            "os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=30)
        row = run("transactions", "list", "-o", "json").json[0]
        assert f":{os.getpid()} (" in row["owner"]
        assert (row["ownerState"], row["orphaned"]) == ("dead", True)
        run("transactions", "begin")
        assert run("transactions", "show", row["txnId"], "-o", "json").json["reason"] == "owner-dead"
