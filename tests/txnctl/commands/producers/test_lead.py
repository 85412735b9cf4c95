"""`txnctl producers lead`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from storage import AccessMode, Store
from tests.row_json import row_json
from tests.txnctl.processes import (
    IMPATIENT,
    IMPATIENT_GRACE_S,
    PATIENT,
    drained,
    shown,
    started,
)  # fmt: skip
from tests.waiting import let_pass, wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


PYTHON = [sys.executable, "-m", "txnctl"]


TXNCTL = f"{sys.executable} -m txnctl"


LEAD = ("producers", "lead", "orders")


READY = ("sh", "-c", "echo ready; cat")
"""A command that says when it runs, and ends with its standard input."""


def rows(path: Path) -> list[dict[str, Any]]:
    """Who is connected to `orders`, and who waits."""
    with Store.open(path, read_only=True) as store:
        return row_json(store.reports.list_producers("orders"))


def names(path: Path) -> list[str]:
    return [row["producerName"] for row in rows(path)]


def values(path: Path) -> list[bytes | None]:
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader("orders")]


@contextmanager
def leading(
    *words: str, command: tuple[str, ...] = READY, program: tuple[str, ...] = PATIENT
) -> Iterator[subprocess.Popen[bytes]]:
    """A leader of `orders` whose command runs and has said `ready`."""
    with started(*LEAD, *words, "--", *command, program=program) as process:
        said(process, b"ready\n")
        yield process


def said(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == line


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Its exit code, what it printed, and what it said."""
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()


TOLD = (
    "import pathlib, signal, sys\n"
    "def tell(*_):\n"
    "    pathlib.Path(sys.argv[1]).write_text('SIGTERM')\n"
    "    sys.exit(int(sys.argv[2]))\n"
    "signal.signal(signal.SIGTERM, tell)\n"
    "print('ready', flush=True)\n"
    "signal.pause()\n"
)
"""A command that writes down that it was told to end, and exits as it is asked to."""


def sole_token(store: Store) -> str:
    """The token of the only session on `orders`."""
    from storage.topic import catalogue as topics
    from storage.topic.producers import session as sessions

    with store.connection.view() as view:
        (found,) = sessions.every(view, topics.get(view, "orders").topic_id)
        return found.token


class TestLead:
    """One command at a time, as the exclusive producer."""

    def test_what_the_command_produces_is_the_leaders(self, run: Any, path: Path) -> None:
        """It finds session and store in its environment, gets stdin and arguments; afterwards the topic is free."""
        script = f'cat; echo "$@"; {TXNCTL} produce orders -m by-the-leader -o json'
        with started(*LEAD, "--producer", "leader-a", "sh", "-c", script, "sh", "-o", "a b") as process:
            out, err = process.communicate(b"from stdin\n", timeout=30)
        assert (process.returncode, err) == (0, b"")
        lines = out.decode().splitlines()
        assert lines[:2] == ["from stdin", "-o a b"]
        assert '"producerName": "leader-a",' in [line.strip() for line in lines]
        assert '"topicEpoch": 0,' in [line.strip() for line in lines]
        assert values(path) == [b"by-the-leader"]
        assert rows(path) == []
        with Store.open(path, read_only=True) as store:
            (row,) = row_json(store.reports.ownership_history("orders"))
        assert (row["producerName"], row["accessMode"], row["endedBy"]) == (
            "leader-a",
            "WaitForExclusive",
            "closed",
        )

    def test_meanwhile_nobody_else_produces(self, run: Any, path: Path) -> None:
        """On other topics everybody does, the command's own produce too."""
        script = f"{TXNCTL} produce payments -m aside && echo ready; cat"
        with leading(command=("sh", "-c", script)) as process:
            assert run("produce", "orders", "-m", "x").status == 4
            assert run("produce", "payments", "-m", "x").status == 0
            assert ended(process)[0] == 0
        assert run("produce", "orders", "-m", "x").status == 0

    @pytest.mark.parametrize(
        ("script", "status"),
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
    )
    def test_it_exits_as_the_command_did(self, path: Path, script: str, status: int) -> None:
        """128 and the number for a signal; the topic is released whatever it was."""
        with started(*LEAD, "--", "sh", "-c", script) as process:
            assert ended(process)[0] == status
        assert rows(path) == []
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.ownership_history("orders"))[0]["endedBy"] == "closed"

    @pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/", 126), ("./none", 127)])
    def test_what_cannot_be_run_is_not_waited_for(self, path: Path, command: str, status: int) -> None:
        """127 not found, 126 not runnable, also while somebody leads; no epoch is taken for it."""
        with leading(), started(*LEAD, command) as process:
            found, out, err = ended(process)
        assert (found, out) == (status, "")
        assert command in err
        assert "waiting" not in err
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.topic_stats("orders"))["topicEpoch"] == 0

    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (("nowhere", "--", "true"), 3),
            (("orders",), 2),
            (("orders", "--"), 2),
            (("orders", "--access-mode", "shared", "--", "true"), 2),
            (("orders", "--access-mode", "exclusive", "--timeout", "1s", "--", "true"), 2),
            (("orders", "--producer", "a b", "--", "true"), 2),
            (("orders", "--on-fenced", "panic", "--", "true"), 2),
            (("orders", "--txn", "0:77", "--", "true"), 3),
        ],
    )
    def test_what_makes_no_sense_runs_nothing(self, path: Path, words: tuple[str, ...], status: int) -> None:
        """One error, its exit code, and nobody was the leader."""
        with started("producers", "lead", *words) as process:
            found, out, err = ended(process)
        assert (found, out) == (status, ""), err
        assert "Traceback" not in err
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.topic_stats("orders"))["topicEpoch"] is None

    def test_it_holds_up_nobody(self, run: Any, path: Path) -> None:
        """While the command runs others write, and LMDB has no reader of it."""
        with leading() as process:
            assert run("produce", "payments", "-m", "x", "--lock-timeout", "50ms").status == 0
            with Store.open(path, read_only=True) as store:
                held = [row for row in row_json(store.reports.list_readers()) if row["pid"] == process.pid]
            assert [row for row in held if row["commit"] is not None] == []
            assert ended(process)[0] == 0

    def test_a_take_over_evicts_and_leads(self, path: Path) -> None:
        """--access-mode ExclusiveWithFencing; Exclusive gives up at once."""
        with Store.open(path) as store:
            store.open_session("orders", producer_name="old")
            with started(*LEAD, "--access-mode", "exclusive", "--", "echo", "led") as process:
                status, out, err = ended(process)
            assert (status, out) == (4, "")
            assert "old (Exclusive, " in err
            with started(*LEAD, "--access-mode", "exclusive-with-fencing", "--", "echo", "led") as process:
                assert ended(process)[:2] == (0, "led\n")

    def test_inside_a_transaction_it_is_one_unit(self, run: Any, path: Path) -> None:
        """`transactions run -- producers lead`: a take-over spares the transaction that goes on under it."""
        inner = f"{TXNCTL} produce orders -m before && {TXNCTL} producers lead orders --access-mode"
        script = f"{inner} exclusive-with-fencing -- {TXNCTL} produce orders -m after"
        with started("transactions", "run", "--", "sh", "-e", "-c", script) as process:
            status, _, err = ended(process)
        assert status == 0, err
        assert values(path) == [b"before", b"after"]


class TestNesting:
    """A leader that waited to become the leader would wait for itself."""

    def test_on_the_same_topic_it_is_refused(self, path: Path) -> None:
        """Exit 4 with the reason; the outer one is not harmed."""
        inner = f"{TXNCTL} producers lead orders -- true; test $? = 4"
        with started(*LEAD, "--producer", "outer", "--", "sh", "-c", inner) as process:
            status, _, err = ended(process)
        assert status == 0
        assert "under the session of outer on orders already" in err
        assert "unset TXNCTL_SESSION" in err

    def test_on_another_topic_it_is_not_nested(self, path: Path) -> None:
        """The inner command leads that one; the outer's session is the outer's again afterwards."""
        inner = f"{TXNCTL} producers lead payments -- true && {TXNCTL} produce orders -m still-mine"
        with started(*LEAD, "--", "sh", "-c", inner) as process:
            assert ended(process)[0] == 0
        assert values(path) == [b"still-mine"]

    def test_a_session_that_is_over_does_not_stand_in_the_way(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_SESSION left over in a shell."""
        with Store.open(path) as store:
            token = row_json(store.open_session("orders"))["session"]
            monkeypatch.setenv("TXNCTL_SESSION", token)
            with started(*LEAD, "--", "true") as process:
                assert ended(process)[0] == 4
            store.admin.producers.close_session(token)
            with started(*LEAD, "--", "true") as process:
                assert ended(process)[0] == 0
            store.admin.topics.delete_topic("orders", force=True)
            store.create_topic("orders")
            with started(*LEAD, "--", "true") as process:
                assert ended(process)[0] == 0


class TestWaiting:
    """First come first served."""

    def test_several_lead_one_after_the_other_in_order(self, path: Path, tmp_path: Path) -> None:
        """Each runs alone, in the order in which they came."""
        log = tmp_path / "log"
        # Real time: one that led beside would be seen.
        script = f'echo "in $0" >> {log}; sleep 0.05; echo "out $0" >> {log}'
        with leading() as first, ExitStack() as stack:
            rivals = []
            for number in range(4):
                rival = stack.enter_context(started(*LEAD, "--", "sh", "-c", script, str(number)))
                assert rival.stderr is not None
                assert b"waiting for orders behind producer-" in rival.stderr.readline()
                rivals.append(rival)
            assert [row["place"] for row in rows(path)] == [None, 1, 2, 3, 4]
            assert ended(first)[0] == 0
            for rival in rivals:
                status, _, err = ended(rival)
                assert status == 0
                assert "leading orders, epoch " in err
        order = log.read_text().splitlines()
        assert order == [f"{what} {number}" for number in range(4) for what in ("in", "out")]
        assert rows(path) == []

    def test_racing_ones_never_lead_at_once(self, path: Path, tmp_path: Path) -> None:
        """Started together: every one leads once; a directory that must not be there twice proves it."""
        held = tmp_path / "held"
        # Real time: one that led beside would be seen.
        script = f"mkdir {held} && sleep 0.02 && rmdir {held} && {TXNCTL} produce orders -m $0"
        with ExitStack() as stack:
            rivals = [
                stack.enter_context(started(*LEAD, "--", "sh", "-c", script, str(number)))
                for number in range(5)
            ]
            assert [ended(rival)[0] for rival in rivals] == [0] * 5
        assert sorted(values(path)) == [b"%d" % number for number in range(5)]
        with Store.open(path, read_only=True) as store:
            assert [row["topicEpoch"] for row in row_json(store.reports.ownership_history("orders"))] == [
                4,
                3,
                2,
                1,
                0,
            ]

    def test_a_dead_one_is_skipped_and_a_stopped_one_is_not(self, path: Path) -> None:
        """Killed while it waited: the next one is next. Stopped: its turn is waited for."""
        with (
            leading() as first,
            started(*LEAD, "--producer", "dead", "--", "echo", "dead") as dead,
        ):
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            with started(*LEAD, "--producer", "stopped", "--", "echo", "stopped") as stopped:
                wait_for(lambda: len(rows(path)) == 3, "it waits")
                with started(*LEAD, "--producer", "last", "--", "echo", "last") as last:
                    wait_for(lambda: len(rows(path)) == 4, "it waits")
                    dead.kill()
                    stopped.send_signal(signal.SIGSTOP)
                    assert ended(first)[0] == 0
                    let_pass(0.7, "the last one would have taken the topic")
                    assert last.poll() is None
                    assert "stopped" in names(path)
                    stopped.send_signal(signal.SIGCONT)
                    assert ended(stopped)[:2] == (0, "stopped\n")
                    assert ended(last)[:2] == (0, "last\n")

    def test_it_gives_up_in_time(self, path: Path) -> None:
        """Exit 7; the command never ran."""
        with leading(), started(*LEAD, "--timeout", "50ms", "--", "echo", "led") as process:
            status, out, err = ended(process)
            assert (status, out) == (7, "")
            assert "giving up after 50ms" in err
            assert len(rows(path)) == 1

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_while_waiting_gives_the_place_up(self, path: Path, number: signal.Signals) -> None:
        """128 and its number, at once; the command never ran."""
        with leading(), started(*LEAD, "--", "echo", "led") as process:
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            process.send_signal(number)
            status, out, err = ended(process)
            assert (status, out) == (128 + number, "")
            assert "Traceback" not in err
            assert len(rows(path)) == 1

    def test_ctrl_c_while_waiting(self, path: Path) -> None:
        """From a terminal: 130, and its place is gone."""
        with leading():
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(sys.executable, [*PYTHON, *LEAD, "--", "echo", "led"])
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            # The place is stored before the line is written.
            seen = shown(terminal, b"waiting for orders behind")
            os.write(terminal, b"\x03")
            seen += drained(terminal)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
            assert b"led" not in seen
            assert len(rows(path)) == 1

    def test_an_operators_fence_ends_the_wait(self, run: Any, path: Path) -> None:
        """Exit 4, fenced; the command never ran."""
        with leading(), started(*LEAD, "--", "echo", "led") as process:
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            assert run("producers", "fence", "orders", "--waiting", "--yes").status == 0
            status, out, err = ended(process)
            assert (status, out) == (4, "")
            assert "fenced" in err

    def test_a_fence_of_the_leader_promotes_who_waits(self, run: Any, path: Path) -> None:
        """It leads, and its command runs."""
        with leading(), started(*LEAD, "--", "echo", "led") as process:
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            assert run("producers", "fence", "orders", "--yes").status == 0
            assert ended(process)[:2] == (0, "led\n")


class TestSignals:
    """What reaches the command, and what it decides."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_signal_is_passed_on(self, path: Path, number: signal.Signals) -> None:
        """What the command makes of it is the exit code; the topic is released."""
        name = number.name.removeprefix("SIG")
        script = f"trap 'echo got {name}; exit 6' {name}; echo ready; while :; do sleep 0.01; done"
        with started(*LEAD, "--", "sh", "-c", script, start_new_session=True) as process:
            said(process, b"ready\n")
            process.send_signal(number)
            assert ended(process)[:2] == (6, f"got {name}\n")
        assert rows(path) == []

    def test_a_signal_that_ends_the_command(self, path: Path) -> None:
        """143, as the shell has it."""
        with leading(command=("sh", "-c", "echo ready; exec sleep 60")) as process:
            process.send_signal(signal.SIGTERM)
            assert ended(process)[0] == 143
        assert rows(path) == []

    @pytest.mark.parametrize("code", [0, 7])
    def test_ctrl_c_is_the_commands(self, path: Path, code: int) -> None:
        """It reaches the command once, from the terminal; what it makes of it decides."""
        # Real time: a signal that came twice would be counted.
        after = f"sleep 0.1; echo n=$n; exit {code}"
        script = f"n=0; trap 'n=$((n+1))' INT; echo ready; until [ $n -gt 0 ]; do sleep 0.01; done; {after}"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [*PYTHON, *LEAD, "--", "sh", "-c", script])
        seen = shown(terminal, b"ready")
        os.write(terminal, b"\x03")
        seen += drained(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        assert b"n=1" in seen
        assert rows(path) == []


class TestLoss:
    """The leader dies, hangs, or is fenced while its command runs."""

    def test_killed_outright_the_command_is_told_and_the_next_one_leads(
        self, path: Path, tmp_path: Path
    ) -> None:
        """kill -9: the kernel frees the topic at once, and sends the command SIGTERM."""
        told = tmp_path / "told"
        command = (sys.executable, "-c", TOLD, str(told), "0")
        with leading(command=command) as process, started(*LEAD, "--", "echo", "led") as following:
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            process.kill()
            assert ended(following)[:2] == (0, "led\n")
            wait_for(lambda: told.exists() and told.read_text() == "SIGTERM", "the command was told")
        with Store.open(path, read_only=True) as store:
            assert [row["endedBy"] for row in row_json(store.reports.ownership_history("orders"))] == [
                "closed",
                "dead",
            ]

    def test_what_outlives_its_leader_cannot_publish(self, path: Path, tmp_path: Path) -> None:
        """A command that ignores the signal has a session whose process is dead: fenced, though nobody took over."""
        done = tmp_path / "done"
        script = (
            f"trap '' TERM; echo ready; read line; {TXNCTL} produce orders -m late; echo $? > {done}.part; "
            f"mv {done}.part {done}"
        )
        with leading(command=("sh", "-c", script)) as process:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.write(b"go on\n")
            process.stdin.flush()
            wait_for(done.exists, "it has tried")
        assert done.read_text() == "4\n"
        assert values(path) == []

    def test_fenced_what_the_command_has_started_is_told_too(self, path: Path, tmp_path: Path) -> None:
        """A shell that ends leaves nothing of its work behind that goes on as if it led."""
        pid = tmp_path / "pid"
        script = f"sleep 60 & echo $! > {pid}; echo ready; wait"
        with leading(command=("sh", "-c", script)) as process:
            with Store.open(path) as store:
                store.admin.producers.fence_producers("orders")
            assert ended(process)[0] == 128 + signal.SIGTERM
        wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), "its work has ended")

    def test_fenced_what_ignores_the_signal_is_killed(self, path: Path) -> None:
        """After ten seconds, here two: nothing goes on as if it led."""
        deaf = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
        with leading(command=deaf, program=IMPATIENT) as process:
            began = time.monotonic()
            with Store.open(path) as store:
                store.admin.producers.fence_producers("orders")
            assert ended(process)[0] == 128 + signal.SIGKILL
        assert time.monotonic() - began > IMPATIENT_GRACE_S

    @pytest.mark.parametrize("how", ["fence", "take-over", "delete", "close"])
    def test_fenced_the_command_is_told_to_end(self, run: Any, path: Path, tmp_path: Path, how: str) -> None:
        """SIGTERM within a second or so, with the reason on standard error; it exits as the command did."""
        told = tmp_path / "told"
        with leading("--producer", "old", command=(sys.executable, "-c", TOLD, str(told), "5")) as process:
            with Store.open(path) as store:
                if how == "fence":
                    store.admin.producers.fence_producers("orders")
                elif how == "take-over":
                    mode = AccessMode.EXCLUSIVE_WITH_FENCING
                    store.create_producer("orders", access_mode=mode, producer_name="new").close()
                elif how == "delete":
                    store.admin.topics.delete_topic("orders", force=True)
                else:
                    store.admin.producers.close_session(sole_token(store))
            status, _, err = ended(process)
        assert status == 5
        assert told.read_text() == "SIGTERM"
        reason = {
            "fence": "fenced its producers, epoch 1",
            "take-over": "new (ExclusiveWithFencing, ",
            "delete": "the topic was deleted",
            "close": "the session was closed",
        }[how]
        assert f"txnctl: warning: orders is lost: {reason}" in err or reason in err
        assert f"{sys.executable} is told to end" in err

    def test_on_fenced_ignore_leaves_the_command_alone(self, run: Any, path: Path) -> None:
        """It is said; the command ends when it wants, and nothing that it publishes is stored."""
        script = f"echo ready; read line; {TXNCTL} produce orders -m late; echo $?"
        with leading("--on-fenced", "ignore", command=("sh", "-c", script)) as process:
            assert run("producers", "fence", "orders", "--yes").status == 0
            assert process.stderr is not None
            assert b"orders is lost: " in process.stderr.readline()
            out, err = process.communicate(b"go on\n", timeout=30)
        assert (process.returncode, out) == (0, b"4\n")
        assert b"told to end" not in err
        assert values(path) == []

    def test_a_stopped_leader_keeps_the_topic_until_it_is_fenced(self, run: Any, path: Path) -> None:
        """SIGSTOP counts as alive; after ExclusiveWithFencing and SIGCONT it learns that it has lost."""
        with leading(command=("sh", "-c", "echo ready; exec sleep 60")) as process:
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[0]["state"] == "stopped", "it is called stopped")
            words = ("produce", "orders", "-m", "x", "--access-mode")
            assert run(*words, "wait-for-exclusive", "--timeout", "50ms").status == 7
            assert run(*words, "exclusive-with-fencing").status == 0
            process.send_signal(signal.SIGCONT)
            status, _, err = ended(process)
        assert status == 143
        assert "is lost: producer-" in err
        assert values(path) == [b"x"]
