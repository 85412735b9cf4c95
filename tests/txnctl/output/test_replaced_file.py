"""A file for output: replaced whole, for its writer alone, never inside the store or through the link of a stranger."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import InvalidValue
from txnctl.output.replaced_file import replace_file
from txnctl.output.stream import OutputFailed


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


@pytest.mark.parametrize("planted", ["page.html", "directory", "second"])
def test_a_link_of_a_different_user_is_not_followed(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Wherever it stands on the way: it would overwrite a file of the caller's."""
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()
    shared.mkdir()
    (home / "page.html").write_text("mine")
    paths = {
        "page.html": ("page.html", "../home/page.html"),
        "directory": ("directory/page.html", "../home"),
        "second": ("first/page.html", str(home)),
    }
    path, target = paths[planted]
    (shared / "first").symlink_to("second")
    (shared / planted).symlink_to(target)
    if os.geteuid() == 0:
        os.lchown(shared / planted, 1001, 1001)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.lstat(shared).st_uid + 1)
    with pytest.raises(InvalidValue, match="is a link of user"):
        replace_file(str(shared / path), b"after", store=str(store))
    assert (home / "page.html").read_text() == "mine"
    assert os.listdir(home) == ["page.html"]


def test_links_of_the_user_are_followed_on_the_way(tmp_path: Path, store: Path) -> None:
    """Relative and absolute ones, and `..` behind a link goes up from its target."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "absolute").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "relative").symlink_to("absolute/")
    replace_file(str(tmp_path / "relative" / ".." / "page.html"), b"page", store=str(store))
    assert (tmp_path / "a" / "page.html").read_bytes() == b"page"
    (tmp_path / "loop").symlink_to("loop")
    for path, why in (
        ("loop", "Too many levels"),
        ("a", "Is a directory"),
        ("a/page.html/x", "Not a directory"),
    ):
        with pytest.raises(InvalidValue, match=why):
            replace_file(str(tmp_path / path), b"", store=str(store))


def test_a_name_of_the_greatest_length(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current directory; the umask counts."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    try:
        replace_file("x" * 255, b"page", mode=0o666, store=str(store))
    finally:
        os.umask(before)
    assert (tmp_path / ("x" * 255)).stat().st_mode & 0o777 == 0o640


def test_standard_output_in_a_pipeline(tmp_path: Path) -> None:
    """/dev/stdout leads to a pipe that has no path."""
    program = "from txnctl.output.replaced_file import replace_file as write; write('/dev/stdout', b'page')"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"page"


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
