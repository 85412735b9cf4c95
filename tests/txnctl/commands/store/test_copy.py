"""`txnctl store copy`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.throwaway_server import Server
from txnctl.commands.store import copy
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.mark.needs_program("initdb")
def test_a_store_moves_to_a_server_and_back(run: Any, path: Path, tmp_path: Path, server: Server) -> None:
    """The row has the figures of both, and the table says what to do next."""
    url, back = server.url(), tmp_path / "back"
    refused = run("store", "copy", str(path), url)
    assert refused.status == 6
    assert "no synchronous standby" in refused.err
    assert "--durability local" in refused.err
    row = run("store", "copy", str(path), url, "--durability", "local", "--reason", "test", "-o", "json").json
    assert not undeclared(row, copy.COPIED)
    assert (row["path"], row["incarnation"], row["written"], row["messages"]) == (url, 2, row["records"], 10)
    outcome = run("store", "copy", url, str(back))
    assert "Copied to" in outcome.out
    assert "Both have the same" in outcome.out
    assert f"txnctl store info --store {back}" in outcome.out
    with Store.open(back) as store:
        actions = [(row["action"], row["reason"]) for row in row_json(store.reports.list_audit_records())]
        assert actions[:2] == [("store copy", None), ("store copy", "test")]
        assert len(list(store.reader("orders"))) == 10


def test_a_dry_run_has_the_figures_of_the_real_run(run: Any, path: Path, tmp_path: Path) -> None:
    """And leaves nothing."""
    there = tmp_path / "there"
    dry = run("store", "copy", str(path), str(there), "--dry-run", "-o", "json").json
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bank.store"]
    assert run("store", "copy", str(path), str(there), "--dry-run").out.startswith("DRY RUN")
    row = run("store", "copy", str(path), str(there), "-o", "json").json
    assert (dry.pop("dryRun"), row.pop("dryRun")) == (True, False)
    assert dry == row


def test_a_destination_that_is_there_is_left(run: Any, path: Path, tmp_path: Path) -> None:
    """Exit 4."""
    Store.create(tmp_path / "there")
    outcome = run("store", "copy", str(path), str(tmp_path / "there"))
    assert outcome.status == 4
    assert "was left unchanged" in outcome.err


def test_a_missing_source_is_refused(run: Any, tmp_path: Path) -> None:
    """Exit 6, and nothing is created."""
    outcome = run("store", "copy", str(tmp_path / "nowhere"), str(tmp_path / "new"))
    assert outcome.status == 6
    assert "store init" not in outcome.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bank.store"]


@pytest.mark.parametrize(
    "words", [("copy", "URL", "new"), ("copy", "here", "URL"), ("restore", "URL", "--to", "new")]
)
def test_a_password_in_a_typed_url_is_refused(run: Any, words: tuple[str, ...]) -> None:
    """Every user of the machine reads command lines; exit 2, and the password is not repeated."""
    url = "postgresql://u:hidden@127.0.0.1:1/db?store=s"
    outcome = run("store", *[url if word == "URL" else word for word in words])
    assert outcome.status == 2
    assert "PGPASSFILE" in outcome.err
    assert "hidden" not in outcome.err


def test_an_interrupted_copy_says_that_it_went_on(run: Any, path: Path, tmp_path: Path) -> None:
    """With the number of records that were left to write."""
    from storage import faults

    faults.arm("store.copy.before_install", _stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            Store.copy(path, tmp_path / "there")
    finally:
        faults.disarm()
    assert (
        "Went on with an interrupted copy: wrote "
        in run("store", "copy", str(path), str(tmp_path / "there")).out
    )


def _stop() -> None:
    raise KeyboardInterrupt
