"""Creation is atomic: a store is there whole or not at all, whoever is killed or comes in between."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from storage import Store, faults
from storage.errors import AlreadyExists, NotAStore, StoreNotFound
from tests.processes.child import Children

CREATE = """
    from storage import faults
    if sys.argv[2]:
        faults.arm(sys.argv[2], lambda: os.kill(os.getpid(), signal.SIGKILL))
    Store.create(path + "2")
"""


@pytest.fixture
def place(path: str) -> Path:
    """Where the children create a store."""
    return Path(path + "2")


def check_whole(place: Path) -> None:
    """That an empty, sound, usable store is at `place`, and what its modes are."""
    with Store.open(place) as store:
        assert store.topics() == [] and store.maintenance.verify_store(full=True) == []
        store.create_topic("t")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    names = {each.name for each in place.iterdir()}
    assert names == {"data.mdb", "lock.mdb", "reserve", "store.lock", "store.metrics"}
    assert {stat.S_IMODE(each.stat().st_mode) for each in place.iterdir()} == {0o600}


@pytest.mark.parametrize("point", [point for point in faults.POINTS if point.startswith("store.create.")])
def test_a_killed_creation_leaves_all_or_nothing_and_does_not_harm_the_next(
    place: Path, children: Children, point: str
):
    """Killed before the rename nothing is at the path, after it the whole store; leftovers are in nobody's way."""
    killed = children.run(CREATE, point)
    assert killed.wait() == -signal.SIGKILL
    if point == "store.create.after_rename":
        check_whole(place)
        with pytest.raises(AlreadyExists):
            Store.create(place)
        return
    assert not place.exists()
    with pytest.raises(StoreNotFound):
        Store.open(place)
    leftovers = {each.name for each in place.parent.iterdir()} - {"store"}
    assert leftovers == {f".store2.{killed.pid}.new"}
    Store.create(place)
    check_whole(place)
    assert {each.name for each in place.parent.iterdir()} == {"store", "store2"}


def test_what_a_living_creation_builds_is_not_taken_for_a_leftover(place: Path, children: Children):
    """Stopped just before the rename, it keeps its directory while others create beside it, and then finishes."""
    stopped = children.run(
        """
        from storage import faults
        def wait():
            say("built")
            hear()
        faults.arm("store.create.before_rename", wait)
        try:
            Store.create(path + "2")
        except errors.AlreadyExists:
            say("exists")
        """
    )
    stopped.expect("built")
    aside = place.parent / f".store2.{stopped.pid}.new"
    before = {each: each.read_bytes() for each in aside.iterdir()}
    Store.create(place)
    assert {each: each.read_bytes() for each in aside.iterdir()} == before
    stopped.say("go on")
    stopped.expect("exists")
    check_whole(place)
    assert {each.name for each in place.parent.iterdir()} == {"store", "store2"}


@pytest.mark.parametrize("name", [".store2.17.new", ".store2.x.new", ".store.17.new", ".store2.18.new"])
def test_what_only_looks_like_a_leftover_is_left_alone(place: Path, name: str):
    """A directory with other files in it, of another name, or a link to one, is nobody's leftover."""
    other = place.parent / name
    if name == ".store2.18.new":
        (place.parent / "elsewhere").mkdir()
        other.symlink_to(place.parent / "elsewhere")
        (place.parent / "elsewhere" / "data.mdb").write_bytes(b"precious")
    else:
        other.mkdir()
        (other / "precious").write_bytes(b"precious")
    Store.create(place)
    assert [each.read_bytes() for each in other.iterdir()] == [b"precious"]


def test_a_leftover_of_the_same_pid_is_replaced(place: Path):
    """Pids come again: what a killed creation of this very pid left aside is not taken for its own."""
    aside = place.parent / f".{place.name}.{os.getpid()}.new"
    aside.mkdir()
    (aside / "data.mdb").write_bytes(b"half a file")
    (aside / "store.lock").write_bytes(b"")
    Store.create(place)
    check_whole(place)
    assert not aside.exists()


def test_of_many_that_create_one_store_one_succeeds(place: Path, children: Children):
    """The others are told that it exists, and it is whole."""
    creators = [
        children.run(
            """
            say("ready")
            hear()
            try:
                Store.create(path + "2")
            except errors.AlreadyExists:
                say("exists")
            else:
                say("created")
            """
        )
        for _ in range(6)
    ]
    for creator in creators:
        creator.expect("ready")
    for creator in creators:
        creator.say("go")
    said = [creator.line() for creator in creators]
    assert sorted(map(str, said)) == ["created"] + ["exists"] * 5
    check_whole(place)
    assert {each.name for each in place.parent.iterdir()} == {"store", "store2"}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_do_not_depend_on_the_umask(place: Path, children: Children, umask: int):
    """The directory is 0700 and each file 0600, also after the store was used under that umask."""
    child = children.run(
        """
        os.umask(int(sys.argv[2], 8))
        Store.create(path + "2")
        with Store.open(path + "2") as store:
            store.create_topic("x")
            os.unlink(path + "2/lock.mdb")
        with Store.open(path + "2") as store:
            store.admin.topics.delete_topic("x")
        """,
        oct(umask),
    )
    child.succeed()
    check_whole(place)


def test_an_empty_directory_becomes_a_store(place: Path):
    """A directory made beforehand, as container volumes are, is taken; its mode becomes that of a store."""
    place.mkdir(0o755)
    before = place.stat().st_ino
    Store.create(place)
    check_whole(place)
    assert place.stat().st_ino == before


def test_the_current_directory_becomes_a_store(place: Path, monkeypatch: pytest.MonkeyPatch):
    """It stays the same directory: a shell that stands in it sees the files."""
    place.mkdir()
    monkeypatch.chdir(place)
    Store.create(".")
    check_whole(Path("."))


@pytest.mark.parametrize("point", ["store.create.before_rename", "store.create.after_rename"])
def test_a_killed_creation_in_an_empty_directory_leaves_all_or_nothing(
    place: Path, children: Children, point: str
):
    """Before the data file is there it is no store, and the next creation takes the place of what was left."""
    place.mkdir()
    killed = children.run(CREATE, point)
    assert killed.wait() == -signal.SIGKILL
    if point == "store.create.after_rename":
        with pytest.raises(AlreadyExists):
            Store.create(place)
        with Store.open(place) as store:
            assert store.maintenance.verify_store(full=True) == []
        return
    assert "store.lock" in {each.name for each in place.iterdir()}
    with pytest.raises(NotAStore):
        Store.open(place)
    Store.create(place)
    check_whole(place)


def test_a_directory_that_was_removed_is_named(place: Path, monkeypatch: pytest.MonkeyPatch):
    """A relative path leads nowhere from there: an error of ours, not one of Python's."""
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    for attempt in (Store.create, Store.open):
        with pytest.raises(StoreNotFound, match="current directory was removed"):
            attempt("s")


@pytest.mark.parametrize("what", ["file", "directory", "lock.mdb", "store.lock", "dangling link", "store"])
def test_what_is_there_already_is_left_as_it_is(place: Path, what: str):
    """AlreadyExists for anything at the path; not a byte of it changes."""
    if what == "file":
        place.write_bytes(b"precious")
    elif what in ("directory", "lock.mdb", "store.lock"):
        place.mkdir()
        (place / what).write_bytes(b"precious")
    elif what == "dangling link":
        place.symlink_to(place.parent / "nowhere")
    else:
        Store.create(place)
    before = {each: each.read_bytes() for each in (place, *place.glob("*")) if each.is_file()}
    with pytest.raises(AlreadyExists) as caught:
        Store.create(place)
    assert str(place) in caught.value.message and caught.value.exit_code == 4
    assert {each: each.read_bytes() for each in (place, *place.glob("*")) if each.is_file()} == before
    assert place.is_symlink() is (what == "dangling link")
    assert {each.name for each in place.parent.iterdir()} <= {"store", "store2"}


def test_missing_parents_are_created(place: Path):
    """A path below directories that do not exist yet is fine."""
    deep = place / "a" / "b" / "store"
    Store.create(deep)
    check_whole(deep)
