"""The report as a file: replaced whole, for its writer alone, and never inside the store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.errors import InvalidValue
from txnctl.output.stream import OutputFailed
from txnctl.report.file import replace_file


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a store would be."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_a_file_is_replaced_whole(tmp_path: Path, store: Path) -> None:
    """Nothing else is left beside it; nobody else may read it."""
    target = tmp_path / "page.html"
    target.write_text("before")
    os.chmod(target, 0o644)
    replace_file(str(target), b"after", store=str(store))
    assert target.read_bytes() == b"after"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["page.html", "store"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, store: Path) -> None:
    """As a web server's directory may have it."""
    (tmp_path / "real.html").write_text("before")
    (tmp_path / "page.html").symlink_to("real.html")
    replace_file(str(tmp_path / "page.html"), b"after", store=str(store))
    assert (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "real.html").read_bytes() == b"after"


def test_what_is_no_file_is_written_to(tmp_path: Path, store: Path) -> None:
    """A pipe, or /dev/stdout."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(str(tmp_path / "pipe"), b"page", store=str(store))
        assert os.read(reader, 100) == b"page"
    finally:
        os.close(reader)


def test_the_store_is_no_place_for_it(tmp_path: Path, store: Path) -> None:
    """Not by a link either."""
    (tmp_path / "page.html").symlink_to(store / "data.mdb")
    for path in (store / "data.mdb", tmp_path / "page.html"):
        with pytest.raises(InvalidValue, match="is inside the store"):
            replace_file(str(path), b"", store=str(store))
    assert os.listdir(store) == []


def test_a_path_that_cannot_be_written_is_bad_input(tmp_path: Path, store: Path) -> None:
    """With the words of the system."""
    with pytest.raises(InvalidValue, match="No such file or directory"):
        replace_file(str(tmp_path / "missing" / "page.html"), b"", store=str(store))


def test_a_full_disk_leaves_the_page_that_was_there(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no half of the new one."""
    target = tmp_path / "page.html"
    target.write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputFailed, match="No space left on device"):
        replace_file(str(target), b"after", store=str(store))
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["page.html", "store"]
