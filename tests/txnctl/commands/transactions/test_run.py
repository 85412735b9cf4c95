"""`txnctl transactions run`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.process.identity import process_facts
from tests.row_json import row_json
from tests.txnctl.commands.transactions.transactions_steps import PYTHON, ended, started
from tests.txnctl.processes import IMPATIENT, IMPATIENT_GRACE_S, drained, shown
from tests.waiting import let_pass, wait_for
from txnctl.cli import farewell

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
        # Real time: a deadline has no event.
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
        # Real time: a signal that came twice would be counted.
        after = f"sleep 0.1; echo n=$n; exit {code}"
        script = f"n=0; trap 'n=$((n+1))' INT; echo ready; until [ $n -gt 0 ]; do sleep 0.01; done; {after}"
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


WAITING = "trap 'echo told; exit 6' TERM; echo ready; while :; do sleep 0.01; done"
"""A command that says when it runs and when it is told to end."""


@contextmanager
def running(script: str, *options: str, program: Sequence[str] = PYTHON) -> Iterator[subprocess.Popen[bytes]]:
    """`transactions run` of a script that has said `ready`; nothing of it is left at the end."""
    words = ("transactions", "run", *options, "--", "sh", "-c", script)
    with started(*words, program=program, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until_told(place: Path) -> tuple[str, Callable[[subprocess.Popen[bytes]], None]]:
    """A script that says `ready` and exits 3 when it is told, and how it is told: once a supervisor would have ended it."""

    def go_on(process: subprocess.Popen[bytes]) -> None:
        let_pass(1.5, "the supervisor would have looked, and ended the command")
        assert process.poll() is None
        (place / "go").touch()

    return f"echo ready; until [ -e {place}/go ]; do sleep 0.01; done; exit 3", go_on


def is_alive(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is not None and not facts.has_ended


def abort_by_an_operator(path: Path) -> None:
    """From this process, which is no child of the run."""
    with Store.open(path, program="operator") as store:
        store.admin.transactions.abort_transaction("0:1", reason="stuck since the deploy", force=True)


@pytest.mark.kills
@pytest.mark.slow
class TestOperatorsAbort:
    """The transaction is aborted by another one while the command runs."""

    @pytest.fixture
    def reason(self, run: Any) -> Callable[[], tuple[str, str]]:
        """Reads what the record says of the end."""

        def read() -> tuple[str, str]:
            row = run("transactions", "show", "0:1", "-o", "json").json
            return row["reason"], row["reasonText"]

        return read

    def test_the_command_is_told_to_end(self, path: Path, reason: Callable[[], tuple[str, str]]) -> None:
        """Within a second or so; the exit code is its own, and the reason of the operator stands."""
        with running(WAITING) as process:
            abort_by_an_operator(path)
            status, out, err = ended(process)
        assert (status, out) == (6, "told\n")
        assert "warning: transaction 0:1 was aborted by " in err
        assert "(operator), asked: stuck since the deploy; sh is told to end\n" in err
        assert "is aborted: sh exited" not in err
        assert reason() == ("asked", "stuck since the deploy")

    def test_its_children_are_told_too_and_who_ignores_it_is_killed(self, path: Path, tmp_path: Path) -> None:
        """After ten seconds, here two."""
        assert farewell.GRACE_S == 10
        script = (
            f"sleep 60 & echo $! > {tmp_path}/pid; trap '' TERM; echo ready; while :; do sleep 0.05; done"
        )
        began = time.monotonic()
        with running(script, program=IMPATIENT) as process:
            abort_by_an_operator(path)
            child = int((tmp_path / "pid").read_text())
            wait_for(lambda: not is_alive(child), "its child is told")
            assert process.poll() is None
            assert ended(process)[0] == 128 + signal.SIGKILL
        assert time.monotonic() - began > IMPATIENT_GRACE_S

    def test_success_after_the_signal_is_none(self, path: Path) -> None:
        """There is nothing to commit: exit 4, with the operator's reason."""
        with running(WAITING.replace("exit 6", "exit 0")) as process:
            abort_by_an_operator(path)
            status, _, err = ended(process)
        assert status == 4
        assert "sh succeeded, but the commit of its transaction failed" in err
        assert "reason: asked (stuck since the deploy)" in err

    def test_with_continue_it_is_left_alone(self, path: Path, tmp_path: Path) -> None:
        """It is said all the same, once."""
        script, go_on = until_told(tmp_path)
        with running(script, "--on-abort", "continue") as process:
            abort_by_an_operator(path)
            assert process.stderr is not None
            assert process.stderr.readline().endswith(b"; sh goes on (--on-abort continue)\n")
            go_on(process)
            status, _, err = ended(process)
        assert (status, err.count("was aborted by")) == (3, 1)

    @pytest.mark.parametrize("how", ["command", "api"])
    def test_an_abort_by_the_command_itself_leaves_it_alone(
        self, path: Path, tmp_path: Path, how: str
    ) -> None:
        """It may clean up for as long as it likes."""
        abort = f"{sys.executable} -m txnctl transactions abort > /dev/null"
        if how == "api":
            abort = (
                f"{sys.executable} -c 'import os; from storage import Store\n"
                'with Store.open(os.environ["TXNCTL_STORE"]) as store:\n'
                '    store.admin.transactions.abort_transaction(os.environ["TXNCTL_TXN"], force=True)\''
            )
        script, go_on = until_told(tmp_path)
        with running(f"{abort}; {script}") as process:
            go_on(process)
            status, _, err = ended(process)
        assert status == 3
        assert "told to end" not in err

    def test_an_abort_by_the_command_says_that_the_command_goes_on(self, path: Path) -> None:
        """Neither the dry run nor the abort announces an end that does not come."""
        abort = f"{sys.executable} -m txnctl transactions abort"
        with running(f"echo ready; {abort} --dry-run; {abort}; exit 3") as process:
            status, out, _ = ended(process)
        assert status == 3
        assert out.count("whose command this is part of: it goes on") == 2
        assert "ends its command" not in out

    @pytest.mark.parametrize("end", ["commit", "deadline"])
    def test_other_ends_leave_it_alone(self, run: Any, path: Path, tmp_path: Path, end: str) -> None:
        """The next txnctl in the command is told; who waits for nothing is not disturbed."""
        options = ("--timeout", "100ms") if end == "deadline" else ()
        script, go_on = until_told(tmp_path)
        with running(script, *options) as process:
            if end == "commit":
                assert run("transactions", "commit", "0:1").status == 0
            else:
                wait_for(
                    lambda: bool(run("transactions", "reap", "-o", "name").out.strip() == "0:1"), "it is late"
                )
            go_on(process)
            status, _, err = ended(process)
        assert status == 3
        assert "told to end" not in err

    def test_a_signal_after_it_does_not_change_the_reason(
        self, path: Path, reason: Callable[[], tuple[str, str]]
    ) -> None:
        """Neither in the record nor in words."""
        with running(WAITING) as process:
            abort_by_an_operator(path)
            process.send_signal(signal.SIGTERM)
            status, _, err = ended(process)
        assert status == 6
        assert "SIGTERM was received" not in err
        assert "(operator), asked: stuck since the deploy\n" in err
        assert reason() == ("asked", "stuck since the deploy")

    def test_the_abort_names_who_lives_on(self, run: Any) -> None:
        """The supervisor by its pid, and what becomes of its command; a stopped one learns of it later."""
        with running(WAITING) as process:
            dry = run("transactions", "abort", "0:1", "--dry-run", "--force").out
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            out = run("transactions", "abort", "0:1", "--force", "--reason", "stuck since the deploy").out
            process.send_signal(signal.SIGCONT)
            assert ended(process)[0] == 6
        survivor = (
            f"  survives     process {process.pid} (txnctl transactions run sh), which ends its command"
        )
        assert survivor in dry
        assert survivor in out
        assert "kill -CONT" not in dry
        assert f"kill -CONT {process.pid}\n" in out
