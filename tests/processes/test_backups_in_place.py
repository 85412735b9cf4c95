"""A backup is used where it lies: on a full disk, on a read-only disk, without making a file in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreInUse
from tests.processes.child import Child, Children

FILES = ["data.mdb", "store.lock"]

USES = """
    import resource
    from tests.processes import disks
    kind, disk = sys.argv[2:4]
    backup = os.path.join(disk, "backup")
    say("way", {"full": disks.fill, "read-only": disks.write_protect}[kind](disk))
    before = sorted(os.listdir(backup))
    with Store.open(backup, read_only=True) as store:
        assert [message.value for message in store.reader("t")] == [b"kept"]
        assert store.maintenance.verify_store(full=True) == []
        store.reports.store_report(), store.reports.list_readers(), store.reports.list_locks()
        with contextlib.ExitStack() as views:
            for _ in range(600):
                views.enter_context(store.connection.view())
    say("read", sorted(os.listdir(backup)) == before)
    try:
        Store.open(backup)
    except (errors.StoreFull, errors.NotPermitted) as error:
        say("writing", error.code)
    say("left", sorted(os.listdir(backup)) == before)
    if kind == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    if len(sys.argv) > 4:
        Store.restore(backup, sys.argv[4])
        with Store.open(sys.argv[4]) as store:
            assert store.maintenance.verify_store(full=True) == []
            say("restored", *(message.value.decode() for message in store.reader("t")))
"""

VIEWS = """
    import resource
    from tests.processes import disks
    disks.fill(*sys.argv[2:])
    with Store.open(os.path.join(sys.argv[2], "restored"), read_only=True) as store:
        with contextlib.ExitStack() as views:
            for _ in range(500):
                views.enter_context(store.connection.view())
            say("views", 500)
"""

UNLISTED = """
    with Store.open(sys.argv[2], read_only=True) as store:
        say("reading", *store.topics())
        hear()
    say("closed")
"""

WRITE = """
    with Store.open(sys.argv[2], lock_timeout=float(sys.argv[3])) as store:
        store.create_producer("t").send(b"more")
    say("wrote")
"""

BESIDE_A_WRITER = """
    from tests.processes import disks
    disks.write_protect(path)
    try:
        Store.open(path, read_only=True, lock_timeout=0.05).close()
    except errors.StoreInUse as error:
        say("refused", error.message)
    else:
        say("opened")
"""


@pytest.fixture
def disk(path: str, tmp_path: Path) -> str:
    """A directory with the backup of a store."""
    (tmp_path / "disk").mkdir()
    with Store.open(path) as store:
        store.create_producer("t").send(b"kept")
        store.maintenance.backup_store(tmp_path / "disk" / "backup")
    return str(tmp_path / "disk")


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_backup_is_read_verified_and_restored_where_it_lies(
    disk: str, tmp_path: Path, children: Children, kind: str
) -> None:
    """Nothing is made in it, also by a writer that finds no room; a page without room would be a bus error."""
    assert sorted(os.listdir(Path(disk, "backup"))) == FILES
    child = children.run(USES, kind, disk, tmp_path / "restored")
    child.expect("way")
    assert child.expect("read") == "True"
    assert child.expect("writing") == ("store-full" if kind == "full" else "not-permitted")
    assert child.expect("left") == "True"
    assert child.expect("restored") == "kept"
    child.succeed()


def test_reading_a_backup_makes_no_file(disk: str) -> None:
    """Nor does it change one; a writer makes the reader table whole, and has it."""
    backup = Path(disk, "backup")
    before = {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in backup.iterdir()}
    with Store.open(backup, read_only=True) as store:
        assert store.topics() == ["t"]
    assert {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in backup.iterdir()} == before
    with Store.open(backup) as store:
        store.create_producer("t").send(b"more")
    table = (backup / "lock.mdb").stat()
    assert table.st_blocks * 512 >= table.st_size > 512 * 64


@pytest.mark.parametrize("sparse", [False, True])
def test_a_restored_store_is_read_through_500_views_on_a_full_disk(
    disk: str, children: Children, sparse: bool
) -> None:
    """Its reader table has every byte; where a copy of files made holes, a reader goes without the table."""
    Store.restore(Path(disk, "backup"), Path(disk, "restored"))
    table = Path(disk, "restored", "lock.mdb")
    assert table.stat().st_blocks * 512 >= table.stat().st_size > 512 * 64
    child = children.run(VIEWS, disk, *["restored/lock.mdb"] * sparse)
    assert child.expect("views", 60) == "500"
    child.succeed()


def reads(children: Children, backup: str) -> Child:
    child = children.run(UNLISTED, backup)
    assert child.expect("reading") == "t"
    return child


def test_a_writer_waits_for_readers_without_a_reader_table(disk: str, children: Children) -> None:
    """Its commits would take away the pages of their views: StoreInUse names them, or they leave in time."""
    backup = os.path.join(disk, "backup")
    reader = reads(children, backup)
    with pytest.raises(
        StoreInUse, match=f"read without LMDB's reader table in process {reader.pid} "
    ) as busy:
        Store.open(backup, lock_timeout=0.05)
    assert busy.value.exit_code == 5
    assert sorted(os.listdir(backup)) == FILES
    second = reads(children, backup)
    writer = children.run(WRITE, backup, "30")
    assert not writer.has_spoken(0.1)
    for each in (reader, second):
        each.say("close")
        each.expect("closed")
    writer.expect("wrote")
    reads(children, backup).say("close")
    children.run(WRITE, backup, "0").expect("wrote")


def test_a_reader_of_this_process_gives_way_to_a_writer_of_it(disk: str, children: Children) -> None:
    """The handle for reading goes on through the reader table; while others read it stays as it is."""
    backup = os.path.join(disk, "backup")
    with Store.open(backup, read_only=True) as reading:
        other = reads(children, backup)
        with pytest.raises(StoreInUse):
            Store.open(backup, lock_timeout=0)
        assert [message.value for message in reading.reader("t")] == [b"kept"]
        other.say("close")
        other.expect("closed")
        with Store.open(backup, lock_timeout=0) as writing:
            writing.create_producer("t").send(b"more")
        assert [message.value for message in reading.reader("t")] == [b"kept", b"more"]


def test_a_store_in_use_is_not_read_from_a_read_only_disk(path: str, children: Children) -> None:
    """There the reader table cannot be written, and a writer elsewhere would take away the pages of the views."""
    with Store.open(path):
        child = children.run(BESIDE_A_WRITER)
        assert "has no reader table to be used, and is open in " in child.expect("refused")
        child.succeed()
    for place in (path, *(os.path.join(path, name) for name in os.listdir(path))):
        os.chmod(place, 0o700 if place == path else 0o600)
