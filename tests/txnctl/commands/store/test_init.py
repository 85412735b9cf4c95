"""`txnctl store init`."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")


class TestInit:
    """`store init`."""

    def test_it_creates_a_private_store(self, run: Any, tmp_path: Path) -> None:
        """0600 in a 0700 directory whatever the umask, and the directories above it."""
        at = tmp_path / "deep" / "er" / "bank.store"
        before = os.umask(0)
        try:
            outcome = run("store", "init", str(at))
        finally:
            os.umask(before)
        assert outcome.out == f"Created store {at}.\n"
        assert stat.S_IMODE(at.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in at.iterdir()} == {0o600}
        with Store.open(at) as store:
            assert store.maintenance.verify_store() == []

    def test_option_and_variable_name_it_too(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """PATH counts before TXNCTL_STORE; with --store beside it it is ambiguous."""
        one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
        assert run("store", "init", "--store", one, "-o", "name").out == f"{one}\n"
        monkeypatch.setenv("TXNCTL_STORE", two)
        assert run("store", "init", "-o", "json").json["path"] == two
        assert run("store", "init", three, "-o", "json").json["path"] == three
        outcome = run("store", "init", str(tmp_path / "four"), "--store", one)
        assert outcome.status == 2
        assert not (tmp_path / "four").exists()
        assert run("store", "init", "").status == 2

    def test_what_is_there_is_left_as_it_is(self, run: Any, path: Path) -> None:
        """Another store above all."""
        before = (path / "data.mdb").read_bytes()
        outcome = run("store", "init", str(path), "-o", "json")
        assert outcome.status == 4
        assert outcome.error["code"] == "already-exists"
        assert (path / "data.mdb").read_bytes() == before

    def test_an_empty_directory_may_become_one(self, run: Any, tmp_path: Path) -> None:
        """`mkdir` before `init` is no mistake."""
        at = tmp_path / "empty"
        at.mkdir()
        assert run("store", "init", str(at)).status == 0
        assert run("topics", "list", "--store", str(at)).status == 0

    def test_two_at_once_make_one_store(self, start: Any, tmp_path: Path) -> None:
        """One is told so, and nothing is left of what it had begun."""
        at = tmp_path / "twice" / "bank.store"
        running = [start("store", "init", str(at)) for _ in range(2)]
        for process in running:
            process.communicate(timeout=60)
        assert sorted(process.returncode for process in running) == [0, 4]
        assert [each.name for each in at.parent.iterdir()] == ["bank.store"]
