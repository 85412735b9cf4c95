"""`txnctl store backup`."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.store import backup
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestBackup:
    """`store backup`, `restore`."""

    def test_a_backup_is_a_store_of_its_own(self, run: Any, path: Path, tmp_path: Path) -> None:
        """Sound, private, with all messages; the store itself is not touched."""
        before = (path / "data.mdb").read_bytes()
        at = tmp_path / "deep" / "backup"
        row = run("store", "backup", str(at), "-o", "json").json
        assert not undeclared(row, backup.BACKED_UP)
        assert row == {"path": str(at), "bytes": (at / "data.mdb").stat().st_size}
        assert (path / "data.mdb").read_bytes() == before
        assert stat.S_IMODE(at.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in at.iterdir()} == {0o600}
        with Store.open(at) as store:
            assert store.maintenance.verify_store() == []
            assert len(list(store.reader("orders"))) == 10

    def test_what_is_there_is_left_as_it_is(self, run: Any, path: Path, tmp_path: Path) -> None:
        """For both: neither a backup nor a restored store overwrites anything."""
        taken = tmp_path / "taken"
        taken.write_text("mine")
        assert run("store", "backup", str(taken)).status == 4
        assert run("store", "restore", str(path), "--to", str(taken)).status == 4
        assert run("store", "restore", str(path)).status == 4
        assert taken.read_text() == "mine"
