"""The file of counters: exact, of one store and boot, and never in the way of a commit."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

import pytest

from storage import EARLIEST, AccessMode, Store
from storage.disk.lmdb import counters_file
from storage.disk.lmdb.counters_file import FILE_NAME, NO_COUNTS, Counters, CountersFile
from storage.disk.superblock import Superblock
from storage.errors import AlreadyExists, WriteTooOld
from storage.process.clock import ManualClock
from storage.values import counters
from storage.values.txn_state import AbortReason

CLOCK = ManualClock()


def superblock_of(store_id: bytes = b"0123456789abcdef", incarnation: int = 1) -> Superblock:
    superblock = Superblock(store_id, CLOCK)
    superblock.incarnation = incarnation
    return superblock


def events_of(**numbers: int) -> list[int]:
    """Events by the names of their counters."""
    events = [0] * counters.COUNTERS
    for name, number in numbers.items():
        events[getattr(counters, name)] = number
    return events


def add(directory: Path, superblock: Superblock, events: list[int], duration_ns: int = 0) -> None:
    """As a process that makes one commit."""
    file = CountersFile(str(directory), CLOCK)
    file.count_batch(events, superblock, CLOCK.boot_ns() - duration_ns)
    file.close()


def read(directory: Path, superblock: Superblock, clock: ManualClock = CLOCK) -> Counters:
    return counters_file.read(str(directory), superblock, clock)


def counts_of(store: Store) -> Counters:
    with store.connection.view() as view:
        return counters_file.read(store.connection.path, view.superblock, view.clock)


class TestFile:
    """The bytes."""

    def test_events_add_up_over_processes(self, tmp_path: Path) -> None:
        """Durations go to the first bucket whose bound they do not exceed."""
        superblock = superblock_of()
        assert read(tmp_path, superblock) == NO_COUNTS
        add(tmp_path, superblock, events_of(MESSAGES_WRITTEN=3, COMMITS=1), 500_000)
        add(tmp_path, superblock, events_of(MESSAGES_WRITTEN=2), 500_001)
        add(tmp_path, superblock, events_of(), 11_000_000_000)
        total = read(tmp_path, superblock)
        assert total.since_ms == CLOCK.wall_ms()
        assert total.events == tuple(events_of(MESSAGES_WRITTEN=5, COMMITS=1))
        assert total.duration_ns == 11_001_000_001
        assert total.buckets == (1, 1, *[0] * 12, 1)
        assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600

    def test_bytes_are_those_of_the_format(self, tmp_path: Path) -> None:
        """As docs/FORMAT.md says: words of 64 bits from byte 128 on."""
        add(tmp_path, superblock_of(), events_of(MESSAGES_WRITTEN=7, TAKEOVERS=2), 2_000_000)
        data = (tmp_path / FILE_NAME).read_bytes()
        words = struct.unpack_from("=496Q", data, 128)
        assert (len(data), data[:8], data[8:24]) == (4096, b"txnmetr1", b"0123456789abcdef")
        assert (words[0], words[5], words[14], words[17]) == (7, 2, 2_000_000, 1)
        assert sum(words) == 7 + 2 + 2_000_000 + 1
        assert list(counters.ABORTS) == [reason.value for reason in AbortReason]
        assert list(counters.ABORTS.values()) == list(range(6, 14))

    @pytest.mark.parametrize(
        "change", ["store", "incarnation", "boot", "copy", "torn", "short", "long", "magic"]
    )
    def test_file_of_something_else_is_made_anew(self, tmp_path: Path, change: str) -> None:
        """Until then it counts nothing."""
        superblock, clock, file = superblock_of(), CLOCK, tmp_path / FILE_NAME
        add(tmp_path, superblock, events_of(COMMITS=5))
        if change == "store":
            superblock = superblock_of(b"another store id")
        elif change == "incarnation":
            superblock = superblock_of(incarnation=2)
        elif change == "boot":
            clock = ManualClock(boot=b"manual-boot-0002")
        elif change == "copy":
            shutil.copy(file, tmp_path / "copy")
            os.rename(tmp_path / "copy", file)
        else:
            data = file.read_bytes()
            damaged = {"torn": data[:40] + b"\xff" + data[41:], "short": data[:100], "long": data + b"\0"}
            file.write_bytes(damaged.get(change, b"txnmetr9" + data[8:]))
        assert read(tmp_path, superblock, clock) == NO_COUNTS
        anew = CountersFile(str(tmp_path), clock)
        anew.count_batch(events_of(COMMITS=1), superblock, clock.boot_ns())
        anew.close()
        assert read(tmp_path, superblock, clock).events == tuple(events_of(COMMITS=1))

    def test_removed_or_shortened_file_is_made_anew_within_a_second(self, tmp_path: Path) -> None:
        """A process that has it mapped looks at the path once a second."""
        superblock, clock = superblock_of(), ManualClock()
        file = CountersFile(str(tmp_path), clock)
        for lose in (os.unlink, lambda path: os.truncate(path, 10)):
            file.count_batch(events_of(COMMITS=1), superblock, clock.boot_ns())
            lose(tmp_path / FILE_NAME)
            clock.advance(1)
            file.count_batch(events_of(COMMITS=1), superblock, clock.boot_ns())
            assert read(tmp_path, superblock, clock).events == tuple(events_of(COMMITS=1))
        file.close()

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
    def test_refused_file_counts_nothing_and_raises_nothing(
        self, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And leaves no half of a file behind; a later commit tries again."""

        def refuse(*_: Any) -> NoReturn:
            raise OSError(number, os.strerror(number))

        superblock, clock = superblock_of(), ManualClock()
        file = CountersFile(str(tmp_path), clock)
        with monkeypatch.context() as full:
            full.setattr(os, "posix_fallocate", refuse)
            file.count_batch(events_of(COMMITS=1), superblock, clock.boot_ns())
        assert list(tmp_path.iterdir()) == []
        clock.advance(1)
        file.count_batch(events_of(COMMITS=1), superblock, clock.boot_ns())
        assert read(tmp_path, superblock, clock).events == tuple(events_of(COMMITS=1))
        file.close()

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/null", path)])
    def test_strange_object_at_the_path_is_no_file(
        self, tmp_path: Path, make: Callable[[Path], None]
    ) -> None:
        """A directory stays; a pipe or a link is replaced."""
        make(tmp_path / FILE_NAME)
        is_directory = (tmp_path / FILE_NAME).is_dir()
        superblock = superblock_of()
        assert read(tmp_path, superblock) == NO_COUNTS
        add(tmp_path, superblock, events_of(COMMITS=1))
        assert read(tmp_path, superblock).events[counters.COMMITS] == (0 if is_directory else 1)

    @pytest.mark.parametrize("left", [0, 30, 64, 100])
    def test_file_cut_short_between_two_looks_is_no_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
    ) -> None:
        """A durable batch must not end in an error of its counters, nor a report."""
        superblock = superblock_of()
        add(tmp_path, superblock, events_of(COMMITS=1))
        monkeypatch.setattr(counters_file.os, "pread", lambda descriptor, size, at: bytes(min(left, size)))
        assert read(tmp_path, superblock) == NO_COUNTS
        add(tmp_path, superblock, events_of(COMMITS=1))

    def test_counter_without_room_is_given_up(self, tmp_path: Path) -> None:
        """A damaged word must not fail a commit."""
        superblock = superblock_of()
        add(tmp_path, superblock, events_of())
        with (tmp_path / FILE_NAME).open("r+b") as file:
            file.seek(128 + 8 * counters.COMMITS)
            file.write(b"\xff" * 8)
        add(tmp_path, superblock, events_of(COMMITS=1))


def _send(path: str, count: int) -> None:
    with Store.open(path) as store, store.create_producer("t") as producer:
        for _ in range(count):
            producer.send(b"x")


class TestStore:
    """The events of a store."""

    def test_every_end_of_a_transaction_is_counted_once(self, store: Store, clock: ManualClock) -> None:
        """Commits, and aborts by reason; a repeated end is none."""
        before = counts_of(store)
        producer = store.create_producer("t")
        txn = store.begin_transaction()
        producer.send_batch([b"a", b"b"], txn=txn)
        store.commit_transaction(txn)
        store.commit_transaction(txn)
        asked = store.transaction()
        producer.send(b"c", txn=asked)
        asked.flush()
        asked.abort()
        store.begin_transaction(timeout=1)
        clock.advance(2)
        producer.send(b"d")
        after = counts_of(store)
        gained = [new - old for new, old in zip(after.events, before.events, strict=True)]
        assert gained[counters.MESSAGES_WRITTEN] == 4
        assert gained[counters.COMMITS] == 1
        assert gained[counters.ABORTS["asked"]] == 1
        assert gained[counters.ABORTS["timed-out"]] == 1
        assert sum(after.buckets) > sum(before.buckets)

    def test_conflicts_takeovers_and_redeliveries_are_counted(self, store: Store) -> None:
        """Each beside the abort that it causes."""
        store.create_table("accounts")
        table = store.table("accounts")
        old = store.transaction()
        table.get(b"k", txn=old)
        table.put(b"k", b"1")
        with pytest.raises(WriteTooOld), old:
            table.put(b"k", b"2", txn=old)
        store.create_producer("t", access_mode=AccessMode.EXCLUSIVE)
        store.create_producer("t", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING).send(b"x")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        for _ in range(3):
            consumer.negative_acknowledge(consumer.receive(), delay=0)
        events = counts_of(store).events
        assert (events[counters.CONFLICTS_LOST], events[counters.ABORTS["refused-write"]]) == (1, 1)
        assert events[counters.TAKEOVERS] == 1
        assert (events[counters.DELIVERIES], events[counters.REDELIVERIES]) == (3, 2)

    def test_dry_run_and_refused_write_count_nothing(self, store: Store) -> None:
        """Only commits are counted."""
        before = counts_of(store)
        with pytest.raises(AlreadyExists):
            store.create_topic("t")
        assert counts_of(store) == before

    @pytest.mark.kills
    def test_no_count_is_lost_between_processes(self, tmp_path: Path) -> None:
        """They count inside the writer gate."""
        path = str(tmp_path / "store")
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("t")
            before = counts_of(store)
        context = get_context("spawn")
        children = [context.Process(target=_send, args=(path, 100)) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        with Store.open(path) as store:
            after = counts_of(store)
            with store.connection.view() as view:
                commits = view.superblock.commits
        assert after.events[counters.MESSAGES_WRITTEN] - before.events[counters.MESSAGES_WRITTEN] == 200
        assert sum(after.buckets) <= commits

    def test_backup_and_restored_store_begin_at_zero(self, store: Store, tmp_path: Path) -> None:
        """A backup has no counters; compaction in place keeps those of the store."""
        store.create_producer("t").send_batch([b"x"] * 50)
        backup, restored = str(tmp_path / "backup"), str(tmp_path / "restored")
        store.maintenance.backup_store(backup)
        assert not Path(backup, FILE_NAME).exists()
        before = counts_of(store)
        store.maintenance.compact_store()
        assert counts_of(store).since_ms == before.since_ms
        assert counts_of(store).events[counters.MESSAGES_WRITTEN] == before.events[counters.MESSAGES_WRITTEN]
        Store.restore(backup, restored)
        with Store.open(restored) as opened:
            assert counts_of(opened).events[counters.MESSAGES_WRITTEN] == 0
