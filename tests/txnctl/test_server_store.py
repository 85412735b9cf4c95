"""Commands on a store on a server: named by a URL, without a word about files, and never with a password."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.throwaway_server import Server
from tests.txnctl.conftest import Outcome

Run = Callable[..., Outcome]

pytestmark = pytest.mark.needs_program("initdb")


@pytest.fixture
def url(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty store, which the environment names."""
    url = server.url()
    monkeypatch.setenv("TXNCTL_STORE", url)
    made = run("store", "init", "--durability", "local")
    assert made.status == 0, made.err
    yield url
    assert run("store", "verify", "--full").status == 0


def test_the_story_of_the_readme_runs_on_a_url(url: str, run: Run) -> None:
    """Two isolation levels, a transfer held open, its end."""
    lines = [
        ("topics", "create", "requests"), ("produce", "requests", "-m", "deposit B1 500"),
        ("subscriptions", "create", "requests", "E", "--from", "earliest"),
        ("subscriptions", "create", "requests", "D", "--isolation-level", "READ_UNCOMMITTED", "--from", "earliest"),
    ]  # fmt: skip
    for line in lines:
        assert run(*line).status == 0, line
    txn = run("transactions", "begin", "--label", "job=transfer").out.strip()
    assert run("produce", "requests", "--txn", txn, "-m", "withdraw B1 100").status == 0
    assert run("consume", "requests", "-s", "E", "-o", "value").out == "deposit B1 500\n"
    assert run("consume", "requests", "-s", "D", "-o", "value").out == "deposit B1 500\nwithdraw B1 100\n"
    assert run("transactions", "commit", txn).status == 0
    assert run("consume", "requests", "-s", "E", "-o", "value").out == "withdraw B1 100\n"


def test_a_server_without_a_standby_is_refused_unless_accepted(server: Server, run: Run) -> None:
    """With the option that accepts it; nothing is made."""
    url = server.url()
    refused = run("store", "init", url)
    assert refused.status == 6
    assert "--durability local" in refused.err
    assert run("status", "--store", url).status == 6


@pytest.mark.parametrize("command", [("status",), ("doctor",), ("store", "locks"), ("store", "space")])
def test_reports_speak_of_no_file(url: str, run: Run, command: tuple[str, ...]) -> None:
    """Nor of the disk, or of places for readers."""
    shown = run(*command)
    assert shown.status == 0, shown.err
    for word in ("data.mdb", " file ", "the disk has", "places taken"):
        assert word not in shown.out


@pytest.mark.parametrize(
    "line",
    [("store", "compact", "--yes"), ("store", "config", "reserve", "2MiB", "--yes")],
)
def test_what_works_on_directories_alone_says_so(url: str, run: Run, line: tuple[str, ...]) -> None:
    """Exit 2, and what to do instead."""
    refused = run(*line)
    assert refused.status == 2
    assert "server" in refused.err
    assert "hint" in refused.err


class TestPasswords:
    """A password stays in the environment."""

    @pytest.fixture
    def secret(self, url: str) -> str:
        return url.replace("postgres@", "postgres:secret@")

    @pytest.mark.parametrize("line", [("status", "--store"), ("store", "init")])
    def test_a_typed_one_is_refused(self, secret: str, run: Run, line: tuple[str, ...]) -> None:
        """Without being repeated."""
        refused = run(*line, secret)
        assert refused.status == 2
        assert "PGPASSFILE" in refused.err
        assert "secret" not in refused.err + refused.out

    def test_one_of_the_environment_is_used_and_not_shown(
        self, secret: str, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By no command, also where it fails."""
        monkeypatch.setenv("TXNCTL_STORE", secret)
        for line in (("config", "show"), ("status",), ("store", "info", "-o", "json"), ("store", "verify")):
            shown = run(*line)
            assert shown.status == 0, shown.err
            assert "secret" not in shown.out + shown.err
        monkeypatch.setenv("TXNCTL_STORE", secret + "x")
        for line in (("doctor",), ("status",), ("topics", "list", "-o", "json")):
            failed = run(*line)
            assert failed.status in (3, 6)
            assert "secret" not in failed.out + failed.err
        monkeypatch.setenv("TXNCTL_STORE", secret)


def test_errors_in_json_name_the_kind(run: Run) -> None:
    """A server that is not there may be tried again."""
    failed = run("status", "-o", "json", "--store", "postgresql://127.0.0.1:1/d")
    error = json.loads(failed.err.splitlines()[-1])
    assert (error["code"], error["exitCode"], error["retryable"]) == ("server-unreachable", 6, True)


@pytest.mark.kills
def test_a_worker_that_is_told_to_end_finishes_its_message(
    url: str, run: Run, start: Any, tmp_path: Path
) -> None:
    """SIGTERM to `consume -f --exec`: the handler ends, its message is acknowledged, the next one is not taken."""
    for line in (("topics", "create", "jobs"), ("produce", "jobs", "-m", "a", "-m", "b")):
        assert run(*line).status == 0, line
    os.mkfifo(tmp_path / "go")
    handler = f"read v; echo took $v; read go < {tmp_path}/go; echo done $v"
    worker = start("consume", "jobs", "-s", "w", "--from", "earliest", "-f", "--exec", handler)
    assert worker.stdout.readline() == b"took a\n"
    worker.send_signal(signal.SIGTERM)
    (tmp_path / "go").write_text("go\n")
    out, err = worker.communicate(timeout=60)
    assert (worker.returncode, out) == (0, b"done a\n"), err
    assert run("consume", "jobs", "-s", "w", "-o", "value").out == "b\n"
