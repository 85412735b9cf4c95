"""Delayed messages at the end: `txnctl/commands/consume/delayed_note.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.consume.consume_steps import send

pytestmark = pytest.mark.usefixtures("path")

TOPICS = ("orders",)
WORDS = ("consume", "orders", "-s", "s", "--subscription-type", "shared", "--from", "earliest")


class TestDelayedNote:
    """What waits for its time is said, and when the next one comes."""

    def test_a_timeout_names_the_time_of_the_next_message(self, run: Any, path: Path) -> None:
        """In place of the advice to ask `doctor`, which finds nothing."""
        send(path, b"a", deliver_at=4_102_444_800_000)
        send(path, b"b", b"c", deliver_at=4_102_448_400_000)
        outcome = run(*WORDS, "--timeout", "10ms")
        assert outcome.status == 7
        assert "3 messages of orders are delayed, the next one until 2100-01-01T00:00:00" in outcome.err
        assert "hint: The next message is due in " in outcome.err
        assert "doctor" not in outcome.err

    def test_a_run_to_the_end_says_it_too(self, run: Any, path: Path) -> None:
        """Once all that may be delivered has come."""
        send(path, b"now")
        send(path, b"later", deliver_at=4_102_444_800_000)
        outcome = run(*WORDS, "-o", "value")
        assert (outcome.status, outcome.out) == (0, "now\n")
        assert "1 message of orders is delayed, the next one until 2100-01-01" in outcome.err

    def test_without_delayed_messages_nothing_is_said(self, run: Any, path: Path) -> None:
        """A type that delivers in order delays nothing."""
        send(path, b"a", deliver_at=4_102_444_800_000)
        outcome = run("consume", "orders", "-s", "s", "--from", "earliest", "-o", "value")
        assert outcome.out == "a\n"
        assert "delayed" not in outcome.err
        outcome = run("consume", "orders", "-s", "s", "--timeout", "10ms")
        assert "`txnctl doctor`" in outcome.err
