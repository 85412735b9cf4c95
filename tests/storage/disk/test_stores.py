"""The form of a store's name decides the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.disk import stores
from storage.errors import InvalidValue, StoreNotFound
from storage.process.clock import SYSTEM_CLOCK


@pytest.mark.parametrize(
    ("name", "is_url"),
    [
        ("postgresql://h/d", True),
        ("postgres://h/d", True),
        ("bank.store", False),
        ("./postgresql", False),
    ],
)
def test_a_url_is_told_from_a_path(name: str, is_url: bool) -> None:
    """By its scheme alone."""
    assert stores.is_url(name) == is_url


def test_a_directory_is_resolved_to_its_real_path(tmp_path: Path) -> None:
    """Through links; a URL to its text without a password."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert stores.resolved(str(tmp_path / "link")) == str(tmp_path / "real")
    assert stores.resolved("postgresql://u:secret@h/d") == "postgresql://u@h/d?store=txnctl"


def test_a_bad_url_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue):
        stores.create("postgresql://h/d?store=NO", SYSTEM_CLOCK)
    with pytest.raises(StoreNotFound):
        stores.opened("missing", SYSTEM_CLOCK, read_only=True, timeout_s=1, on_wait=None)
    assert list(tmp_path.iterdir()) == []
