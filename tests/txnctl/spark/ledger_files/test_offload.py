"""Offloading to files, and reading them in place of the store: with PyArrow, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from storage import CheckMode, IsolationLevel, Position, Store
from storage.errors import InvalidValue, OffloadInvalid, TopicNotFound
from storage.process.clock import SYSTEM_CLOCK
from txnctl.pipelines import offload as job
from txnctl.spark import schemas
from txnctl.spark.ledger_files import offload as offloading, range_export, upkeep
from txnctl.spark.ledger_files.layout import LEDGERS, MANIFESTS, RANGES, UNDECIDED
from txnctl.spark.ledger_files.offload import Offloaded, offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.ledger_files.table_plan import snapshot_partitions
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.table_range import TableRange
from txnctl.spark.source.topic_range import TopicRange

SCHEMA = schemas.arrow_columns(schemas.MESSAGE_TYPES)
COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def fill(store: Store, entries: int = 23, topic: str = "t") -> None:
    """Ledgers of five entries: plain messages, committed ones, aborted ones, single and in batches."""
    if not store.has_topic(topic):
        store.create_topic(topic, ledger_entries_max=5)
    with store.create_producer(topic) as producer:
        for number in range(entries):
            values = [b"%d-%d" % (number, index) for index in range(1 + number % 3 * 4)]
            if number % 4 != 3:
                keys = [b"k%d" % index for index in range(len(values))] if number % 2 else None
                producer.send_batch(values, keys=keys, properties=[{"n": str(number)}] * len(values))
                continue
            txn = store.transaction()
            producer.send_batch(values, event_times=[number] * len(values), txn=txn)
            txn.flush()
            txn.commit() if number % 8 == 3 else txn.abort()


def span(store: Store, level: IsolationLevel, **given: Any) -> TopicRange:
    """The whole topic, unless something else is given."""
    (extent,) = store.reports.topic_extents(["t"])
    asked = {"after": extent.before, "through": extent.bound(level), **given}
    return TopicRange(
        LocalStore.of_open_store(store), extent.topic, extent.topic_id, level=level,
        open_txns=frozenset(extent.open_txns), **asked,
    )  # fmt: skip


def rows(pieces: list[Any]) -> list[dict[str, Any]]:
    return [row for piece in pieces for batch in piece.batches(SCHEMA) for row in batch.to_pylist()]


def files(done: Offloaded, kind: str) -> list[str]:
    return sorted(done.directory.files_in(kind))


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_files_hold_what_the_store_holds(store: Store, root: Root, level: IsolationLevel):
    """At both levels the rows read from files are those read from the store, in the same order."""
    fill(store)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send_batch([b"open", b"too"], txn=txn)
        producer.send(b"behind it")
    wanted = span(store, level)
    found = rows(file_partitions(store, [wanted], root.uri))
    assert found == rows([wanted])
    assert {row["txnState"] for row in found} >= (
        {"OPEN", "ABORTED"} if level is UNCOMMITTED else {"COMMITTED"}
    )
    txn.abort()


@pytest.mark.parametrize("level", list(IsolationLevel))
@pytest.mark.parametrize(
    ("after", "through", "first_index", "stop_index"),
    [
        ((1, -1), (1, 4), 0, None), ((1, 1), (3, 2), 0, None), ((1, 0), (2, 1), 3, 2), ((1, 4), (4, -1), 0, None),
        ((2, 2), (2, 2), 0, None), ((4, 1), (5, 1), 2, 4), ((1, 1), (1, 2), 2, 5),
    ],
)  # fmt: skip
def test_bounds_inside_a_file_are_kept(
    store: Store,
    root: Root,
    level: IsolationLevel,
    after: tuple[int, int],
    through: tuple[int, int],
    first_index: int,
    stop_index: int | None,
):
    """A read that begins or ends within a ledger, or within a batch, gives exactly those messages."""
    fill(store)
    offload(store, "t", root)
    wanted = span(
        store, level, after=Position(*after), through=Position(*through), first_index=first_index,
        stop_index=stop_index,
    )  # fmt: skip
    assert rows(file_partitions(store, [wanted], root.uri)) == rows([wanted])


def test_columns_come_as_the_schema_asks(store: Store, root: Root):
    """Any of them, in any order, keys and values as text."""
    fill(store)
    import pyarrow as pa

    schema = pa.schema([("txnId", pa.string()), ("value", pa.string())])
    batches = [
        batch
        for piece in file_partitions(store, [span(store, COMMITTED)], root.uri)
        for batch in piece.batches(schema)
    ]
    assert all(batch.schema == schema for batch in batches)
    values = [message.value.decode() for message in store.reader("t")]
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == values


def test_only_closed_ledgers_whose_transactions_have_ended_are_offloaded(store: Store, root: Root):
    """What stands behind an open transaction waits for its end."""
    fill(store, 7)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    fill(store, 10)
    (extent,) = store.reports.topic_extents(["t"])
    done = offload(store, "t", root)
    assert sorted(done.manifest.ledgers) == [1]
    assert done.undecided == len(extent.ledgers) - 2
    txn.commit()
    done = offload(store, "t", root)
    assert done.undecided == 0
    assert sorted(done.manifest.ledgers) == [
        each.ledger_id for each in store.reports.topic_extents(["t"])[0].ledgers[:-1]
    ]


def test_offloading_again_goes_on_where_it_stopped(store: Store, root: Root):
    """What is there is not written again, and neighbouring small ledgers share a file."""
    fill(store)
    first = offload(store, "t", root)
    assert [len(file.ledgers) for file in first.added] == [5]
    fill(store)
    second = offload(store, "t", root)
    assert second.manifest.files[: len(first.manifest.files)] == first.manifest.files
    assert files(second, LEDGERS) == sorted(file.name for file in second.manifest.files)
    assert offload(store, "t", root).added == []


def test_large_ledgers_have_files_of_their_own(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """A file takes neighbouring ledgers up to its size, and a ledger is never split."""
    monkeypatch.setattr(offloading, "FILE_BYTES", 1)
    fill(store)
    assert [len(file.ledgers) for file in offload(store, "t", root).manifest.files] == [1] * 5


def test_a_file_is_written_in_row_groups(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """They can be read apart, as many partitions as are asked for, and each read skips those out of its bounds."""
    monkeypatch.setattr(range_export, "ROW_GROUP_ROWS", 10)
    fill(store)
    done = offload(store, "t", root)
    (file,) = done.manifest.files
    assert file.content.row_groups > 5
    wanted = span(store, COMMITTED, through=Position(5, 4))
    pieces = file_partitions(store, [wanted], root.uri, min_partitions=5)
    assert len(pieces) >= 5
    assert rows(pieces) == rows([wanted])
    narrow = span(store, COMMITTED, after=Position(3, 1), through=Position(3, 3))
    pieces = file_partitions(store, [narrow], root.uri, min_partitions=100)
    assert rows(pieces) == rows([narrow])
    with done.directory.open_file(LEDGERS, file.name) as source:
        groups = pq.ParquetFile(source).metadata
        touched = [piece for piece in pieces if piece._touches(groups.row_group(piece.groups[0]))]
    assert 0 < len(touched) < len(pieces)


def test_the_decided_tail_is_exported_once(store: Store, root: Root):
    """The second plan reuses the file of the first, and exports only what came since."""
    fill(store, 2)
    first = file_partitions(store, [span(store, COMMITTED)], root.uri)
    again = file_partitions(store, [span(store, COMMITTED)], root.uri)
    assert again == first
    with store.create_producer("t") as producer:
        producer.send(b"more")
    third = file_partitions(store, [span(store, COMMITTED)], root.uri)
    assert third[:-1] == first
    assert [row["value"] for row in rows(third[-1:])] == [b"more"]


def test_the_undecided_tail_keeps_the_states_of_its_plan(store: Store, root: Root):
    """Rows of a READ_UNCOMMITTED plan stay as they are, whatever becomes of the transaction; the next plan sees it."""
    fill(store, 3)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    pieces = file_partitions(store, [span(store, UNCOMMITTED)], root.uri)
    txn.commit()
    assert [row["txnState"] for row in rows(pieces)][-1] == "OPEN"
    later = rows(file_partitions(store, [span(store, UNCOMMITTED)], root.uri))
    assert [row["txnState"] for row in later][-1] == "COMMITTED"


def test_a_topic_without_messages_has_no_partitions(store: Store, root: Root):
    """And nothing is left in the directory."""
    store.create_topic("t")
    assert file_partitions(store, [span(store, COMMITTED)], root.uri) == []
    assert files(offload(store, "t", root), RANGES) == []


def test_a_topic_created_again_has_a_directory_of_its_own(store: Store, root: Root):
    """Its files are never mixed up with those of the topic that had its name."""
    fill(store)
    before = span(store, COMMITTED)
    old = offload(store, "t", root)
    store.admin.topics.delete_topic("t")
    fill(store, 11)
    new = offload(store, "t", root)
    assert new.directory.where() != old.directory.where()
    assert rows(file_partitions(store, [span(store, COMMITTED)], root.uri)) == rows([span(store, COMMITTED)])
    with pytest.raises(TopicNotFound, match="created again"):
        file_partitions(store, [before], root.uri)


def test_a_restored_store_has_a_directory_of_its_own(store: Store, root: Root, tmp_path: Path):
    """It is another incarnation, whose ledgers may differ from those written after the backup."""
    fill(store)
    old = offload(store, "t", root)
    store.maintenance.backup_store(tmp_path / "backup")
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    with Store.open(tmp_path / "restored") as restored:
        new = offload(restored, "t", root)
        assert new.directory.where() != old.directory.where()
        assert [file.ledgers for file in new.manifest.files] == [file.ledgers for file in old.manifest.files]


def test_two_copies_of_a_store_that_were_both_written_to_are_told_apart(
    store: Store, root: Root, tmp_path: Path
):
    """A ledger that is not the one offloaded under its number is an error, not a mixture."""
    fill(store, 7)
    store.maintenance.backup_store(tmp_path / "copy")
    fill(store, 11)
    offload(store, "t", root)
    with Store.open(tmp_path / "copy") as copy:
        fill(copy, 17)
        with pytest.raises(OffloadInvalid, match="two copies"):
            offload(copy, "t", root)


def test_several_that_offload_at_once_do_no_harm(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """Each ledger is named once, and no file is left that the manifest does not name."""
    monkeypatch.setattr(offloading, "FILE_BYTES", 1)
    fill(store, 60)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(offload, store, "t", root) for _ in range(4)]
    assert (
        sum(len(run.result().added) for run in runs) == len(store.reports.topic_extents(["t"])[0].ledgers) - 1
    )
    done = offload(store, "t", root)
    assert done.added == []
    assert sorted(done.manifest.ledgers) == [
        each.ledger_id for each in store.reports.topic_extents(["t"])[0].ledgers[:-1]
    ]
    assert files(done, LEDGERS) == sorted(file.name for file in done.manifest.files)


def test_what_a_killed_run_left_is_found_and_removed(store: Store, root: Root):
    """A process that dies before the manifest names its file leaves nothing that is read, and the next run goes on."""
    fill(store)
    program = (
        "import os, sys\n"
        "from storage import Store\n"
        "from txnctl.spark.ledger_files import directory, offload, root\n"
        "directory.TopicDirectory.publish = lambda *_: os._exit(9)\n"
        "with Store.open(sys.argv[1], read_only=True) as store:\n"
        "    offload.offload(store, 't', root.Root(sys.argv[2]))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, store.path, root.uri], check=False)
    assert killed.returncode == 9
    done = offload(store, "t", root)
    assert len(done.added) == 1
    assert len(files(done, LEDGERS)) == 2
    upkeep.verify(done.directory, done.manifest)
    assert upkeep.collect(done.directory, done.manifest, 1 << 62) == 1
    assert files(done, LEDGERS) == [done.added[0].name]


def test_what_another_run_offloads_meanwhile_is_not_collected(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
):
    """However short a time files are kept: what counts is the manifest at that moment, not the one that was written."""
    fill(store, 10)
    verify = upkeep.verify

    def slowly(*arguments: Any) -> None:
        verify(*arguments)
        fill(store, 10)
        offload(store, "t", root)

    monkeypatch.setattr(upkeep, "verify", slowly)
    row = job.offload_topic(store, "t", job.OffloadOptions(root.uri, verify=True, retain_ms=-60_000))
    assert row.removed_files == 1, "the manifest before the last one"
    done = offload(store, "t", root)
    verify(done.directory, done.manifest)
    assert len(done.manifest.files) == 2


def test_a_file_that_is_collected_before_it_is_named_is_never_named(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
):
    """Its run fails, and the next one writes it again."""
    fill(store, 10)
    written = offloading._write_ledgers

    def collected(*arguments: Any) -> Any:
        file = written(*arguments)
        directory = arguments[1]
        assert upkeep.collect(directory, directory.manifest()[1], 1 << 62) == 1
        return file

    with monkeypatch.context() as patched:
        patched.setattr(offloading, "_write_ledgers", collected)
        with pytest.raises(OffloadInvalid, match="does not exist"):
            offload(store, "t", root)
    done = offload(store, "t", root)
    upkeep.verify(done.directory, done.manifest)
    assert len(done.added) == 1


def test_verifying_reads_every_byte(store: Store, root: Root):
    """A single changed byte, and a missing file, are found and named."""
    fill(store)
    done = offload(store, "t", root)
    counted: list[tuple[int, int]] = []
    upkeep.verify(done.directory, done.manifest, lambda *each: counted.append(each))
    assert counted[-1][0] == counted[-1][1] == sum(file.content.rows for file in done.manifest.files)
    file = Path(root.for_spark(done.directory.path).removeprefix("file://"), LEDGERS, done.added[0].name)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(OffloadInvalid, match="checksum") as caught:
        upkeep.verify(done.directory, done.manifest)
    assert done.added[0].name in caught.value.message
    file.unlink()
    with pytest.raises(OffloadInvalid, match="does not exist"):
        upkeep.verify(done.directory, done.manifest)


def test_collecting_removes_what_nobody_needs_and_nothing_else(store: Store, root: Root):
    """Ranges go when their ledgers are offloaded; the hot tail, the manifest that counts and its files stay."""
    fill(store, 10)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    file_partitions(store, [span(store, UNCOMMITTED)], root.uri)
    txn.commit()
    fill(store, 1)
    fill(store, 12)
    file_partitions(store, [span(store, COMMITTED)], root.uri)
    done = offload(store, "t", root)
    assert (
        len(files(done, RANGES)) == 2
        and len(files(done, UNDECIDED)) == 1
        and len(files(done, MANIFESTS)) == 2
    )
    assert upkeep.collect(done.directory, done.manifest, 0) == 0
    assert upkeep.collect(done.directory, done.manifest, 1 << 62) == 3
    assert (len(files(done, RANGES)), files(done, UNDECIDED), len(files(done, MANIFESTS))) == (1, [], 1)
    assert rows(file_partitions(store, [span(store, COMMITTED)], root.uri)) == rows([span(store, COMMITTED)])


def test_a_range_stays_as_long_as_a_plan_may_have_chosen_it(store: Store, root: Root):
    """Not its own age counts, but for how long its ledgers have been offloaded: until then plans took the range."""
    fill(store, 3)
    pieces = file_partitions(store, [span(store, COMMITTED)], root.uri)
    before = rows(pieces)
    fill(store, 9)
    done = offload(store, "t", root)
    place = Path(root.for_spark(done.directory.path).removeprefix("file://"))
    now_ms, day_s = SYSTEM_CLOCK.wall_ms(), 86_400
    for kind, removed in ((RANGES, 0), (LEDGERS, 1)):
        for file in (place / kind).iterdir():
            os.utime(file, (now_ms / 1000 - 2 * day_s,) * 2)
        assert rows(pieces) == before
        assert upkeep.collect(done.directory, done.manifest, now_ms - day_s * 1000) == removed
    with pytest.raises(OffloadInvalid, match="does not exist"):
        rows(pieces)


def test_bytes_that_are_no_text_are_told(store: Store, root: Root):
    """Text was asked for, and a value is not UTF-8: the error says how to ask."""
    import pyarrow as pa

    store.create_topic("t")
    with store.create_producer("t") as producer:
        producer.send(b"\xff")
    (piece,) = file_partitions(store, [span(store, COMMITTED)], root.uri)
    with pytest.raises(InvalidValue, match="is not UTF-8"):
        list(piece.batches(pa.schema([("value", pa.string())])))


def test_a_task_reads_files_where_lmdb_cannot_be_imported(store: Store, root: Root, tmp_path: Path):
    """A piece, pickled and read in a process without lmdb, gives the rows; nothing of the engine's files is needed."""
    import pickle

    fill(store)
    wanted = span(store, COMMITTED)
    pieces = file_partitions(store, [wanted], root.uri)
    packed = tmp_path / "pieces"
    packed.write_bytes(pickle.dumps((pieces, SCHEMA)))
    program = (
        "import sys, pickle\n"
        "sys.modules['lmdb'] = None\n"
        "pieces, schema = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(sum(batch.num_rows for piece in pieces for batch in piece.batches(schema)))\n"
        "assert 'storage.disk.environment' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(packed)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )  # fmt: skip
    assert int(done.stdout) == len(rows([wanted]))


@pytest.mark.parametrize("as_of", [False, True])
def test_a_table_is_read_from_files(store: Store, root: Root, as_of: bool):
    """As committed, or as of a version: the rows are those of the store, whatever is written afterwards."""
    store.create_table("accounts")
    table = store.table("accounts")
    table.import_rows((b"%03d" % number, b"old") for number in range(100))
    version = table.put(b"050", b"new")
    table.delete(b"007")
    schema = schemas.arrow_columns(schemas.ROW_TYPES)
    at = version if as_of else None
    ranges = [
        TableRange(
            LocalStore.of_open_store(store), "accounts", table.table_id, start, end, CheckMode.MINIMAL, at
        )
        for start, end in ((b"", b"040"), (b"040", b"040a"), (b"040a", b"9"), (b"9", None))
    ]
    wanted = [row for each in ranges for batch in each.batches(schema) for row in batch.to_pylist()]
    pieces = snapshot_partitions(ranges, root.uri, 0)
    table.put(b"050", b"later")
    assert len(pieces) == 3
    assert [row for each in pieces for batch in each.batches(schema) for row in batch.to_pylist()] == wanted
    assert len(wanted) == (100 if as_of else 99)


def test_snapshots_of_tables_are_removed_by_their_age(store: Store, root: Root):
    """The next plan of the table removes those that are a day old."""
    store.create_table("accounts")
    table = store.table("accounts")
    table.put(b"B1", b"100")
    whole = TableRange(
        LocalStore.of_open_store(store), "accounts", table.table_id, b"", None, CheckMode.MINIMAL, None
    )
    for now_ms, left in ((0, 1), (0, 2), (SYSTEM_CLOCK.wall_ms() + 2 * upkeep.RETAIN_MS, 1)):
        (piece,) = snapshot_partitions([whole], root.uri, now_ms)
        directory = Path(root.for_spark(piece.path).removeprefix("file://")).parent
        assert len(list(directory.iterdir())) == left
