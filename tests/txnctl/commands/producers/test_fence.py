"""`txnctl producers fence`."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.commands.producers.producers_steps import PYTHON, ended, producing, rows, send, values
from tests.txnctl.processes import drained, shown
from tests.waiting import wait_for
from txnctl.commands.producers.fence import FENCED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


class TestFence:
    """`producers fence`."""

    def test_no_terminal_and_no_yes_is_refused_with_the_plan(self, run: Any, path: Path) -> None:
        """Code 9; nobody is evicted."""
        run("producers", "open", "orders", "--producer", "loader")
        outcome = run("producers", "fence", "orders")
        assert (outcome.status, outcome.out) == (9, "")
        assert "evicts    loader (Exclusive, " in outcome.err
        assert [row["producerName"] for row in rows(path)] == ["loader"]

    def test_the_dry_run_is_the_real_one(self, run: Any, path: Path) -> None:
        """With --waiting those too, transactions too; afterwards all of them are told."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader", "--atomic") as owner,
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            send(owner, b"held\n")
            wait_for(lambda: bool(run("txn", "list", "--topic", "orders", "-o", "json").json), "it has sent")
            dry = run("producers", "fence", "orders", "--waiting", "--dry-run", "-o", "json").json
            out = run("producers", "fence", "orders", "--waiting", "--dry-run").out
            assert len(rows(path)) == 2
            words = ("--waiting", "--yes", "--reason", "hangs", "-o", "json")
            real = run("producers", "fence", "orders", *words).json
            assert rows(path) == []
            assert ended(owner, b"more\n")[0] == 4
            assert ended(waiting)[0] == 4
        for row in (dry, real):
            assert not undeclared(row, FENCED)
            assert (row["topicEpochBefore"], row["topicEpoch"]) == (0, 1)
            assert [each["producerName"] for each in row["evicted"]] == ["loader", "second"]
            assert row["transactionsAborted"] == ["0:1"]
        assert (dry["dryRun"], real["dryRun"]) == (True, False)
        assert out.startswith("DRY RUN: nothing was changed.\n\nFence the producers of orders\n")
        for text in (
            "raises    the epoch 0 -> 1",
            "evicts    loader (Exclusive, ",
            ", waiting, ",
            "aborts    0:1",
        ):
            assert text in out
        assert out.endswith('Run: txnctl producers fence orders --waiting --yes --reason "..."\n')
        assert values(path) == []
        audit = run("audit", "list", "-o", "json").json[0]
        assert (audit["action"], audit["target"], audit["reason"]) == ("producers fence", "orders", "hangs")
        assert run("produce", "orders", "-m", "free again").status == 0

    def test_the_plan_has_the_numbers_of_what_follows(self, run: Any, path: Path) -> None:
        """What is discarded and released, and what each subscription is handed then."""
        with Store.open(path) as store:
            store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        run("transactions", "begin")
        run("produce", "orders", "-m", "half", "--txn", "0:1")
        for value in ("one", "two"):
            run("produce", "orders", "-m", value)
        dry = run("producers", "fence", "orders", "--dry-run", "-o", "json").json
        out = run("producers", "fence", "orders", "--dry-run").out
        real = run("producers", "fence", "orders", "--yes", "-o", "json").json
        lag = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        assert not undeclared(real, FENCED)
        assert {**dry, "dryRun": False} == real
        assert (real["messagesDiscarded"], real["acknowledgementsReleased"]) == (1, 0)
        assert "  discards  1 message\n" in out
        assert "  unblocks  2 of 2  billing 0 -> 2 visible\n" in out
        assert (lag["visible"], lag["blocked"]) == (2, 0)

    def test_who_waits_is_next(self, run: Any, path: Path) -> None:
        """The stopped owner is evicted; the waiting producer keeps its place, owns the topic, and stores its message."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner,
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            owner.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[0]["state"] == "stopped", "it is called stopped")
            out = run("producers", "fence", "orders", "--dry-run").out
            row = run("producers", "fence", "orders", "--yes", "-o", "json").json
            assert [each["producerName"] for each in row["evicted"]] == ["loader"]
            assert [each["producerName"] for each in row["waiting"]] == ["second"]
            assert ended(waiting, b"kept\n")[0] == 0
            owner.send_signal(signal.SIGCONT)
            assert ended(owner, b"lost\n")[0] == 4
        assert "  keeps     second (WaitForExclusive, waiting, " in out
        assert "  next      second owns the topic within a second\n" in out
        assert values(path) == [b"kept"]

    def test_a_stopped_one_that_waits_keeps_its_place(self, run: Any, path: Path) -> None:
        """Nobody is promoted before it: the plan says so, and --waiting evicts it."""
        with (
            producing(path, "--access-mode", "exclusive"),
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            waiting.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[1]["state"] == "stopped", "it is called stopped")
            out = run("producers", "fence", "orders", "--yes").out
            shown = run("producers", "show", "orders", "-o", "json").json
            found = run("doctor", "-o", "json").json["findings"]
            assert f"second, once it is continued: kill -CONT {waiting.pid}; or --waiting evicts it" in out
            assert shown["next"] == "txnctl producers fence orders --waiting --dry-run"
            (told,) = [each["why"] for each in found if each["code"] == "producers-waiting"]
            assert told.endswith("`txnctl producers fence orders --waiting`.")
            assert run(*shown["next"].split()[1:]).status == 0
            assert run("producers", "fence", "orders", "--waiting", "--yes").status == 0
            assert rows(path) == []

    def test_a_free_topic_can_be_fenced(self, run: Any) -> None:
        """Who was connected once cannot come back with its epoch."""
        run("produce", "orders", "-m", "a", "--access-mode", "exclusive")
        assert "evicted   nobody" in run("producers", "fence", "orders", "--yes").out
        words = ("--access-mode", "exclusive", "--epoch", "0")
        assert run("produce", "orders", "-m", "b", *words).status == 4
        assert run("producers", "fence", "nowhere", "--yes").status == 3

    @pytest.mark.parametrize(("typed", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 9, 1)])
    def test_on_a_terminal_it_asks(self, path: Path, typed: bytes, status: int, left: int) -> None:
        """With the plan first."""
        with Store.open(path) as store:
            store.open_session("orders")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [*PYTHON, "producers", "fence", "orders"])
        assert b"raises    the epoch 0 -> 1" in shown(terminal, b"[y/N] ")
        os.write(terminal, typed)
        drained(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
        assert len(rows(path)) == left
