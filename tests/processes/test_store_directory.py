"""Where a store lies: what is refused before anything of it is opened, and left untouched (semantics section 1)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from storage import Store
from storage.disk.codec import pack, unpack
from storage.disk.lmdb import directory as place
from storage.disk.schema import FORMAT_NUMBER, STORE
from storage.disk.view import WriteBatch
from storage.errors import (
    AlreadyExists,
    CorruptStore,
    InvalidValue,
    NotAStore,
    StoreInvalid,
    StoreNotFound,
    StoreUnsafe,
    UnknownFormat,
)

FILES = ("data.mdb", "lock.mdb", "store.lock")

State = dict[str, tuple[bytes, int, int]]


def state_of(directory: str) -> State:
    """Content, mode and time of change of every file, but for LMDB's table of readers."""
    return {
        name: (Path(directory, name).read_bytes(), status.st_mode, status.st_mtime_ns)
        for name in sorted(os.listdir(directory))
        if name != "lock.mdb"
        for status in [os.lstat(os.path.join(directory, name))]
    }


def refused(path: str, read_only: bool) -> StoreInvalid:
    """The error of opening the store, which leaves all files as they are, and can be repeated."""
    before, names = state_of(path), sorted(os.listdir(path))
    for _ in range(2):
        with pytest.raises(StoreInvalid) as caught:
            Store.open(path, read_only=read_only)
    assert state_of(path) == before
    assert sorted(os.listdir(path)) == names
    assert caught.value.exit_code == 6 and "\n" not in caught.value.message
    return caught.value


both_modes = pytest.mark.parametrize("read_only", [False, True])


@pytest.fixture
def spare(path: str, tmp_path: Path) -> str:
    """A copy of the store to be mistreated."""
    copy = str(tmp_path / "spare")
    shutil.copytree(path, copy)
    os.chmod(copy, 0o700)
    return copy


@both_modes
def test_a_store_of_another_format_is_refused_untouched(spare: str, read_only: bool):
    """UnknownFormat names both numbers; not a byte changes, whichever way it is opened."""

    def change(batch: WriteBatch) -> None:
        fields = unpack(batch.get(STORE, b"format") or b"")
        batch.put(STORE, b"format", pack([FORMAT_NUMBER + 41, *fields[1:], "something new"]))

    with Store.open(spare) as store:
        store.connection.write(change)
    error = refused(spare, read_only)
    assert isinstance(error, UnknownFormat)
    assert str(FORMAT_NUMBER + 41) in error.message and str(FORMAT_NUMBER) in error.message


@both_modes
def test_an_lmdb_file_that_is_no_store_is_refused_untouched(tmp_path: Path, read_only: bool):
    """Another program's LMDB environment, even with a lock file like ours beside it."""
    other = str(tmp_path / "other")
    environment = lmdb.open(other, map_size=1 << 20, mode=0o700)
    with environment.begin(write=True) as txn:
        txn.put(b"k", b"v")
    environment.close()
    assert isinstance(refused(other, read_only), NotAStore)
    Path(other, "store.lock").write_bytes(b"x" * 64)
    os.chmod(os.path.join(other, "store.lock"), 0o600)
    assert isinstance(refused(other, read_only), NotAStore)


@both_modes
@pytest.mark.parametrize(
    "content", [{}, {"data.mdb": b""}, {"data.mdb": b"x" * 100_000}, {"notes.txt": b"notes"}]
)
def test_a_directory_that_is_no_store_is_refused_untouched(
    tmp_path: Path, content: dict[str, bytes], read_only: bool
):
    """Nothing is created in it, and what is there stays."""
    other = tmp_path / "other"
    other.mkdir(0o700)
    for name, data in content.items():
        (other / name).write_bytes(data)
        (other / name).chmod(0o600)
    assert isinstance(refused(str(other), read_only), (NotAStore, CorruptStore))


@both_modes
def test_a_missing_path_is_refused_and_nothing_is_created(tmp_path: Path, read_only: bool):
    """StoreNotFound, and neither the directory nor its parents come into being."""
    with pytest.raises(StoreNotFound):
        Store.open(tmp_path / "a" / "b", read_only=read_only)
    assert list(tmp_path.iterdir()) == []


@both_modes
def test_a_file_is_refused_as_a_store(tmp_path: Path, read_only: bool):
    """A path that is a file, or lies below one, is no store."""
    file = tmp_path / "file"
    file.write_bytes(b"x")
    for path in (file, file / "below"):
        with pytest.raises(StoreInvalid):
            Store.open(path, read_only=read_only)
    assert file.read_bytes() == b"x"


@both_modes
@pytest.mark.parametrize("name", FILES)
def test_a_symlinked_file_is_refused(spare: str, tmp_path: Path, name: str, read_only: bool):
    """None of the three files may be a link: StoreUnsafe, and what it points to is not touched."""
    target = tmp_path / "elsewhere"
    shutil.move(os.path.join(spare, name), target)
    os.symlink(target, os.path.join(spare, name))
    before = target.read_bytes()
    assert isinstance(refused(spare, read_only), StoreUnsafe)
    assert target.read_bytes() == before


@both_modes
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_others_may_write_is_refused(spare: str, name: str, read_only: bool):
    """Group or world may write: StoreUnsafe, with the command that mends it; then it opens."""
    file = os.path.join(spare, name)
    for mode in (0o620, 0o602):
        os.chmod(file, mode)
        error = refused(spare, read_only)
        assert isinstance(error, StoreUnsafe) and "chmod go-w" in (error.hint or "")
    os.chmod(file, 0o600)
    Store.open(spare, read_only=read_only).close()


@both_modes
def test_a_directory_that_others_may_write_is_refused(spare: str, read_only: bool):
    """Whoever may write the directory may put other files in it."""
    os.chmod(spare, 0o770)
    assert isinstance(refused(spare, read_only), StoreUnsafe)


def test_a_linked_directory_is_the_store_it_points_to(path: str, tmp_path: Path):
    """A link to the directory is another name of the same store, also in one process."""
    link = tmp_path / "link"
    link.symlink_to(path)
    with Store.open(path) as one, Store.open(link) as other:
        one.create_producer("t").send(b"x")
        assert [message.value for message in other.reader("t")] == [b"x"]


@both_modes
@pytest.mark.parametrize("lost", ["data.mdb", "store.lock"])
def test_a_store_that_lacks_a_file_is_refused(spare: str, lost: str, read_only: bool):
    """It is named, and not made anew."""
    os.unlink(os.path.join(spare, lost))
    error = refused(spare, read_only)
    assert isinstance(error, NotAStore) and lost in error.message


def test_a_lost_reader_table_is_made_anew(spare: str):
    """LMDB's lock file holds nothing that lasts; it comes back with the mode of the others."""
    os.unlink(os.path.join(spare, "lock.mdb"))
    with Store.open(spare) as store:
        assert store.topics() == ["t"]
    assert os.stat(os.path.join(spare, "lock.mdb")).st_mode & 0o777 == 0o600


def mountinfo(path: str, kind: str) -> bytes:
    """What the kernel would say if `path` lay on a file system of that kind."""
    device = os.stat(path).st_dev
    return (
        b"22 1 0:99 / /proc rw - proc proc rw\n"
        + f"41 22 {os.major(device)}:{os.minor(device)} / /mnt rw shared:5 - {kind} host:/x rw\n".encode()
    )


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | None], None]:
    """Make the engine read this as the list of mounts; None is a system that has no such list."""

    def patch(text: bytes | None) -> None:
        monkeypatch.setattr(place, "proc_file", {"self/mountinfo": text}.get)

    return patch


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "lustre"])
def test_a_network_file_system_is_refused(
    path: str, tmp_path: Path, pretend: Callable[[bytes | None], None], kind: str
):
    """Neither opened nor created there; the kind is named, and nothing is left behind."""
    pretend(mountinfo(path, kind))
    error = refused(path, read_only=False)
    assert isinstance(error, StoreUnsafe) and f"({kind})" in error.message
    with pytest.raises(StoreUnsafe):
        Store.create(tmp_path / "new")
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", None])
def test_a_local_file_system_is_accepted(
    path: str, pretend: Callable[[bytes | None], None], kind: str | None
):
    """Also where the system does not tell."""
    pretend(None if kind is None else mountinfo(path, kind))
    with Store.open(path) as store:
        assert store.topics() == ["t"]


@both_modes
def test_nobody_is_told_to_change_the_mode_of_what_is_no_store(tmp_path: Path, read_only: bool):
    """`chmod go-w /tmp` would be bad advice: that it is no store comes first."""
    (tmp_path / "everybodys").mkdir()
    (tmp_path / "everybodys").chmod(0o1777)
    assert isinstance(refused(str(tmp_path / "everybodys"), read_only), NotAStore)


@both_modes
def test_a_store_of_another_user_is_refused_untouched(
    spare: str, read_only: bool, monkeypatch: pytest.MonkeyPatch
):
    """Whoever owns the directory can put other files into it: StoreUnsafe says whose it is."""
    owner = os.stat(spare).st_uid + 1001
    if os.geteuid() == 0:
        # A user of the machine looks at the store of another one.
        for each in (spare, *(os.path.join(spare, name) for name in os.listdir(spare))):
            os.chown(each, owner, owner)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(spare).st_uid + 1)
    error = refused(spare, read_only)
    assert isinstance(error, StoreUnsafe)
    assert f"{spare} belongs to user " in error.message and "Run txnctl as user " in (error.hint or "")


@both_modes
@pytest.mark.parametrize("name", ["data.mdb", "store.lock"])
def test_a_file_that_is_not_the_owners_is_refused_untouched(
    spare: str, name: str, read_only: bool, monkeypatch: pytest.MonkeyPatch
):
    """Root too refuses a store with a file of somebody else in it, and says how to mend it."""
    if os.geteuid() == 0:
        os.chown(os.path.join(spare, name), 1001, 1001)
    else:
        # Without root's rights a file of root takes that part.
        os.unlink(os.path.join(spare, name))
        os.symlink("/etc/passwd", os.path.join(spare, name))
        monkeypatch.setattr(os, "lstat", os.stat)
    error = refused(spare, read_only)
    assert isinstance(error, StoreUnsafe) and error.hint is not None
    assert f"{spare}/{name} belongs to user " in error.message
    assert f"chown {os.stat(spare).st_uid} {spare}/{name}" in error.hint


def test_root_leaves_the_store_of_a_user_to_the_user(spare: str):
    """What root creates there, LMDB's lock file, the reserve, the compacted file and the read cache, is its owner's."""
    owner = 1001 if os.geteuid() == 0 else os.geteuid()
    for each in (spare, *(os.path.join(spare, name) for name in os.listdir(spare))):
        os.chown(each, owner, -1)
    os.unlink(os.path.join(spare, "lock.mdb"))
    os.unlink(os.path.join(spare, "reserve"))
    with Store.open(spare) as store:
        assert os.stat(os.path.join(spare, "lock.mdb")).st_uid == owner
        store.create_producer("t").send(b"of root")
        store.create_table("rows")
        store.table("rows").put(b"k", b"of root")
        with store.transaction() as txn:
            assert store.table("rows").get(b"k", txn=txn) == b"of root"
        store.maintenance.compact_store()
        store.maintenance.backup_store(spare + ".backup")
    assert {name: os.stat(os.path.join(spare, name)).st_uid for name in os.listdir(spare)} == dict.fromkeys(
        (*FILES, "reads.cache", "reserve", "store.metrics"), owner
    )
    copied = Path(spare + ".backup")
    assert {each.stat().st_uid for each in (copied, *copied.iterdir())} == {os.geteuid()}


def test_a_read_cache_of_a_different_user_is_made_anew_for_the_owner(spare: str):
    """An earlier release left one of root's, which locked the owner out; no user goes on with it."""
    owner = 1001 if os.geteuid() == 0 else os.geteuid()
    with Store.open(spare) as store:
        store.create_table("rows")
        store.table("rows").put(b"k", b"before")
        with store.transaction() as txn:
            store.table("rows").get(b"k", txn=txn)
    for each in (spare, *(os.path.join(spare, name) for name in os.listdir(spare))):
        os.chown(each, owner, -1)
    cache = os.path.join(spare, "reads.cache")
    os.chown(cache, os.geteuid(), -1)
    if os.geteuid() != 0:
        os.chmod(cache, 0)  # Without root's rights a file that cannot be opened takes that part.
    with Store.open(spare) as store:
        assert store.table("rows").put(b"k", b"after")
        with store.transaction() as txn:
            assert store.table("rows").get(b"k", txn=txn) == b"after"
    status = os.stat(cache)
    assert (status.st_uid, status.st_mode & 0o777) == (owner, 0o600)


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000 + "store", "loop", "loop/store"])
def test_a_path_that_leads_nowhere_is_refused_in_words(tmp_path: Path, spare: str, name: str):
    """Too long in a part or as a whole, or through links in a circle: wherever a store is read or made."""
    (tmp_path / "loop").symlink_to("circle")
    (tmp_path / "circle").symlink_to("loop")
    at = f"{tmp_path}/{name}"
    attempts: list[Callable[[], object]] = [
        lambda: Store.open(at),
        lambda: Store.open(at, read_only=True),
        lambda: Store.restore(at, tmp_path / "new"),
        lambda: Store.create(at),
        lambda: Store.restore(spare, at),
    ]
    for attempt in attempts:
        with pytest.raises((StoreInvalid, AlreadyExists)) as caught:
            attempt()
        assert len(caught.value.message) < 500
    assert {each.name for each in tmp_path.iterdir()} == {"store", "spare", "loop", "circle"}


def test_a_path_with_a_nul_character_is_bad_input(tmp_path: Path):
    """For opening and for creating."""
    for attempt in (Store.open, Store.create):
        with pytest.raises(InvalidValue, match="NUL"):
            attempt(f"{tmp_path}/a\0b")


def test_a_path_needs_not_be_utf_8(tmp_path: Path, spare: str):
    """The system takes any bytes, and so does a store: made, written, compacted, copied, restored."""
    at = os.path.join(tmp_path, os.fsdecode(b"caf\xe9"))
    Store.create(at)
    with Store.open(at) as store:
        store.create_topic("t")
        store.create_producer("t").send(b"x")
        store.maintenance.compact_store()
        store.maintenance.backup_store(at + ".backup")
    Store.restore(at + ".backup", at + ".restored")
    with Store.open(at + ".restored", read_only=True) as store:
        assert [message.value for message in store.reader("t")] == [b"x"]
        assert store.reports.store_info().path == at + ".restored"
