"""Adoption: staged files become one transaction, exactly once."""

from __future__ import annotations

import json
import pickle
import re
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import IsolationLevel, Store
from storage.errors import InvalidValue, ProducerBusy, RequestTooOld, TableNotFound, TopicNotFound
from storage.limits import TABLE_RETENTION_MS, WRITE_BYTES_TARGET
from storage.process.clock import Clock, ManualClock
from storage.topic.batching import columns_of, entries_of
from tests.processes.child import Child
from tests.row_json import row_json
from txnctl.spark.sink import progress
from txnctl.spark.sink.adoption import Adopted, StagedBatch, adopt, clean_up
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import Staging, file_name, write_name

WRITE = write_name("0" * 16)
T, U = "persistent://public/default/t", "persistent://public/default/u"
QUERY = "5e1f"
Rows = dict[str, list[bytes]]


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    found = Staging.at(str(tmp_path / "staging"))
    found.make_directory()
    return found


@pytest.fixture
def store(store: Store) -> Store:
    """An open store with two empty topics."""
    for topic in ("t", "u"):
        store.create_topic(topic)
    return store


def staged(staging: Staging, *partitions: Rows) -> list[StagedFile]:
    """A file for each partition, with the values of each topic in entries of one message or two."""
    files = []
    for number, rows in enumerate(partitions):
        with staging.writing(WRITE, file_name(number, 0, "0" * 16)) as file:
            for topic, values in rows.items():
                for at in range(0, len(values), 2):
                    for entry in entries_of(columns_of(values[at : at + 2], None, None, None)):
                        file.add(topic, entry)
            files.append(file.close())
    return files


def staged_rows(
    staging: Staging, table: str, *partitions: list[tuple[bytes, bytes | None]]
) -> list[StagedFile]:
    files = []
    for number, rows in enumerate(partitions):
        with staging.writing(WRITE, file_name(number, 0, "0" * 16)) as file:
            keys, values = [key for key, _ in rows], [value for _, value in rows]
            for entry in entries_of(columns_of(values, keys, None, None)):
                file.add(table, entry)
            files.append(file.close())
    return files


def values(
    store: Store, topic: str, level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> list[bytes | None]:
    return [message.value for message in store.reader(topic, isolation_level=level)]


class TestOneTransaction:
    """All of a batch becomes visible at one instant, in order."""

    def test_partitions_one_after_the_other(self, store: Store, staging: Staging) -> None:
        """Each topic has the rows of the first partition, then those of the second, each in its order."""
        files = staged(staging, {T: [b"1", b"2", b"3"], U: [b"a"]}, {}, {T: [b"4"], U: [b"b", b"c"]})
        adopted = adopt(store, staging, StagedBatch(files))
        assert (values(store, "t"), values(store, "u")) == ([b"1", b"2", b"3", b"4"], [b"a", b"b", b"c"])
        assert {str(message.txn_id) for topic in "tu" for message in store.reader(topic)} == {adopted.txn}
        assert adopted.rows == 7

    def test_nothing_is_visible_before(self, store: Store, staging: Staging, path: str) -> None:
        """While rows are adopted a reader at READ_COMMITTED sees none of them, one at READ_UNCOMMITTED those sent."""
        files = staged(staging, {T: [b"1"], U: [b"2", b"3"]})
        seen = []

        def look(done: int, rows: int) -> None:
            with Store.open(path, read_only=True) as other:
                dirty = [values(other, topic, IsolationLevel.READ_UNCOMMITTED) for topic in "tu"]
                seen.append((done, rows, values(other, "t") + values(other, "u"), sum(map(len, dirty))))

        adopt(store, staging, StagedBatch(files), look)
        assert seen == [(1, 3, [], 1), (3, 3, [], 3)]

    def test_a_table(self, store: Store, staging: Staging) -> None:
        """Keys are put, or deleted by a null; of several rows with one key the last one stays; one version for all."""
        store.create_table("accounts")
        accounts = store.table("accounts")
        accounts.put(b"gone", b"1")
        rows = staged_rows(
            staging, "accounts", [(b"a", b"1"), (b"b", b"1"), (b"gone", None)], [(b"a", b"2"), (b"c", None)]
        )
        adopted = adopt(store, staging, StagedBatch(rows, table="accounts"))
        found = list(accounts.scan())
        assert [(row.key, row.value) for row in found] == [(b"a", b"2"), (b"b", b"1")]
        assert len({row.version for row in found}) == 1
        assert (adopted.rows, adopted.txn) == (5, f"0:{found[0].txn}")

    def test_a_missing_topic_is_created_by_its_first_entries(self, store: Store, staging: Staging) -> None:
        """In their store transaction; without leave to create it nothing is stored, and nothing is left."""
        new = "persistent://public/default/new"
        files = staged(staging, {new: [b"1", b"2"]})
        with pytest.raises(TopicNotFound):
            adopt(store, staging, StagedBatch(files))
        assert not store.has_topic("new")
        adopt(store, staging, StagedBatch(files, producer="loader", create_topics=True))
        assert values(store, "new") == [b"1", b"2"]

    def test_a_named_producer(self, store: Store, staging: Staging) -> None:
        """Rows bear the name that was given, and go on with the sequence ids of that name."""
        for rows in ([b"1", b"2"], [b"3"]):
            adopt(store, staging, StagedBatch(staged(staging, {T: rows}), producer="loader"))
        assert [(m.producer_name, m.sequence_id) for m in store.reader("t")] == [
            ("loader", n) for n in range(3)
        ]

    def test_store_transactions_are_bounded(self, store: Store, staging: Staging) -> None:
        """Many MB are adopted in store transactions of about 8 MB, while the driver holds a few of them at once."""
        size = 6 * WRITE_BYTES_TARGET
        files = staged(staging, *[{T: [b"x" * 100_000] * (size // 300_000)}] * 3)
        environment = store.connection.environment
        before = environment.last_commit()
        tracemalloc.start()
        try:
            adopt(store, staging, StagedBatch(files))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert 6 <= environment.last_commit() - before <= 10
        assert peak < 4 * WRITE_BYTES_TARGET
        assert len(values(store, "t")) == 3 * (size // 300_000)

    def test_nothing_to_adopt(self, store: Store, staging: Staging) -> None:
        """A write without rows begins no transaction."""
        assert adopt(store, staging, StagedBatch([])) == Adopted(0)
        assert row_json(store.reports.list_transactions(ended=True)) == []


class TestExactlyOnce:
    """A batch of a sink is stored once, whoever tries again."""

    def test_a_batch_that_is_there(self, store: Store, staging: Staging) -> None:
        """The same batch again, or an earlier one, changes nothing and says so; the next one is stored."""
        one, two = staged(staging, {T: [b"1"]}), [b"2"]
        assert not adopt(store, staging, StagedBatch(one, sink=QUERY, batch_id=4)).was_stored
        before = store.connection.environment.last_commit()
        for number in (4, 3):
            assert adopt(store, staging, StagedBatch(one, sink=QUERY, batch_id=number)) == Adopted(
                0, was_stored=True
            )
        assert store.connection.environment.last_commit() == before
        assert not adopt(
            store, staging, StagedBatch(staged(staging, {T: two}), sink=QUERY, batch_id=5)
        ).was_stored
        assert values(store, "t") == [b"1", b"2"]

    def test_sinks_are_apart(self, store: Store, staging: Staging) -> None:
        """The batches of one query say nothing about those of another."""
        files = staged(staging, {T: [b"1"]})
        for sink in (QUERY, "other", progress.key_of_write("w")):
            assert not adopt(store, staging, StagedBatch(files, sink=sink)).was_stored
        assert values(store, "t") == [b"1"] * 3

    def test_the_row_says_what_was_stored(self, store: Store, staging: Staging) -> None:
        """Batch, rows, topics, transaction and time stand in the table of sinks, in the same transaction."""
        files = staged(staging, {T: [b"1", b"2"], U: [b"3"]})
        adopted = adopt(store, staging, StagedBatch(files, sink=QUERY, batch_id=7))
        row = store.table(progress.SINKS).get_row(QUERY.encode())
        assert row is not None and f"0:{row.txn}" == adopted.txn
        found = json.loads(row.value)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", found.pop("at"))
        assert found == {"batchId": 7, "rows": 3, "topics": [T, U], "txnId": adopted.txn}

    def test_a_batch_without_rows_counts(self, store: Store, staging: Staging) -> None:
        """That there was nothing in it is recorded too."""
        adopt(store, staging, StagedBatch([], sink=QUERY, batch_id=2))
        assert progress.last_batch(store, QUERY) == 2

    def test_staged_files_are_not_read_again(self, store: Store, staging: Staging) -> None:
        """A batch that is there is there, whatever became of the files that say it again."""
        files = staged(staging, {T: [b"1"]})
        adopt(store, staging, StagedBatch(files, sink=QUERY))
        staging.remove(WRITE)
        assert adopt(store, staging, StagedBatch(files, sink=QUERY)).was_stored


class TestRefusals:
    """What cannot be stored leaves nothing but an aborted transaction."""

    def check_nothing(self, store: Store) -> None:
        assert values(store, "t") == values(store, "u") == []
        assert row_json(store.reports.list_transactions()) == []

    def test_a_topic_that_is_not_there(self, store: Store, staging: Staging) -> None:
        """Before anything is sent anywhere, the missing topic is named."""
        files = staged(staging, {T: [b"1"], f"{T}-missing": [b"2"]})
        with pytest.raises(TopicNotFound, match="t-missing"):
            adopt(store, staging, StagedBatch(files, sink=QUERY))
        self.check_nothing(store)
        assert values(store, "t", IsolationLevel.READ_UNCOMMITTED) == []
        assert progress.last_batch(store, QUERY) is None

    def test_a_table_that_is_not_there(self, store: Store, staging: Staging) -> None:
        """The missing table is named."""
        with pytest.raises(TableNotFound, match="accounts"):
            adopt(
                store,
                staging,
                StagedBatch(staged_rows(staging, "accounts", [(b"a", b"1")]), table="accounts"),
            )
        self.check_nothing(store)

    def test_a_damaged_file(self, store: Store, staging: Staging, tmp_path: Path) -> None:
        """What was adopted before the damage was found is aborted, and the batch can be adopted from good files."""
        files = staged(staging, {T: [b"1"]}, {T: [b"2"] * 9, U: [b"3"]})
        path = tmp_path / "staging" / WRITE / files[1].name
        good = path.read_bytes()
        path.write_bytes(good.replace(b"\x013", b"\x014"))
        with pytest.raises(InvalidValue, match="is damaged"):
            adopt(store, staging, StagedBatch(files, sink=QUERY))
        self.check_nothing(store)
        path.write_bytes(good)
        assert adopt(store, staging, StagedBatch(files, sink=QUERY)).rows == 11

    def test_a_topic_with_an_owner(self, store: Store, staging: Staging) -> None:
        """A topic that somebody owns takes nothing from a sink; the other topics of the batch neither."""
        files = staged(staging, {T: [b"1"], U: [b"2"]})
        with (
            store.create_producer("u", access_mode="exclusive"),
            pytest.raises(ProducerBusy, match="topic u"),
        ):
            adopt(store, staging, StagedBatch(files, sink=QUERY))
        self.check_nothing(store)

    def test_what_no_message_names(self, store: Store, staging: Staging, tmp_path: Path) -> None:
        """Of two attempts of one task only the one whose message came is stored, and the files of both go."""
        overtaken, counted = staged(staging, {T: [b"overtaken"]}, {T: [b"counted"]})
        assert (tmp_path / "staging" / WRITE / overtaken.name).exists()
        adopt(store, staging, StagedBatch([counted]))
        clean_up(staging, [counted.write])
        assert values(store, "t") == [b"counted"]
        assert list((tmp_path / "staging").iterdir()) == []

    def test_slower_than_versions_are_kept(self, tmp_path: Path, staging: Staging) -> None:
        """What counts as table work and takes longer than the window is refused at once: again it would take as long."""
        clock, place = ManualClock(), str(tmp_path / "slow")
        Store.create(place, clock=clock)
        files = staged(staging, {T: [b"1"], U: [b"2"]})
        told: list[int] = []

        def take_long(done: int, _rows: int) -> None:
            told.append(done)
            clock.advance(TABLE_RETENTION_MS / 1000 + 1)

        with Store.open(place, clock=clock) as slow:
            for topic in "tu":
                slow.create_topic(topic)
            with pytest.raises(RequestTooOld):
                adopt(slow, staging, StagedBatch(files, sink=QUERY), take_long)
            assert told == [1, 2]
            self.check_nothing(slow)
            assert adopt(slow, staging, StagedBatch(files), take_long).rows == 2
            assert slow.maintenance.verify_store(full=True) == []

    def test_cleaning_up(self, store: Store, staging: Staging, tmp_path: Path) -> None:
        """The files of a write go, also those that no message names."""
        staged(staging, {T: [b"1"]}, {T: [b"2"]})
        clean_up(staging, [WRITE, WRITE, write_name("f" * 16)])
        assert list((tmp_path / "staging").iterdir()) == []


class Drivers:
    """Adopts one batch in processes of their own."""

    def __init__(self, path: str, staging: Staging, batch: StagedBatch, directory: Path) -> None:
        self.path, self.staging, self.batch = path, staging, batch
        self._file = directory / "batch"
        self._file.write_bytes(pickle.dumps(batch))
        self._children: list[Child] = []

    def start(self, *how: object) -> Child:
        """Start a driver; see `tests.txnctl.spark.adopter`."""
        arguments = (self.path, self.staging.directory, self._file, *how)
        child = Child(["-m", "tests.txnctl.spark.adopter", *map(str, arguments)])
        self._children.append(child)
        return child

    def check_once(self) -> None:
        """That the batch is stored, exactly once and whole."""
        with Store.open(self.path) as store:
            assert progress.last_batch(store, QUERY) == self.batch.batch_id
            found = {topic: values(store, topic) for topic in (T, U)}
        assert found == {T: [b"%d" % n for n in range(5)], U: [b"a", b"b"]}

    def check_none_or_once(self) -> bool:
        """That all of it is visible, or nothing; whether it is."""
        with Store.open(self.path, read_only=True) as store:
            found = [*values(store, "t"), *values(store, "u")]
            has_row = store.has_table(progress.SINKS) and progress.last_batch(store, QUERY) is not None
        assert len(found) == (7 if has_row else 0)
        return has_row

    def close(self) -> None:
        for child in self._children:
            child.close()


@pytest.fixture
def drivers(path: str, staging: Staging, tmp_path: Path) -> Iterator[Drivers]:
    with Store.open(path) as store:
        for topic in "tu":
            store.create_topic(topic)
    numbers = [b"%d" % n for n in range(5)]
    files = staged(staging, {T: numbers[:2], U: [b"a"]}, {T: numbers[2:], U: [b"b"]})
    found = Drivers(path, staging, StagedBatch(files, sink=QUERY, batch_id=3), tmp_path)
    yield found
    found.close()


class TestKilledDrivers:
    """A driver that is killed anywhere is followed by one that completes, and repeats nothing."""

    @pytest.mark.parametrize(
        ("point", "reaches"),
        [
            ("environment.before_change", 6),
            ("environment.before_commit", 6),
            ("environment.after_commit", 6),
            ("ledger.before_append", 5),
            ("table.before_write", 1),
            ("txn.before_parts", 1),
            ("txn.between_parts", 1),
            ("txn.before_record", 1),
        ],
    )
    def test_at_every_point(self, drivers: Drivers, tmp_path: Path, point: str, reaches: int) -> None:
        """After a kill all of the batch is visible or nothing, and its successor leaves all of it, once."""
        kills = 0
        for nth in range(1, reaches + 1):
            child = drivers.start("kill", point, nth)
            code = child.wait(60)
            if code == 0:
                break
            assert code == -signal.SIGKILL, child.complaint()
            kills += 1
            if drivers.check_none_or_once():
                break
        assert kills >= 1, f"{point} is not reached"
        with Store.open(drivers.path) as store:
            adopt(store, drivers.staging, drivers.batch)
            assert row_json(store.reports.list_transactions()) == []
        drivers.check_once()


class TestZombies:
    """A driver that was taken for dead beside its successor: one of them stores the batch."""

    def test_stopped_in_the_middle(self, drivers: Drivers) -> None:
        """Its successor does not wait for it: it takes the batch over, and the stopped one finds it stored."""
        zombie = drivers.start("pause")
        zombie.expect("sent")
        zombie.stop()
        with Store.open(drivers.path) as store:
            assert not adopt(store, drivers.staging, drivers.batch).was_stored
        drivers.check_once()
        zombie.resume()
        zombie.say("go on")
        assert zombie.expect("already") == "0"
        zombie.succeed()
        drivers.check_once()

    def test_stopped_before_the_next_batch(self, drivers: Drivers) -> None:
        """It finds that a later batch is stored, and stores nothing behind it."""
        zombie = drivers.start("pause")
        zombie.expect("sent")
        zombie.stop()
        with Store.open(drivers.path) as store:
            adopt(store, drivers.staging, drivers.batch)
            adopt(store, drivers.staging, StagedBatch([], sink=QUERY, batch_id=4))
        zombie.resume()
        zombie.say("go on")
        assert zombie.expect("already") == "0"
        with Store.open(drivers.path) as store:
            assert progress.last_batch(store, QUERY) == 4
            assert len(values(store, "t")) == 5

    def test_several_at_once(self, drivers: Drivers) -> None:
        """Of four that adopt the same batch at the same time one does, and the others find it done."""
        children = [drivers.start("pause") for _ in range(4)]
        for child in children:
            child.say("go on")
        said = []
        for child in children:
            lines = [line for line in iter(lambda child=child: child.line(60), None) if line is not None]
            said.append(lines[-1])
            child.succeed()
        assert sorted(said) == ["adopted 7", *["already 0"] * 3]
        drivers.check_once()


def test_a_lost_adoption_waits_before_the_next_attempt(
    store: Store, staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the winner is not known: a reader without a record, which a repetition at once would meet again."""
    store.create_table("accounts")
    accounts, waits, reads = store.table("accounts"), [], []

    def read_later(*_: object) -> None:
        if len(reads) < 2:
            with store.transaction() as reader:
                reads.append(accounts.get(b"k", txn=reader))

    monkeypatch.setattr("storage.process.chance.share", lambda: 1.0)
    monkeypatch.setattr(Clock, "sleep", lambda _, seconds: waits.append(seconds))
    batch = StagedBatch(staged_rows(staging, "accounts", [(b"k", b"1")]), table="accounts")
    assert adopt(store, staging, batch, read_later).rows == 1
    assert (len(waits), accounts.get(b"k")) == (2, b"1")
    assert 0.04 <= waits[0] < waits[1]
