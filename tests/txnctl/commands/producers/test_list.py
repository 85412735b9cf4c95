"""`txnctl producers list`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.producers.producers_steps import producing, rows
from tests.waiting import wait_for
from txnctl.commands.producers.list import LISTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


class TestList:
    """`producers list`."""

    def test_nobody_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("producers", "list", "-o", "json").json == []
        outcome = run("producers", "list", "orders")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no producers are connected to orders" in outcome.err
        assert run("producers", "list", "nowhere").status == 3

    def test_table_and_json_agree(self, run: Any, path: Path) -> None:
        """ProcessIdentity, waiting one with its place, a Shared one of another topic, each with what is proven of it."""
        with Store.open(path) as store:
            store.create_producer("payments", producer_name="shared").send(b"x")
            assert run("producers", "open", "orders", "--producer", "loader").status == 0
            with producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "next", waits=True
            ) as waiting:
                found = run("producers", "list", "-o", "json").json
                assert not undeclared(found[0], LISTED)
                lines = run("producers", "list").out.splitlines()
                assert run("producers", "list", "-o", "name").out == "loader\nnext\nshared\n"
                assert run("producers", "list", "payments", "-o", "name").out == "shared\n"
                waiting.send_signal(signal.SIGSTOP)
                wait_for(lambda: rows(path)[1]["state"] == "stopped", "it is called stopped")
                assert "stopped" in run("producers", "list").out
        assert [(row["name"], row["producerName"], row["state"], row["place"]) for row in found] == [
            ("orders", "loader", "leased", None),
            ("orders", "next", "alive", 1),
            ("payments", "shared", "alive", None),
        ]
        assert lines[0].split() == [
            "TOPIC", "PRODUCER", "MODE", "ROLE", "EPOCH", "OWNER", "PROGRAM", "ALIVE", "CONNECTED", "LAST", "PUBLISH"
        ]  # fmt: skip
        owner, following, shared = lines[1:]
        for line, row, cells in (
            (owner, found[0], ("loader", "Exclusive", "owner", "lease ")),
            (following, found[1], ("next", "WaitForExclusive", "waiting 1", "yes")),
            (shared, found[2], ("shared", "Shared", "shared", "yes")),
        ):
            assert f"{row['host']}:{row['pid']}" in line
            for cell in cells:
                assert f" {cell}" in line

    def test_names_cannot_drive_a_terminal(self, run: Any, path: Path) -> None:
        """A producer's program may be called anything."""
        with Store.open(path, program="evil\x1b[2J") as store, store.create_producer("orders"):
            for command in ("list", "show"):
                out = run("producers", command, "orders").out
                assert "evil" in out
                assert "\x1b" not in out
