"""`txnctl status`."""

from __future__ import annotations

import os
import pty
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.fields.overview import OVERVIEW
from txnctl.output.field import undeclared


def test_a_new_store_is_ok(run: Callable[..., Any], path: Path) -> None:
    """No finding, no next command; every field is declared; nothing is written."""
    before = (path / "data.mdb").read_bytes()
    row = run("status", "-o", "json").json
    assert (row["verdict"], row["findings"]) == ("ok", [])
    assert not undeclared(row, OVERVIEW)
    lines = run("status").out.splitlines()
    assert lines[0].split()[:2] == ["bank.store", "ok"]
    assert not any(line.startswith(("Next:", "  !")) for line in lines)
    assert run("status", "-o", "name").out == "ok\n"
    assert (path / "data.mdb").read_bytes() == before


@pytest.mark.usefixtures("stuck")
def test_the_numbers_are_those_of_the_other_reports(run: Callable[..., Any], path: Path) -> None:
    """Each command says the same of the same thing."""
    row = run("status", "-o", "json").json
    (topic,), (subscription,) = row["topics"], row["subscriptions"]
    with Store.open(path, read_only=True) as store:
        stats = row_json(store.reports.topic_stats("orders"))
        assert topic["blockedMessages"] == stats["blockedMessages"] == 3
        assert topic["oldestBlockedMs"] == stats["oldestBlockedMs"]
        assert topic["blockedBy"] == stats["blockedBy"]["txnId"]
        expected = stats["subscriptions"]["billing"]
        assert {name: expected[name] for name in ("visible", "blocked", "uncommitted", "verdict")} == {
            name: subscription[name] for name in ("visible", "blocked", "uncommitted", "verdict")
        }
        assert row["transactions"]["open"] == len(row_json(store.reports.list_transactions()))
        assert row["tables"][0]["intents"] == len(row_json(store.reports.list_intents()))


def test_elsewhere_than_on_a_terminal_it_is_drawn_once(run: Callable[..., Any], path: Path) -> None:
    """No escape sequence leaves; a note says why it ended."""
    assert path.exists()
    for words in ((), ("-o", "json")):
        outcome = run("status", "--watch", *words)
        assert outcome.status == 0
        assert "\x1b" not in outcome.out
        assert "on a terminal only" in outcome.err


def test_watching_draws_anew_until_ctrl_c(start: Callable[..., Any], path: Path) -> None:
    """What happens meanwhile shows, no view is held between two looks, and Ctrl-C ends it quietly with 130."""
    ours, theirs = pty.openpty()
    process = start("status", "--watch", "100ms", stdout=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[H") < 3:
        seen += os.read(ours, 65536)
    with Store.open(path) as store:
        store.create_topic("fresh")
        until = time.monotonic() + 30
        while any(
            row["pid"] == process.pid and row["state"] == "reading"
            for row in row_json(store.reports.list_readers())
        ):
            assert time.monotonic() < until
    while b"fresh" not in seen:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    os.close(ours)
