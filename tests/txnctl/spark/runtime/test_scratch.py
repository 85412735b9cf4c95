"""Scratch directories: gone when their process is, however it died."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from tests.processes.child import Child
from txnctl.spark.runtime import scratch as scratches
from txnctl.spark.runtime.scratch import PREFIX, scratch_directory

OWNER = """
from tests.processes.parent import hear, say
from txnctl.spark.runtime.scratch import scratch_directory
with scratch_directory() as place:
    open(f"{place}/file", "w").close()
    say("place", place)
    hear()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_what_a_killed_process_left_is_removed_by_the_next(parent: Path) -> None:
    """And nothing of one that lives."""
    living, dead = Child(["-c", OWNER]), Child(["-c", OWNER])
    try:
        kept, left = Path(living.expect("place", 30)), Path(dead.expect("place", 30))
        dead.kill()
        assert left.exists()
        with scratch_directory() as mine:
            assert sorted(os.listdir(parent)) == sorted([kept.name, Path(mine).name])
        assert os.listdir(parent) == [kept.name]
        assert (kept / "file").exists()
    finally:
        living.close()
        dead.close()


def test_it_is_gone_at_the_end_also_of_a_failure(parent: Path) -> None:
    """Which is passed on."""
    with pytest.raises(FileExistsError), scratch_directory() as place:
        os.mkdir(place)
    assert os.listdir(parent) == []


def test_what_is_not_ours_stays(parent: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, a link to a directory, and a directory of another name."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "kept").touch()
    (parent / f"{PREFIX}file").touch()
    (parent / f"{PREFIX}link").symlink_to(elsewhere)
    (parent / "txnctl-other").mkdir()
    with scratch_directory():
        pass
    assert sorted(os.listdir(parent)) == sorted([f"{PREFIX}file", f"{PREFIX}link", "txnctl-other"])
    assert (elsewhere / "kept").exists()


def test_one_that_is_swept_before_its_owner_has_locked_it_is_made_anew(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment between making and locking it costs a second try and nothing else."""
    made = tempfile.mkdtemp
    swept: list[str] = []

    def mkdtemp(prefix: str) -> str:
        place = made(prefix=prefix)
        if not swept:
            swept.append(place)
            shutil.rmtree(place)
        return place

    monkeypatch.setattr(scratches.tempfile, "mkdtemp", mkdtemp)
    with scratch_directory() as place:
        assert place not in swept
        assert os.path.isdir(place)


def test_many_at_once_never_take_each_other_s(parent: Path) -> None:
    """Each finds its own file again, while the others make theirs and sweep."""
    lost: list[str] = []

    def work(name: str) -> None:
        for _ in range(50):
            with scratch_directory() as place:
                file = Path(place) / name
                file.touch()
                if os.listdir(place) != [name]:
                    lost.append(place)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == []
    assert os.listdir(parent) == []
