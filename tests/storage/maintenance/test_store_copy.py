"""A copy of a store: equal to one view of its source, a new incarnation, and there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from storage import EARLIEST, Store, faults
from storage.disk.codec import U64, unpack
from storage.errors import AlreadyExists, CorruptStore, InvalidValue, StoreInUse, StoreNotFound
from storage.maintenance.store_copy import CopyResult
from tests.format.small_store import unpacked
from tests.storage.maintenance.rich_store import Records, build_rich, differing, records_of
from tests.throwaway_server import Server

pytestmark = pytest.mark.needs_program("initdb")

TIMED = {
    "aborted", "audit", "cursors", "entries", "heads", "ledgers", "owners", "store", "subscriptions", "topics", "txns",
}  # fmt: skip
"""Databases with records of the new incarnation that have the time at which it began."""


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that no test changes."""
    path = tmp_path_factory.mktemp("rich") / "store"
    build_rich(path)
    return path


@pytest.fixture(scope="module")
def restored(rich: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """The records of the same store restored as a file, the other way to a new incarnation."""
    path = tmp_path_factory.mktemp("restored") / "store"
    Store.restore(rich, path)
    return records_of(path)


@pytest.fixture(params=["directory", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Names of new stores in a directory, or on a server."""
    if request.param == "directory":
        return lambda name: str(tmp_path / name)
    server: Server = request.getfixturevalue("server")
    base = server.url().rpartition("=")[2]
    return lambda name: server.url(f"{base}_{name}")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


copy = partial(Store.copy, durability="local")
create = partial(Store.create, durability="local")


class Interrupt(Exception):
    """Ends a copy in the middle."""


def is_unfinished(server: Server, name: str) -> bool:
    """Whether the server has an unfinished copy of a store."""
    schema = f"{name.rpartition('=')[2]}$copy"
    return schema in server.schemas()


def interrupt_at(point: str, count: int = 1) -> None:
    """End the copy at the point reached the given number of times."""
    reached = 0

    def stop() -> None:
        nonlocal reached
        reached += 1
        if reached == count:
            raise Interrupt

    faults.arm(point, stop)


def placed(records: Records) -> Records:
    """The records, with 1 for the first ledger of each life in their keys, as it is the time of an incarnation."""

    def without_time(key: bytes) -> bytes:
        words = [key[at : at + 8] for at in range(0, len(key), 8)]
        return b"".join(U64.pack(1) if word == begin else word for word in words)

    ledger_id, _ = unpack(memoryview(records["store", b"former-topics"])[4:], 2)
    begin = U64.pack(ledger_id)
    return {(database, without_time(key)): value for (database, key), value in records.items()}


def check_like_restored(name: str, restored: Records) -> None:
    """That the store has the records of the restored one, apart from the time of its incarnation."""
    copied, restored = placed(records_of(name)), placed(restored)
    assert copied.keys() == restored.keys()
    assert set(differing(copied, restored)) <= TIMED


def test_a_copy_has_all_records(rich: Path, restored: Records, place: Callable[[str], str]) -> None:
    """The new store is the one that a restore makes of the same file."""
    before = records_of(rich)
    result = copy(rich, place("b"))
    assert (result.content.records, result.written, result.removed) == (len(before), len(before), 0)
    check_like_restored(place("b"), restored)
    with Store.open(rich, read_only=True) as original, Store.open(place("b")) as copied:
        assert copied.maintenance.verify_store() == []
        info, of_copy = original.reports.store_info(), copied.reports.store_info()
        assert (of_copy.store_id, of_copy.incarnation) == (info.store_id, info.incarnation + 1)
        assert copied.reports.list_transactions() == []
        assert result.reincarnation.transactions_aborted == len(list(original.reports.list_transactions()))
        for topic in original.topics():
            with original.reader(topic) as first, copied.reader(topic) as second:
                values = [(message.message_id, message.value) for message in first]
                there = [(message.message_id, message.value) for message in second]
            # Below the first open transaction both are equal; the end of that one shows what stood behind it.
            assert there[: len(values)] == values
        assert copied.table("accounts").get(b"row 3") == b"second"


def test_there_and_back_is_the_same(rich: Path, server: Server, tmp_path: Path) -> None:
    """From the second copy on nothing is under way, and only the incarnation and the audit trail change."""
    copy(rich, server.url("golden"))
    copy(server.url("golden"), tmp_path / "back")
    before, after = records_of(server.url("golden")), records_of(tmp_path / "back")
    gone = before.keys() - after.keys()
    assert not gone
    assert {name for name, _ in after.keys() - before.keys()} <= {"audit", "ledgers", "owners"}
    assert set(differing(before, after)) <= {"audit", "cursors", "heads", "ledgers", "owners", "store"}
    first = copy(tmp_path / "back", tmp_path / "c").content
    with Store.open(tmp_path / "c") as store:
        assert store.maintenance.verify_store() == []
        assert store.reports.store_info().incarnation == 4
    assert (first.messages, first.rows) == (
        sum(1 for (name, _), value in after.items() if name == "entries" for _ in range(_messages(value))),
        sum(1 for name, _ in after if name == "rows"),
    )


def _messages(value: bytes) -> int:
    from storage.topic.entry import HEADER, MESSAGES

    _, kind, _, messages, *_ = HEADER.unpack_from(value, 4)
    return messages if kind == MESSAGES else 0


@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("store.copy.after_batch", 1),
        ("store.copy.before_comparison", 1),
        ("environment.before_commit", 1),
        ("store.copy.before_install", 1),
    ],
)
def test_an_interrupted_copy_goes_on(
    rich: Path, restored: Records, place: Callable[[str], str], point: str, count: int
) -> None:
    """Nothing opens at the destination meanwhile; the second run writes what is missing, and the result is the same."""
    interrupt_at(point, count)
    with pytest.raises(Interrupt):
        copy(rich, place("b"))
    faults.disarm()
    with pytest.raises(StoreNotFound):
        Store.open(place("b"))
    result = copy(rich, place("b"))
    assert result.is_resumed
    assert result.written < 300
    check_like_restored(place("b"), restored)


def test_a_source_that_changed_is_followed(tmp_path: Path, place: Callable[[str], str]) -> None:
    """Records that the source has no more are removed, others are written: the copy equals the view of its last run."""
    with Store.open(_small(tmp_path)) as store:
        interrupt_at("store.copy.before_comparison")
        with pytest.raises(Interrupt):
            copy(store.path, place("b"))
        faults.disarm()
        store.create_producer("orders").send(b"new")
        store.admin.topics.delete_topic("parcels", force=True)
        store.maintenance.purge_deleted()
        store.table("accounts").put(b"B1", b"changed")
        result = copy(store.path, place("b"))
        assert result.removed > 0
        Store.restore(store.path, tmp_path / "restored")
        check_like_restored(place("b"), records_of(tmp_path / "restored"))
    with Store.open(place("b")) as copied:
        assert not copied.has_topic("parcels")
        assert copied.table("accounts").get(b"B1") == b"changed"
        assert [message.value for message in copied.reader("orders", start=EARLIEST)][-1] == b"new"


def _small(tmp_path: Path) -> Path:
    return unpacked(2, tmp_path / "small")


def test_a_source_may_be_written_meanwhile(tmp_path: Path, place: Callable[[str], str]) -> None:
    """The copy is one view."""
    with Store.open(_small(tmp_path)) as store:
        producer = store.create_producer("accounts", producer_name="late", access_mode="ExclusiveWithFencing")

        def send() -> None:
            producer.send(b"meanwhile")

        faults.arm("store.copy.before_comparison", send)
        copy(store.path, place("b"))
        faults.disarm()
        assert [message.value for message in store.reader("accounts")][-1] == b"meanwhile"
    with Store.open(place("b")) as copied:
        assert b"meanwhile" not in [message.value for message in copied.reader("accounts")]
        assert copied.maintenance.verify_store() == []


def test_a_flipped_byte_in_a_directory_is_found(rich: Path, tmp_path: Path) -> None:
    """A record that the disk gave back differently has no place at the destination; the next run mends the copy."""
    build = tmp_path / ".b.copy" / "data.mdb"

    def flip() -> None:
        data = bytearray(build.read_bytes())
        at = data.find(b"many" * 1)
        while data[at : at + 4] == b"many":
            data[at] ^= 1
            at = data.find(b"many", at + 4)
            break
        with open(build, "r+b") as file:
            file.write(data)

    faults.arm("store.copy.before_comparison", flip)
    with pytest.raises(CorruptStore, match=r"differs from what was read of .*, in entries"):
        copy(rich, tmp_path / "b")
    faults.disarm()
    assert not (tmp_path / "b").exists()
    assert copy(rich, tmp_path / "b").written <= 2


def test_a_flipped_byte_on_a_server_is_found(rich: Path, server: Server) -> None:
    """As in a directory."""
    change = """UPDATE "flipped$copy".entries SET v = set_byte(v, 80, get_byte(v, 80) # 1) WHERE k = (
        SELECT k FROM "flipped$copy".entries WHERE length(v) > 100 ORDER BY k DESC LIMIT 1)"""
    faults.arm("store.copy.before_comparison", lambda: server.run(change))
    with pytest.raises(CorruptStore, match="in entries"):
        copy(rich, server.url("flipped"))
    faults.disarm()
    with pytest.raises(StoreNotFound):
        Store.open(server.url("flipped"))
    assert copy(rich, server.url("flipped")).written == 1


def test_a_damaged_source_is_not_copied(tmp_path: Path, server: Server) -> None:
    """The checksum of each record is checked on the way."""
    copy(_small(tmp_path), server.url("damaged"))
    server.run(
        "UPDATE damaged.kv SET v = set_byte(v, 5, get_byte(v, 5) # 1) WHERE k = (SELECT k FROM damaged.kv WHERE length(v) > 5 ORDER BY k LIMIT 1)"
    )
    with pytest.raises(CorruptStore, match="the checksum does not agree"):
        copy(server.url("damaged"), tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_destination_that_is_there_is_left(rich: Path, place: Callable[[str], str]) -> None:
    """A store above all."""
    copy(rich, place("b"))
    before = records_of(place("b"))
    with pytest.raises(AlreadyExists, match="left unchanged"):
        copy(rich, place("b"))
    assert records_of(place("b")) == before


def test_a_destination_that_comes_meanwhile_is_left(tmp_path: Path, place: Callable[[str], str]) -> None:
    """The name is taken at the end only, and not from another store."""
    faults.arm("store.copy.before_install", lambda: create(place("b")))
    with pytest.raises(AlreadyExists):
        copy(_small(tmp_path), place("b"))
    faults.disarm()
    with Store.open(place("b")) as store:
        assert store.topics() == []


def test_two_copies_to_one_place_do_not_meet(tmp_path: Path, place: Callable[[str], str]) -> None:
    """The second is refused while the first runs."""
    source, refused = _small(tmp_path), list[str]()

    def second() -> None:
        with pytest.raises(StoreInUse) as error:
            copy(source, place("b"))
        refused.append(error.value.message)

    faults.arm("store.copy.before_comparison", second)
    copy(source, place("b"))
    assert len(refused) == 1
    assert "is copying" in refused[0]


def test_a_dry_run_leaves_nothing(
    rich: Path, tmp_path: Path, place: Callable[[str], str], server: Server
) -> None:
    """Its figures are those of the real run."""

    def fields(result: CopyResult) -> tuple[object, ...]:
        return result.content, result.written, result.reincarnation

    dry = copy(rich, place("b"), dry_run=True)
    assert not os.listdir(tmp_path)
    assert not is_unfinished(server, place("b"))
    real = copy(rich, place("b"))
    assert (dry.dry_run, real.dry_run) == (True, False)
    assert fields(dry) == fields(real)


def test_format_1_is_upgraded_on_the_way(tmp_path: Path, place: Callable[[str], str]) -> None:
    """As a restore does."""
    result = copy(unpacked(1, tmp_path / "old"), place("b"))
    assert result.format_before == 1
    with Store.open(place("b")) as store:
        assert store.reports.store_info().format == 2
        assert store.maintenance.verify_store() == []
        assert [record.action for record in store.reports.list_audit_records()][:2] == [
            "store copy",
            "store upgrade",
        ]
        store.create_producer("orders").send(b"more")


def test_a_deadline_keeps_its_rest(tmp_path: Path, place: Callable[[str], str]) -> None:
    """The store clock goes on from the source's, whatever the clocks of both engines show."""
    Store.create(tmp_path / "a")
    with Store.open(tmp_path / "a") as store:
        store.create_topic("t")
        with store.connection.view() as view:
            before_ns = view.now_ns
        copy(store.path, place("b"))
        with store.connection.view() as view:
            after_ns = view.now_ns
    with Store.open(place("b")) as copied, copied.connection.view() as view:
        assert view.is_clock_running
        assert before_ns <= view.superblock.last_clock_ns <= view.now_ns
        assert view.superblock.last_clock_ns <= after_ns + 1_000_000_000


def test_a_backup_of_a_server_is_a_store_to_restore(rich: Path, server: Server, tmp_path: Path) -> None:
    """The backup is the same incarnation, as of a directory; a restore to either engine makes a new one."""
    source = server.url()
    copy(rich, source)
    with Store.open(source) as store:
        store.begin_transaction()
        store.maintenance.backup_store(tmp_path / "backup")
        with pytest.raises(InvalidValue, match="a backup is a directory"):
            store.maintenance.backup_store(server.url())
        assert records_of(source) == records_of(tmp_path / "backup")
    for destination in (server.url(), str(tmp_path / "again")):
        result = Store.restore(tmp_path / "backup", destination, durability="local")
        assert (result.reincarnation.incarnation, result.reincarnation.transactions_aborted) == (3, 1)
        with Store.open(destination) as restored:
            assert restored.reports.list_transactions(ended=True)[0].reason == "incarnation"
            assert restored.maintenance.verify_store() == []


def test_leftovers_go_with_gc(tmp_path: Path, place: Callable[[str], str], server: Server) -> None:
    """An unfinished copy whose destination is a store by now is of no use."""
    source = _small(tmp_path)
    interrupt_at("store.copy.before_comparison")
    with pytest.raises(Interrupt):
        copy(source, place("b"))
    faults.disarm()
    create(place("b"))
    with Store.open(place("b")) as store:
        store.maintenance.collect_garbage()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".copy")]
    assert not is_unfinished(server, place("b"))


def test_a_build_that_does_not_open_is_made_anew(rich: Path, tmp_path: Path) -> None:
    """A power cut may leave anything."""
    interrupt_at("store.copy.before_comparison")
    with pytest.raises(Interrupt):
        copy(rich, tmp_path / "b")
    faults.disarm()
    os.truncate(tmp_path / ".b.copy" / "data.mdb", 10_000)
    result = copy(rich, tmp_path / "b")
    assert not result.is_resumed
    assert result.written == result.content.records


def test_a_copy_fills_an_empty_directory(rich: Path, tmp_path: Path) -> None:
    """As a mount point, which no rename replaces; an interrupted copy lies inside."""
    (tmp_path / "mount").mkdir(mode=0o700)
    interrupt_at("store.copy.before_comparison")
    with pytest.raises(Interrupt):
        copy(rich, tmp_path / "mount")
    faults.disarm()
    assert os.listdir(tmp_path / "mount") == [".store.copy"]
    assert copy(rich, tmp_path / "mount").is_resumed
    assert ".store.copy" not in os.listdir(tmp_path / "mount")
    with Store.open(tmp_path / "mount") as store:
        assert store.maintenance.verify_store() == []
