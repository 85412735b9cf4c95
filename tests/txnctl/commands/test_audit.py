"""`txnctl audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands import audit
from txnctl.output.field import undeclared


@pytest.fixture(autouse=True)
def path(path: Path) -> Path:
    """A store in which two topics were deleted, one of them with a reason that would drive a terminal."""
    with Store.open(path, program="a test") as store:
        for name in ("first", "second"):
            store.create_topic(name)
        with store.create_producer("first") as producer:
            producer.send(b"x")
        store.admin.topics.delete_topic("first", reason="moved\x1b[2J")
        store.admin.topics.delete_topic("second", dry_run=True)
        store.admin.topics.delete_topic("second")
    return path


def test_the_newest_change_comes_first(run: Any) -> None:
    """A dry run is no change."""
    rows = run("audit", "list", "-o", "json").json
    assert not undeclared(rows[0], audit.CHANGES)
    assert [(row["action"], row["target"], row["reason"]) for row in rows] == [
        ("topics delete", "second", None),
        ("topics delete", "first", "moved\x1b[2J"),
    ]
    assert "a test" in rows[0]["by"]
    assert [row["target"] for row in run("audit", "list", "-n", "1", "-o", "json").json] == ["second"]


def test_one_change_is_shown_with_its_effects(run: Any) -> None:
    """The same numbers that the command itself reported, and nothing that drives the terminal."""
    number = run("audit", "list", "-o", "name").out.splitlines()[-1]
    row = run("audit", "show", number, "-o", "json").json
    assert row["effects"]["messages"] == 1
    out = run("audit", "show", number).out
    assert "reason    moved\\x1b[2J" in out
    assert "  messages                    1\n" in out
    assert "\x1b" not in out + run("audit", "list").out


def test_effects_that_consist_of_several_are_told_line_by_line(run: Any) -> None:
    """Each fact has its line, topics their short names, and times are for people."""
    run("topics", "create", "orders")
    run("producers", "open", "orders", "--producer", "loader")
    run("producers", "fence", "orders", "--yes")
    out = run("audit", "show", run("audit", "list", "-o", "name").out.splitlines()[0]).out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "topic orders" in lines
    assert "producerName loader" in lines
    assert "leaseMs 1m00s" in lines
    assert "=" not in out


def test_an_unknown_number_is_not_found(run: Any) -> None:
    """Exit 3; what is no number at all is bad input."""
    assert run("audit", "show", "999").status == 3
    assert run("audit", "show", "0").status == 2
    assert run("audit", "show", "first").status == 2


def test_looking_changes_nothing(run: Any, path: Path) -> None:
    """Not one byte."""
    before = (path / "data.mdb").read_bytes()
    assert run("audit", "list").status == 0
    assert (path / "data.mdb").read_bytes() == before


def test_time_action_and_target_choose(run: Any) -> None:
    """An action is whole words, a target any part; all that is given must match."""

    def targets(*words: str) -> list[str]:
        return [row["target"] for row in run("audit", "list", *words, "-o", "json").json]

    assert targets("--action", "topics delete") == targets("--action", "topics") == ["second", "first"]
    assert targets("--action", "topics del") == targets("--action", "topic") == []
    assert targets("--target", "irs") == ["first"]
    assert targets("--action", "topics", "--target", "sec", "--since", "1h") == ["second"]
    assert targets("--since", "2999-01-01") == []
    assert targets("-n", "1", "--target", "first") == ["first"]
    outcome = run("audit", "list", "--target", "none")
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "txnctl: no record matches\n"
    assert "such as 'transactions abort'" in run("audit", "list", "--action", "abort").err
    assert run("audit", "list", "--since", "yesterday").status == 2
