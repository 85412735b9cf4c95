"""`transactions run --retries N`: the command runs again after a lost conflict, and after nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.transactions.transactions_steps import ended, started

pytestmark = pytest.mark.usefixtures("path")

TXNCTL = f"{sys.executable} -m txnctl"
COUNT = f"""
count=$({TXNCTL} tables get accounts n || echo 0)
echo try >> tries
if [ $(wc -l < tries) -le $LOSSES ]; then
    env -u TXNCTL_TXN {TXNCTL} transactions run -- {TXNCTL} tables get accounts n >/dev/null
fi
{TXNCTL} tables put accounts n $((count + 1))
"""
"""Increments a key. In the first tries a later transaction reads the key, so that the put is refused."""


@pytest.fixture
def here(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, beside a store with a key to count with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").put(b"n", b"0")
    return tmp_path


def tried(
    script: str, *options: str, losses: int, monkeypatch: pytest.MonkeyPatch, stdin: Any = subprocess.DEVNULL
) -> tuple[int, str, str]:
    """Run a script with retries; exit code, output and notes."""
    monkeypatch.setenv("LOSSES", str(losses))
    return ended(started("transactions", "run", *options, "--", "sh", "-c", script, stdin=stdin))


def tries_in(here: Path) -> int:
    return len((here / "tries").read_text().splitlines())


def states(run: Any) -> list[tuple[str, str]]:
    """State and priority of the transactions with job=count, the oldest first."""
    rows = run("transactions", "list", "--ended", "-o", "json").json
    return [
        (row["state"], row["priority"])
        for row in sorted(rows, key=lambda row: int(row["txnId"].partition(":")[2]))
        if row["labels"]
    ]


class TestLostConflict:
    """A further try after each."""

    def test_the_command_runs_again_in_a_new_transaction(
        self, run: Any, here: Path, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a higher priority; standard error has the progress."""
        status, _, err = tried(
            COUNT, "--retries", "3", "--label", "job=count", losses=2, monkeypatch=monkeypatch
        )
        assert (status, tries_in(here)) == (0, 3), err
        assert "try 1 of 4 lost key n of table accounts to " in err
        assert "try 2 of 4 lost key n of table accounts to " in err
        assert "try 3" not in err
        assert states(run) == [("ABORTED", "medium"), ("ABORTED", "high"), ("COMMITTED", "highest")]
        with Store.open(path) as store:
            assert store.table("accounts").get(b"n") == b"1"

    def test_the_end_is_that_of_the_last_try(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit code and error."""
        script = COUNT + "exit $((10 + $(wc -l < tries)))"
        status, _, err = tried(script, "--retries", "1", losses=9, monkeypatch=monkeypatch)
        assert (status, tries_in(here)) == (12, 2)
        assert err.splitlines()[-1].endswith("refused-write"), "the abort that came first stands"

    def test_a_conflict_that_the_command_hides_is_found_at_the_commit(
        self, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And the error after the last try is that of its commit."""
        status, _, err = tried(COUNT + "true", "--retries", "1", losses=9, monkeypatch=monkeypatch)
        assert (status, tries_in(here)) == (4, 2)
        assert err.count("sh succeeded, but the commit of its transaction failed") == 1

    def test_no_hint_advises_what_is_running(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The refused put says how many tries may follow; after the last one, what else helps."""
        _, _, err = tried(COUNT, "--retries", "1", losses=9, monkeypatch=monkeypatch)
        hints = [line for line in err.splitlines() if line.startswith("txnctl: hint: ")]
        assert hints == [
            "txnctl: hint: `transactions run` runs all of it again, with 1 further try.",
            "txnctl: hint: This was the last try of `transactions run`: give it more --retries, or a higher --priority.",
        ]
        _, _, err = tried(COUNT + "true", "--retries", "1", losses=9, monkeypatch=monkeypatch)
        assert err.splitlines()[-1].startswith("txnctl: hint: This was the last try of `transactions run`")
        assert "--retries 10" not in err
        (here / "tries").unlink()
        assert "--retries 10" in tried(COUNT, losses=1, monkeypatch=monkeypatch)[2]

    def test_without_the_option_there_is_one_try(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A script may have effects outside of the store."""
        assert tried(COUNT, losses=1, monkeypatch=monkeypatch)[0] == 4
        assert tries_in(here) == 1

    def test_a_signal_ends_the_wait(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Or the next try, where the wait was short; no third try begins."""
        monkeypatch.setenv("LOSSES", "9")
        process = started(
            "transactions", "run", "--retries", "9", "--", "sh", "-c", COUNT, stdin=subprocess.DEVNULL
        )
        assert process.stderr is not None
        while b"try 1 of 10" not in (line := process.stderr.readline()):
            assert line, "the process ended before its second try"
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 143
        assert tries_in(here) <= 2


class TestNothingElse:
    """No further try."""

    @pytest.mark.parametrize("ending", ["exit 4", "kill -TERM $$"])
    def test_after_a_failure(self, here: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
        """An exit code of 4 is not a conflict of this transaction."""
        script = COUNT + ending
        status = tried(script, "--retries", "5", losses=0, monkeypatch=monkeypatch)[0]
        assert (status, tries_in(here)) == (4 if ending == "exit 4" else 143, 1)

    def test_after_a_missing_command(self, here: Path) -> None:
        process = started(
            "transactions", "run", "--retries", "5", "--", "no-such-command", stdin=subprocess.DEVNULL
        )
        assert ended(process)[0] == 127

    def test_after_an_interrupt_of_the_command(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Even where the transaction has lost: a user who types Ctrl-C wants an end."""
        status = tried(COUNT + "kill -INT $$", "--retries", "5", losses=9, monkeypatch=monkeypatch)[0]
        assert (status, tries_in(here)) == (130, 1)

    def test_after_the_deadline(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        options = ("--retries", "5", "--timeout", "50ms")
        # Real time: a deadline has no event.
        status = tried("echo try >> tries; sleep 0.1", *options, losses=0, monkeypatch=monkeypatch)[0]
        assert (status, tries_in(here)) == (4, 1)


class TestInput:
    """Each try reads the same input."""

    def test_a_file_is_read_from_the_same_position(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """That at which the file stood when the first try began."""
        (here / "input").write_text("header\nline 1\nline 2\n")
        with open(here / "input", "rb", buffering=0) as file:
            assert file.read(7) == b"header\n"
            status = tried(
                "cat >> copies; echo end >> copies;" + COUNT,
                *("--retries", "2"),
                losses=1,
                monkeypatch=monkeypatch,
                stdin=file,
            )[0]
        assert status == 0
        assert (here / "copies").read_text() == "line 1\nline 2\nend\n" * 2

    def test_a_pipe_is_refused(self, run: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything has begun."""
        options = ("--retries", "1", "--label", "job=count")
        status, _, err = tried(COUNT, *options, losses=0, monkeypatch=monkeypatch, stdin=subprocess.PIPE)
        assert (status, (here / "tries").exists()) == (2, False)
        assert "standard input" in err and "/dev/null" in err
        assert states(run) == []

    def test_a_closed_input_has_no_content(self, here: Path) -> None:
        line = f"exec {TXNCTL} transactions run --retries 1 -- true <&-"
        assert subprocess.run(["sh", "-c", line], check=False, timeout=120).returncode == 0
