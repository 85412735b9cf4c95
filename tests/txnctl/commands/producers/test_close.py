"""`txnctl producers close`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.producers.producers_steps import rows
from txnctl.commands.producers.close import CLOSED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


class TestSessions:
    """`producers open` and `close`, and what publishes through a session."""

    def open(self, run: Any, *words: str) -> str:
        """The token of a new session on `orders`."""
        outcome = run("producers", "open", "orders", *words)
        assert outcome.status == 0, outcome
        return str(outcome.out.strip())

    @pytest.mark.parametrize("text", ["", "nonsense", "1-2", "1-2-zz", "0-1-00", "1-2-00-3", "٣-1-00", "-1"])
    def test_what_is_no_token_is_bad_input(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        """Exit 2, saying where it stands."""
        for words in (("produce", "orders", "-m", "a", "--session"), ("producers", "close", "--")):
            outcome = run(*words, text, "-o", "json") if words[0] == "produce" else run(*words, text)
            assert outcome.status == 2, outcome
            assert "Traceback" not in outcome.err
        if text:
            monkeypatch.setenv("TXNCTL_SESSION", text)
            outcome = run("produce", "orders", "-m", "a")
            assert outcome.status == 2
            assert "TXNCTL_SESSION: " in outcome.err

    def test_close_frees_the_topic(self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By token or environment, once; a dry run leaves it; the reason is in the audit trail."""
        token = self.open(run, "--producer", "loader")
        assert run("producers", "close").status == 2
        monkeypatch.setenv("TXNCTL_SESSION", token)
        dry = run("producers", "close", "--dry-run")
        assert dry.out.startswith("DRY RUN: nothing was changed.\n")
        assert "Would close the session of loader on orders (Exclusive, epoch 0)." in dry.out
        assert len(rows(path)) == 1
        row = run("producers", "close", "--reason", "done", "-o", "json").json
        assert not undeclared(row, CLOSED)
        assert (row["producerName"], row["dryRun"], row["next"]) == ("loader", False, None)
        assert rows(path) == []
        assert run("audit", "list", "-o", "json").json[0]["reason"] == "done"
        again = run("producers", "close", "-o", "json")
        assert (again.status, again.error["code"]) == (3, "session-not-found")
        monkeypatch.delenv("TXNCTL_SESSION")
        fenced = run("produce", "orders", "-m", "a", "--session", token, "-o", "json")
        assert (fenced.status, fenced.error["code"]) == (4, "producer-fenced")
        assert run("produce", "orders", "-m", "a").status == 0

    @pytest.mark.parametrize("mode", ["Exclusive", "Shared"])
    def test_a_closed_session_is_said_to_be_closed(self, run: Any, mode: str) -> None:
        """By whom and when for an owner; nobody has published, and nobody is said to have."""
        token = self.open(run, "--producer", "loader", "--access-mode", mode)
        assert run("producers", "close", token).status == 0
        for line in (
            ("produce", "orders", "-m", "a", "--session", token),
            ("producers", "open", "orders", "--resume", token),
        ):
            outcome = run(*line, "-o", "json")
            assert (outcome.status, outcome.error["code"]) == (4, "producer-fenced")
            message = outcome.error["message"]
            assert "closed" in message, message
            assert "published" not in message and "produced" not in message, message
            if mode == "Exclusive":
                assert "its session was closed at 20" in message
                assert "(txnctl producers close)" in message
