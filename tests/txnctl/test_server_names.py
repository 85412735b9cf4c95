"""A store named by a URL: passwords are refused on a command line, taken from the environment, and never shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.txnctl.conftest import Outcome

Run = Callable[..., Outcome]

NOWHERE = "host=/nonexistent&store=bank"
SECRET = f"postgresql://anna:geheim@/bank?{NOWHERE}"
SHOWN = f"postgresql://anna@/bank?{NOWHERE}"


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list", "--store", SECRET),
        ("--store", SECRET, "topics", "list"),
        ("topics", "list", f"--store={SECRET}", "--bogus"),
        ("topics", "lst", "--store", SECRET),
        ("topics", "list", SECRET),
        ("config", "show", "--store", SECRET),
        ("store", "init", SECRET),
        ("store", "copy", "bank.store", SECRET),
        ("store", "restore", SECRET),
        ("topics", "list", "--store", f"postgresql:///bank?password=geheim&{NOWHERE}", "-o", "json"),
        ("topics", "list", "--store", SECRET, "--debug"),
    ],
)
def test_a_password_on_the_command_line_is_refused(run: Run, words: tuple[str, ...]) -> None:
    """Every user of the machine could read it in the list of processes; the refusal does not repeat it."""
    outcome = run(*words)
    assert outcome.status == 2
    assert "geheim" not in outcome.out + outcome.err


def test_the_refusal_names_the_ways(run: Run) -> None:
    """A file of libpq, or the environment."""
    outcome = run("topics", "list", "--store", SECRET)
    assert "PGPASSFILE" in outcome.err
    assert "TXNCTL_STORE" in outcome.err
    assert "--store directory" not in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        ("config", "show"),
        ("topics", "list"),
        ("topics", "list", "-o", "json"),
        ("topics", "list", "--debug"),
        ("doctor",),
        ("doctor", "-o", "json"),
        ("check",),
        ("check", "-o", "json"),
        ("store", "verify"),
        ("store", "init"),
        ("report", "--html", "-"),
    ],
)
def test_a_password_of_the_environment_is_not_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Neither in the result nor in the error of a server that is not there."""
    monkeypatch.setenv("TXNCTL_STORE", SECRET)
    outcome = run(*words)
    assert "geheim" not in outcome.out + outcome.err
    if words[0] == "config":
        assert SHOWN in outcome.out
    else:
        assert outcome.status == {"check": 0 if "json" in words else 2}.get(words[0], 6)
        assert SHOWN in "".join((outcome.out + outcome.err).split())


def test_an_unreadable_url_of_the_environment_is_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unescaped sign parts the password."""
    monkeypatch.setenv("TXNCTL_STORE", "postgresql://anna:ge/heim@h/bank")
    for words in (("config", "show"), ("topics", "list"), ("doctor",)):
        outcome = run(*words)
        assert outcome.status == 2
        assert "heim" not in outcome.out + outcome.err
        assert "%2F" in outcome.err


def test_a_url_is_no_path(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is made in the current directory."""
    monkeypatch.chdir(tmp_path)
    assert run("topics", "list", "--store", SHOWN, "-o", "json").error["code"] == "server-unreachable"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        "postgresql+psycopg2://anna:geheim@h/bank", "jdbc:postgresql://h/bank?password=geheim",
        "host=h password=geheim", " postgresql://anna:geheim@h/bank", "postgresql://anna:ge@heim@h/bank",
    ],
)  # fmt: skip
def test_what_looks_like_a_url_makes_no_directory(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """At each door, and with no part of a password in what is printed."""
    monkeypatch.chdir(tmp_path)
    lines = [
        ("store", "init", "--store", name), ("store", "init", name), ("store", "copy", "a", name),
        ("store", "restore", "a", name), ("pipeline", "ingest", "x.csv", "t", "--store", name), ("demo", "--store", name),
    ]  # fmt: skip
    outcomes = [run(*words) for words in lines]
    monkeypatch.setenv("TXNCTL_STORE", name)
    outcomes += [run(*words) for words in (("store", "init"), ("config", "show"), ("doctor",), ("check",))]
    # `check` answers a monitor: 3 is unknown.
    assert [outcome.status for outcome in outcomes] == [*[2] * 9, 3]
    assert [each for each in outcomes if "heim" in each.out + each.err] == []
    assert os.listdir(tmp_path) == []


def test_hints_name_the_store_as_typed(run: Run) -> None:
    """Quoted for the shell: a URL has signs of its own."""
    outcome = run("topics", "list", "--store", SHOWN, "--bogus")
    assert f"txnctl --store '{SHOWN}' topics list" in outcome.err or f"--store '{SHOWN}'" in outcome.err
