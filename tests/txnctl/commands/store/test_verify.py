"""`txnctl store verify`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.verify.run import FULL, QUICK
from txnctl.commands.store import verify
from txnctl.commands.store.verify_child import Verification
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


def _miscount(store: Store) -> None:
    """Make the head of the only topic say one message more than there is."""
    from storage.disk.view import WriteBatch
    from storage.topic import state

    def change(batch: WriteBatch) -> None:
        head = state.load(batch, 1)
        head.messages += 1

    store.connection.write(change)


class TestVerify:
    """`store verify`; what it finds in damaged files is in test_bad_input."""

    @pytest.mark.parametrize("mode", ["full", "quick"])
    def test_a_sound_store_is_ok(self, run: Any, path: Path, mode: str) -> None:
        """One line for people."""
        row = run("store", "verify", f"--{mode}", "-o", "json").json
        assert not undeclared(row, verify.VERIFIED)
        assert (row["ok"], row["mode"], row["problems"]) == (True, mode, [])
        assert row["invariants"] == list(FULL if mode == "full" else QUICK)
        out = run("store", "verify", f"--{mode}").out
        assert out.startswith(f"ok  {path}: ")
        assert out.endswith(f"; rules {', '.join(map(str, row['invariants']))}\n")
        assert len(out.splitlines()) == 1

    def test_reads_of_tables_are_checked_too(self, run: Any, path: Path) -> None:
        """Rule 13, where there is a table; the file is the same after it."""
        with Store.open(path) as store:
            store.create_table("accounts")
            store.table("accounts").put(b"B1", b"100")
        before = (path / "data.mdb").read_bytes()
        row = run("store", "verify", "--full", "-o", "json").json
        assert (row["ok"], 12 in row["invariants"], 13 in row["invariants"]) == (True, True, True)
        assert (path / "data.mdb").read_bytes() == before

    def test_the_child_needs_no_help_of_its_directory(self, run: Any, path: Path, monkeypatch: Any) -> None:
        """It finds its own modules wherever it runs, and takes none from there."""
        elsewhere = path.parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "json.py").write_text("raise SystemExit('not this one')")
        monkeypatch.chdir(elsewhere)
        assert run("store", "verify").status == 0

    def test_a_relative_path_is_the_callers(self, run: Any, path: Path, monkeypatch: Any) -> None:
        """As everywhere."""
        monkeypatch.chdir(path.parent)
        assert run("store", "verify", "--store", "bank.store").status == 0

    def test_a_child_that_a_damaged_page_ends_is_a_finding(self, path: Path) -> None:
        """With the signal in words."""
        with Verification(str(path), full=True) as running:
            running._child.wait()
            running._child.returncode = -signal.SIGBUS
            list(running.steps())
        assert [each.object for each in running.problems] == ["data.mdb"]
        assert "SIGBUS" in running.problems[0].message

    def test_a_wrong_counter_is_found_and_shown(self, run: Any, tmp_path: Path) -> None:
        """Exit 6 after a report that names topic and rule; standard error has the error."""
        at = tmp_path / "wrong.store"
        Store.create(at)
        with Store.open(at) as store:
            store.create_topic("orders")
            store.create_producer("orders").send(b"x")
            _miscount(store)
        outcome = run("store", "verify", "--store", str(at), "-o", "json")
        assert outcome.status == 6
        assert not outcome.json["ok"]
        assert {"invariant", "object", "message"} == set(outcome.json["problems"][0])
        assert outcome.error["code"] == "corrupt-store"
        table = run("store", "verify", "--store", str(at))
        assert table.status == 6
        assert "orders" in table.out
        assert "problem" in table.err
