"""Compacting: the file shrinks, nothing else changes, and handles of the process go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import AlreadyExists, InvalidValue
from tests.format.small_store import unpacked


def test_the_file_shrinks_and_the_messages_stay(store: Store, path: str) -> None:
    """A topic that was deleted leaves pages that nobody uses."""
    store.create_producer("t").send(b"kept")
    store.create_topic("big")
    with store.create_producer("big") as producer:
        producer.send_batch([os.urandom(10_000) for _ in range(200)])
    store.admin.topics.delete_topic("big")
    before = os.stat(Path(path, "data.mdb")).st_size
    result = store.maintenance.compact_store()
    after = os.stat(Path(path, "data.mdb")).st_size
    assert after < before
    assert (result.bytes_before, result.bytes_after) == (before, after)
    with store.reader("t", start=EARLIEST) as reader:
        assert [message.value for message in reader] == [b"kept"]


def test_handles_go_on_and_the_trail_names_it(store: Store, path: str) -> None:
    """Those that only read among them."""
    with Store.open(path, read_only=True) as other:
        store.maintenance.compact_store(reason="the disk is nearly full")
        store.create_topic("later")
        assert sorted(other.topics()) == ["later", "t"]
    record = store.reports.list_audit_records(1)[0]
    assert (record.action, record.reason) == ("store compact", "the disk is nearly full")


class TestElsewhere:
    """The compacted store in a new directory."""

    def test_it_is_the_same_store(self, store: Store, path: str, tmp_path: Path) -> None:
        """Id, incarnation, cursors, an open detached transaction and a leased session go on there."""
        producer = store.create_producer("t")
        producer.send(b"read")
        producer.send(b"unread")
        with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
            consumer.acknowledge(consumer.receive(timeout=0))
        txn = store.begin_transaction(timeout=3600)
        producer.send(b"late", txn=txn)
        session = store.open_session("t", access_mode="Shared", producer_name="leased", lease=3600)
        before = Path(path, "data.mdb").read_bytes()
        result = store.maintenance.compact_store(tmp_path / "new", reason="full disk")
        assert (result.path, result.original) == (str(tmp_path / "new"), path)
        assert Path(path, "data.mdb").read_bytes() == before
        with Store.open(tmp_path / "new", clock=store.connection.clock) as new:
            assert new.identity == store.identity
            assert new.reports.list_audit_records(1)[0].reason == "full disk"
            assert new.reports.list_audit_records(1)[0].effects["original"] == path
            new.session_producer("t", session.session).send(b"by the session")
            new.commit_transaction(txn)
            with new.subscribe("t", "s") as consumer:
                values = consumer.receive_batch(9, timeout=0).values
            assert values == [b"unread", b"late", b"by the session"]
            assert new.maintenance.verify_store(full=True) == []
        assert Path(path, "data.mdb").read_bytes() == before

    def test_the_file_is_as_small_as_in_place(self, store: Store, path: str, tmp_path: Path) -> None:
        """And a dry run tells its size, and leaves nothing."""
        store.create_topic("big")
        with store.create_producer("big") as producer:
            producer.send_batch([os.urandom(10_000) for _ in range(200)])
        store.admin.topics.delete_topic("big")
        dry = store.maintenance.compact_store(tmp_path / "new", dry_run=True)
        assert os.listdir(tmp_path) == ["store"]
        result = store.maintenance.compact_store(tmp_path / "new")
        assert dry == result._replace(dry_run=True)
        assert (
            result.bytes_after == os.stat(tmp_path / "new/data.mdb").st_size < result.bytes_before - 1_000_000
        )
        in_place = store.maintenance.compact_store()
        assert in_place.bytes_after == result.bytes_after

    def test_it_is_private_and_has_a_reserve(self, store: Store, tmp_path: Path) -> None:
        """As after a creation."""
        store.maintenance.compact_store(tmp_path / "new")
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in (tmp_path / "new").iterdir()} == {0o600}
        assert (tmp_path / "new/reserve").stat().st_size == 1 << 20

    def test_a_place_that_is_taken_or_inside_a_store_is_refused(
        self, store: Store, path: str, tmp_path: Path
    ) -> None:
        """And left alone."""
        Store.create(tmp_path / "there")
        for place in (tmp_path / "there", Path(path)):
            with pytest.raises(AlreadyExists):
                store.maintenance.compact_store(place)
        for place in (Path(path, "deep/new"), tmp_path / "there/new"):
            with pytest.raises(InvalidValue, match="lies inside the store"):
                store.maintenance.compact_store(place)
        with pytest.raises(InvalidValue, match="lies inside the store"):
            store.maintenance.compact_store(Path(path, "new"))
        assert sorted(os.listdir(path)) == ["data.mdb", "lock.mdb", "reserve", "store.lock", "store.metrics"]

    def test_an_empty_directory_is_taken(self, store: Store, tmp_path: Path) -> None:
        """As a mount point is."""
        (tmp_path / "mount").mkdir()
        store.maintenance.compact_store(tmp_path / "mount")
        with Store.open(tmp_path / "mount") as new:
            assert new.maintenance.verify_store() == []
            new.create_topic("more")

    def test_a_store_of_format_1_is_upgraded_on_the_way(self, tmp_path: Path) -> None:
        """The original stays as it was."""
        old = unpacked(1, tmp_path / "old")
        before = (old / "data.mdb").read_bytes()
        with Store.open(old) as store:
            assert store.maintenance.compact_store(tmp_path / "new").format_before == 1
        assert (old / "data.mdb").read_bytes() == before
        with Store.open(tmp_path / "new") as new:
            assert new.reports.store_info().format == 2
            assert new.maintenance.verify_store(full=True) == []
            new.create_topic("more")
