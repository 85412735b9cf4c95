"""Stop signals: `txnctl/commands/consume/stop_signals.py`, with real processes, signals and terminals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.process.identity import process_facts
from tests.storage.held_gate import held_gate
from tests.txnctl.commands.consume.consume_steps import backlog, send, send_batch
from tests.txnctl.processes import drained, shown
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("path"), pytest.mark.kills]

TOPICS = ("orders",)
TAKE = ("consume", "orders", "-s", "s", "--from", "earliest")
FOLLOW = (*TAKE, "-f", "--exec")

HANDLER = "trap 'echo TERM' TERM; trap 'echo HUP' HUP; read v; echo took $v; read go < go; echo done $v"
"""Says what it took and each signal, and ends when a word comes through the FIFO `go`."""

STUBBORN = "trap '' TERM; sh -c 'echo $$; read go < go' & echo $$; read go < go"
"""Ignores SIGTERM, as does its child; both say their pids."""


@pytest.fixture(autouse=True)
def fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The FIFO `go` in the directory of all commands."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("go")
    return tmp_path / "go"


@pytest.fixture
def consume(start: Any) -> Callable[..., subprocess.Popen[bytes]]:
    """Start a line without a terminal."""
    return lambda *words: start(*words, start_new_session=True)


def has_ended(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is None or facts.has_ended


def heard(process: subprocess.Popen[bytes]) -> None:
    """Wait until the first signal is taken."""
    while b"what is in hand is finished" not in (line := process.stderr.readline()):  # type: ignore[union-attr]
        assert line


_IN_A_THREAD = """
import sys, threading
from txnctl.cli.main import main
statuses = []
thread = threading.Thread(target=lambda: statuses.append(main(sys.argv[1:])))
thread.start()
thread.join()
sys.exit(statuses[0])
"""


def test_a_program_may_consume_in_a_thread(path: Path) -> None:
    """Signals are the program's there: only its main thread may set handlers."""
    send(path, b"a")
    line = [sys.executable, "-c", _IN_A_THREAD, "consume", "orders", "-f", "-n", "1", "-o", "value"]
    done = subprocess.run(line, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"a\n"), done.stderr


class TestTerminated:
    """SIGTERM."""

    def test_the_handler_in_hand_ends_and_its_message_is_acknowledged(
        self, consume: Any, path: Path, fifo: Path
    ) -> None:
        """The signal is not passed on, nothing more is taken, exit 0."""
        send(path, b"a", b"b")
        process = consume(*FOLLOW, HANDLER)
        assert process.stdout.readline() == b"took a\n"
        process.send_signal(signal.SIGTERM)
        fifo.write_text("go\n")
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, b"done a\n"), err
        assert b"1 message done, 0 failed" in err
        assert backlog(path) == 1

    def test_before_the_consumer_is_attached_nothing_is_taken(self, consume: Any, path: Path) -> None:
        """The signal comes while the command waits for the writer gate, to subscribe."""
        send(path, b"a")
        with Store.open(path) as store, held_gate(store):
            process = consume(*TAKE, "-f", "-o", "value")
            assert b"waiting" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            heard(process)
        assert process.communicate(timeout=30)[0] == b""
        assert process.returncode == 0

    def test_without_follow_the_exit_code_is_that_of_the_signal(
        self, consume: Any, path: Path, fifo: Path
    ) -> None:
        """The handler ends all the same: 143 says that messages were left."""
        send(path, b"a", b"b")
        process = consume(*TAKE, "--exec", HANDLER)
        assert process.stdout.readline() == b"took a\n"
        process.send_signal(signal.SIGTERM)
        fifo.write_text("go\n")
        assert process.communicate(timeout=30)[0] == b"done a\n"
        assert process.returncode == 143
        assert backlog(path) == 1

    def test_a_handler_that_fails_at_the_end_fails_as_ever(
        self, consume: Any, path: Path, fifo: Path
    ) -> None:
        """Its message is given back, and the exit code is its own; with --on-error retry the end is in order."""
        send(path, b"a")
        for words, status in (((), 9), (("--on-error", "retry", "--retry-delay", "0s"), 0)):
            process = consume(*FOLLOW, "echo ready; read go < go; exit 9", *words)
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGTERM)
            fifo.write_text("go\n")
            assert process.wait(30) == status
            assert backlog(path) == 1

    def test_the_second_ends_the_whole_group(self, consume: Any, path: Path) -> None:
        """SIGKILL for a handler and its child that ignore SIGTERM; the message is given back."""
        send(path, b"a")
        process = consume(*FOLLOW, STUBBORN)
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert {os.getpgid(pid) for pid in pids} == {min(pids)}
        process.send_signal(signal.SIGTERM)
        heard(process)
        assert not any(map(has_ended, pids))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        wait_for(lambda: all(map(has_ended, pids)), "the group has ended")
        assert backlog(path) == 1

    def test_a_child_that_the_handler_left_to_itself_ends_with_the_group(
        self, consume: Any, path: Path
    ) -> None:
        """The shell between them has ended long before."""
        send(path, b"a")
        process = consume(*FOLLOW, "(sh -c 'echo $$; read go < go' &); read go < go")
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        wait_for(lambda: has_ended(pid), "the child has ended")
        assert backlog(path) == 1

    def test_a_term_behind_an_interrupt_promises_nothing(self, consume: Any, path: Path) -> None:
        """Ctrl-C ends the handler and gives its message back: nothing in hand is finished."""
        send(path, b"a")
        process = consume(*FOLLOW, "trap 'echo told; read go < go' TERM; echo ready; read go < go; echo more")
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"told\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert b"in hand" not in err
        assert backlog(path) == 1

    def test_what_is_being_written_is_written_and_acknowledged(self, consume: Any, path: Path) -> None:
        """A full pipe stands in the way of the rest of the batch; every line comes whole."""
        with Store.open(path) as store:
            store.create_producer("orders").send_batch([b"%01000d" % number for number in range(1000)])
        process = consume(*TAKE, "-f", "-o", "value")
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out = process.stdout.read()
        assert process.wait(30) == 0
        assert (first + out).split() == [b"%01000d" % number for number in range(1000)]
        assert backlog(path) == 0

    def test_the_array_of_json_is_closed(self, consume: Any, path: Path) -> None:
        """One document, acknowledged once it is out."""
        send_batch(path, 2)
        process = consume(*TAKE, "-f", "-n", "3", "-o", "json")
        wait_for(lambda: has_delivered(path), "both are in hand")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert out.count(b'"value"') == 2
        assert out.endswith(b"]\n")
        assert backlog(path) == 0

    def test_a_reader_that_follows_ends_with_0(self, consume: Any, path: Path) -> None:
        """Without -s: the lines that came are out."""
        send(path, b"a")
        process = consume("consume", "orders", "-f", "-o", "value")
        assert process.stdout.readline() == b"a\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0

    def test_a_reader_in_the_middle_of_its_output_ends_with_whole_lines(
        self, consume: Any, path: Path
    ) -> None:
        """The entry in hand is written to its end."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            for _ in range(50):
                producer.send_batch([b"x" * 9999] * 10)
        process = consume("consume", "orders", "-f", "-o", "value")
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out = process.stdout.read()
        assert process.wait(30) == 0
        assert set((first + out).splitlines(keepends=True)) == {b"x" * 9999 + b"\n"}

    def test_a_signal_that_was_ignored_stays_ignored(self, path: Path, fifo: Path) -> None:
        """As nohup and shells want it."""
        send(path, b"a", b"b")
        words = ("sh", "-c", "trap '' TERM HUP; exec \"$@\"", "sh", sys.executable, "-m", "txnctl")
        with subprocess.Popen([*words, *FOLLOW, HANDLER, "-n", "2"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for value in (b"a", b"b"):
                assert process.stdout.readline() == b"took %s\n" % value
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGHUP)
                fifo.write_text("go\n")
                assert process.stdout.readline() == b"done %s\n" % value
            assert process.wait(30) == 0
        assert backlog(path) == 0


def has_delivered(path: Path) -> bool:
    """Whether both messages of the batch are with the consumer."""
    with Store.open(path, read_only=True) as store:
        try:
            stats = store.reports.subscription_stats("orders", "s").row.stats
        except Exception:  # noqa: BLE001  the subscription is not there yet
            return False
        return stats.unacked_messages == 2


@pytest.fixture
def terminal(path: Path) -> Iterator[Callable[..., tuple[int, int]]]:
    """Start a line as the session leader at a terminal of its own: the pid, and the terminal."""
    pids = []

    def begin(*words: str) -> tuple[int, int]:
        pid, master = pty.fork()
        if not pid:
            os.execv(sys.executable, [sys.executable, "-m", "txnctl", *words])
        pids.append(pid)
        return pid, master

    yield begin
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def status_of(pid: int) -> int:
    """The exit code of a child that is left for the fixture to reap."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status


class TestHungUp:
    """SIGHUP."""

    def test_without_a_terminal_it_is_ignored(self, consume: Any, path: Path, fifo: Path) -> None:
        """A rotation of logs ends no worker, and its handler hears nothing."""
        send(path, b"a", b"b")
        process = consume(*FOLLOW, HANDLER, "-n", "2")
        for value in (b"a", b"b"):
            assert process.stdout.readline() == b"took %s\n" % value
            process.send_signal(signal.SIGHUP)
            fifo.write_text("go\n")
            assert process.stdout.readline() == b"done %s\n" % value
        assert process.wait(30) == 0
        assert backlog(path) == 0

    def test_at_a_terminal_it_is_as_sigterm(self, terminal: Any, path: Path, fifo: Path) -> None:
        """The handler ends, exit 0; a second SIGHUP of the same hang-up changes nothing."""
        send(path, b"a", b"b")
        pid, master = terminal(*FOLLOW, HANDLER)
        shown(master, b"took a")
        os.kill(pid, signal.SIGHUP)
        shown(master, b"what is in hand is finished")
        os.kill(pid, signal.SIGHUP)
        fifo.write_text("go\n")
        assert b"HUP\r\n" not in shown(master, b"1 message done")
        assert status_of(pid) == 0
        drained(master)
        assert backlog(path) == 1

    def test_the_end_of_the_terminal(self, terminal: Any, path: Path, fifo: Path, tmp_path: Path) -> None:
        """Nobody reads the notes any more: what is in hand is done and acknowledged all the same."""
        send(path, b"a", b"b")
        pid, master = terminal(*FOLLOW, "read v; echo took $v; read go < go; echo $v > done")
        shown(master, b"took a")
        os.close(master)
        fifo.write_text("go\n")
        assert status_of(pid) == 0
        assert (tmp_path / "done").read_text() == "a\n"
        assert backlog(path) == 1

    def test_a_second_signal_at_a_terminal_ends_what_the_handler_started(
        self, terminal: Any, path: Path
    ) -> None:
        """In the group of the terminal: the handler and its children, not those beside txnctl."""
        send(path, b"a")
        pid, master = terminal(*FOLLOW, STUBBORN)
        seen = b""
        while seen.count(b"\n") < 2 + seen.count(b"txnctl:"):
            seen += os.read(master, 1000)
        pids = [int(line) for line in seen.split() if line.isdigit()]
        os.kill(pid, signal.SIGHUP)
        shown(master, b"what is in hand is finished")
        os.kill(pid, signal.SIGTERM)
        assert status_of(pid) == 143
        drained(master)
        wait_for(lambda: all(map(has_ended, pids)), "they have ended")
        assert backlog(path) == 1


class TestInterrupted:
    """Ctrl-C at a terminal."""

    def test_ctrl_c_ends_both(self, terminal: Any, path: Path) -> None:
        """The terminal tells the handler, too; exit 130, and the message is given back."""
        send(path, b"a")
        pid, master = terminal(*FOLLOW, "trap 'echo INT > heard; exit' INT; echo ready; read go < go")
        shown(master, b"ready")
        os.write(master, b"\x03")
        assert status_of(pid) == 130
        drained(master)
        assert Path("heard").read_text() == "INT\n"
        assert backlog(path) == 1

    def test_a_handler_may_read_the_terminal(self, terminal: Any, path: Path) -> None:
        """A handler in a group of its own would be stopped there (SIGTTIN)."""
        send(path, b"a")
        pid, master = terminal(*FOLLOW, "echo which?; read word < /dev/tty; echo $word > word", "-n", "1")
        shown(master, b"which?")
        os.write(master, b"this one\n")
        assert status_of(pid) == 0
        drained(master)
        assert Path("word").read_text() == "this one\n"
        assert backlog(path) == 0
