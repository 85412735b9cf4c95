"""`txnctl transactions run`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.transactions.transactions_steps import PYTHON, ended, started
from tests.txnctl.processes import drained, shown

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


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
        seen = shown(terminal, b"ready")
        os.write(terminal, b"\x03")
        seen += drained(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        assert b"n=1" in seen
        assert (b"is committed" in seen) == (code == 0)
        assert run("transactions", "show", "0:1", "-o", "json").json["state"] == state
