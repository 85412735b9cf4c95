"""Stored content never drives a terminal, whichever command shows it; away from a terminal values are the very bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from storage import Store

EVIL = b"\x1b]0;owned\x07\x1b[2J\x9b31m\xc2\x9b31m\x7f\r\x00\xe2\x80\xae\xff"
EVIL_TEXT = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\r\u202e"

COMMANDS = (
    ("consume", "orders"),
    ("consume", "orders", "-s", "billing", "--ack", "none"),
    ("topics", "peek", "orders"),
    ("topics", "peek", "orders", "-s", "billing"),
    ("topics", "log", "orders"),
    ("topics", "stats", "orders"),
    ("subscriptions", "pending", "orders", "billing"),
    ("subscriptions", "lag", "orders"),
    ("tables", "get", "rows", "k"),
    ("tables", "get", "rows", "k", "-n"),
    ("tables", "scan", "rows"),
    ("tables", "export", "rows"),
    ("tables", "versions", "rows", "k"),
    ("tables", "intents", "rows"),
    ("tables", "history", "rows"),
    ("transactions", "list"),
    ("transactions", "list", "--ended"),
    ("transactions", "show", "0:1"),
    ("transactions", "explain", "0:2"),
    ("transactions", "timeline", "orders"),
    ("transactions", "blocked", "orders"),
    ("transactions", "history"),
    ("audit", "list"),
    ("status",),
    ("doctor",),
    ("check", "--format", "nagios"),
    ("check", "--format", "prometheus"),
    ("check", "--format", "json"),
    ("report", "--html", "-"),
)

CONTROLS = "[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\udc80-\udcff]"

FORMATS = ("table", "json", "ndjson", "name", "value", "csv")


@pytest.fixture
def evil(told: Path) -> None:
    """A store with such bytes wherever a user can put them."""
    Store.create(told)
    with Store.open(told, program=EVIL_TEXT) as store:
        store.create_topic("orders")
        store.create_table("rows")
        store.subscribe("orders", "billing").close()
        aborted = store.begin_transaction()
        store.admin.transactions.abort_transaction(aborted, reason=EVIL_TEXT)
        producer = store.create_producer("orders")
        producer.send(EVIL, key=EVIL, properties={EVIL_TEXT: EVIL_TEXT})
        producer.send(EVIL[:-1], txn=store.begin_transaction())
        for key in (b"k", EVIL):
            store.table("rows").put(key, EVIL)
            store.table("rows").put(key + b"2", EVIL_TEXT.encode())
        store.table("rows").put(b"k3", EVIL, txn=store.begin_transaction())


@pytest.mark.usefixtures("evil")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_content_reaches_a_terminal_unescaped(
    run: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """In every format that the command has."""
    monkeypatch.setenv("NO_COLOR", "1")
    done = [run(*words, terminal=True)]
    if words[0] not in ("check", "report"):
        done += [run(*words, "-o", form, terminal=True) for form in FORMATS]
    shown = [outcome for outcome in done if outcome.status != 2]
    assert len(shown) >= 1
    for outcome in shown:
        assert not re.search(CONTROLS, outcome.out), outcome.out
        assert not re.search(CONTROLS, outcome.err), outcome.err


@pytest.mark.usefixtures("evil")
def test_no_content_reaches_a_shell_that_completes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners of transactions are described: name, host and program in one line each."""
    for shell in ("zsh", "fish"):
        monkeypatch.setenv("_TXNCTL_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", "txnctl transactions commit ")
        monkeypatch.setenv("COMP_CWORD", "3" if shell == "zsh" else "")
        shown = run().out
        assert "owned" in shown
        assert not re.search(CONTROLS, shown.replace("\t", " ")), shown


@pytest.mark.usefixtures("evil")
@pytest.mark.parametrize("words", [("consume", "orders"), ("topics", "peek", "orders", "-s", "billing")])
def test_away_from_a_terminal_values_are_the_very_bytes(run: Any, words: tuple[str, ...]) -> None:
    """A pipe and a file get what was stored."""
    assert run(*words, "-o", "value").out_bytes == EVIL + b"\n"
    assert run("tables", "get", "rows", "k", "-n").out_bytes == EVIL
    expected = (EVIL + b"\n" + EVIL_TEXT.encode() + b"\n") * 2
    assert run("tables", "scan", "rows", "-o", "value").out_bytes == expected
