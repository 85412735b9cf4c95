"""`txnctl tables changes`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.waiting import let_pass
from txnctl.commands.tables import changes
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


def test_changes_are_listed_in_every_format(run: Any) -> None:
    """The oldest first; `-o name` has the versions, which `--since` takes."""
    run("tables", "put", "accounts", "B1", "90")
    run("tables", "rm", "accounts", "B2")
    rows = run("tables", "changes", "accounts", "-o", "json").json
    assert not undeclared(rows[0], changes.CHANGES)
    assert [(row["kind"], row["key"], row["value"], row["previousValue"]) for row in rows] == [
        ("insert", "B1", "100", None),
        ("insert", "B2", "200", None),
        ("insert", "B3", "300", None),
        ("update", "B1", "90", "100"),
        ("delete", "B2", None, "200"),
    ]
    lines = run("tables", "changes", "accounts", "-o", "ndjson").out.splitlines()
    assert [json.loads(line) for line in lines] == rows
    names = run("tables", "changes", "accounts", "-o", "name").out.split()
    assert names == [row["version"] for row in rows]
    table = run("tables", "changes", "accounts").out.splitlines()
    assert [line.split()[3:] for line in table] == [
        ["KIND", "KEY", "VALUE"],
        ["insert", "B1", "100"],
        ["insert", "B2", "200"],
        ["insert", "B3", "300"],
        ["update", "B1", "90"],
        ["delete", "B2", "-"],
    ]


def test_a_list_begins_where_another_ended(run: Any) -> None:
    """--until has the version, --since leaves it out; -n ends early; now is the newest."""
    names = run("tables", "changes", "accounts", "-o", "name").out.split()
    first = run("tables", "changes", "accounts", "--until", names[1], "-o", "name").out.split()
    rest = run("tables", "changes", "accounts", "--since", names[1], "-o", "name").out.split()
    assert first + rest == names
    assert run("tables", "changes", "accounts", "-n", "2", "-o", "name").out.split() == names[:2]
    empty = run("tables", "changes", "accounts", "--since", "now")
    assert (empty.out, empty.err) == ("", "txnctl: no changes of table accounts are there to show\n")


def test_an_open_transaction_that_holds_changes_back_is_named(run: Any) -> None:
    """On standard error; the list ends before its begin."""
    txn = run("transactions", "begin").out.strip()
    run("tables", "put", "accounts", "B4", "400")
    listed = run("tables", "changes", "accounts", "-o", "json")
    assert len(listed.json) == 3
    assert f"are held back by transaction {txn}" in listed.err


def test_a_start_too_old_is_refused_with_the_oldest(run: Any, path: Path) -> None:
    """After gc, by the code request-too-old."""
    with Store.open(path) as store:
        last = store.table("accounts").versions(b"B3")[0].version_ns
        store.admin.settings.set_table_retention(1000)
        let_pass(1.1, "the retention")
        store.maintenance.collect_garbage()
    refused = run("tables", "changes", "accounts", "--since", "1", "-o", "json")
    assert refused.error["code"] == "request-too-old"
    assert refused.error["details"]["oldestVersion"] == str(last)
    assert run("tables", "changes", "accounts", "--since", str(last), "-o", "json").json == []


@pytest.mark.parametrize(
    "options", [("--follow", "--until", "now"), ("--follow", "-o", "json")], ids=["until", "json"]
)
def test_an_end_does_not_go_with_follow(run: Any, options: tuple[str, ...]) -> None:
    """Except by a number of changes."""
    assert run("tables", "changes", "accounts", *options).status == 2


def test_a_follower_prints_what_is_committed_meanwhile(run: Any, start: Any) -> None:
    """From the start that it was given, until -n are there."""
    follower = start("tables", "changes", "accounts", "--since", "0", "-f", "-n", "5", "-o", "ndjson")
    seen = [json.loads(follower.stdout.readline()) for _ in range(3)]
    run("tables", "put", "accounts", "B4", "400")
    seen.append(json.loads(follower.stdout.readline()))
    run("tables", "rm", "accounts", "B1")
    out, err = follower.communicate(timeout=30)
    seen.append(json.loads(out))
    assert [(row["kind"], row["key"]) for row in seen[3:]] == [("insert", "B4"), ("delete", "B1")]
    assert (follower.returncode, err) == (0, b"")


def test_a_version_of_behind_the_backup_is_refused_by_the_restored_store(run: Any, tmp_path: Path) -> None:
    """A follower of the original is told, with the first version to start after; so is a read in the past."""
    backup, restored = str(tmp_path / "backup"), str(tmp_path / "restored")
    run("store", "backup", backup)
    run("tables", "put", "accounts", "B7", "7")
    version = run("tables", "changes", "accounts", "-o", "name").out.split()[-1]
    run("store", "restore", backup, "--to", restored)
    for words in (("changes", "accounts", "--since", version), ("scan", "accounts", "--at", version)):
        refused = run("tables", *words, "--store", restored, "-o", "json")
        assert (refused.status, refused.error["code"]) == (4, "request-too-old")
        assert "accounts was restored as of" in refused.error["message"]
    rows = run("tables", "changes", "accounts", "--store", restored, "-o", "name").out.split()
    assert run("tables", "changes", "accounts", "--store", restored, "--since", rows[-1]).status == 0
