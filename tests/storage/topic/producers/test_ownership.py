"""What operators see of producers: rows, stats, the history of owners; deleting topics and restoring stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import ObjectHeld, ProducerBusy, ProducerFenced, TopicNotFound, TxnctlError
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, TurnClock, epochs, records, topic_epoch


def some(rows: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(row[field] for field in fields) for row in rows]


class TestRows:
    """Who is connected, and who waits."""

    def test_connected_ones_and_waiting_ones_in_the_order_of_their_turn(
        self, store: Store, rivals: Rivals
    ) -> None:
        """With mode, epoch, place and what is proven of their process."""
        store.create_topic("u")
        rivals.produce(EXCLUSIVE).close()
        rivals.produce(FENCING, producer_name="owner")
        for name in ("first", "second"):
            rivals.wait(producer_name=name)
        rivals.produce(SHARED, "u", producer_name="elsewhere")
        fields = ("producerName", "accessMode", "epoch", "isOwner", "isWaiting", "place", "state")
        assert some(row_json(store.reports.list_producers("t")), *fields) == [
            ("owner", FENCING, 1, True, False, None, "alive"),
            ("first", WAITING, None, False, True, 1, "alive"),
            ("second", WAITING, None, False, True, 2, "alive"),
        ]
        assert some(row_json(store.reports.list_producers("u")), *fields) == [
            ("elsewhere", SHARED, None, False, False, None, "alive")
        ]
        assert row_json(store.reports.list_producers()) == row_json(
            store.reports.list_producers("t")
        ) + row_json(store.reports.list_producers("u"))

    def test_the_dead_hold_no_place(self, store: Store, rivals: Rivals) -> None:
        """They are shown until somebody writes, as what they are; who stands behind them is next."""
        process = rivals.open()
        process.create_producer("t", access_mode=EXCLUSIVE, producer_name="dead-owner")
        rivals.wait(store=process, producer_name="dead-waiter")
        rivals.wait(producer_name="next")
        process.close()
        fields = ("producerName", "isOwner", "isWaiting", "place", "state")
        assert some(row_json(store.reports.list_producers("t")), *fields) == [
            ("dead-owner", False, False, None, "dead"),
            ("dead-waiter", False, True, None, "dead"),
            ("next", False, True, 1, "alive"),
        ]
        shown = row_json(store.reports.show_producers("t"))
        assert (shown["owner"], shown["waitingPublishers"]) == (None, 1)

    def test_a_lease_says_how_long_it_lives(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """What is left of it; 0 and expired after its end."""
        rivals.open().open_session("t", lease=10, producer_name="script")
        clock.advance(4)
        fields = ("state", "alive", "isOwner", "leaseMs", "leaseEndsInMs")
        assert some(row_json(store.reports.list_producers("t")), *fields) == [
            ("leased", True, True, 10_000, 6_000)
        ]
        clock.advance(7)
        assert some(row_json(store.reports.list_producers("t")), *fields) == [
            ("expired", False, False, 10_000, 0)
        ]

    def test_the_last_publish_is_of_each_producer(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """None before the first; in a transaction it counts when it is sent; another's does not."""
        producers = {name: rivals.produce(SHARED, producer_name=name) for name in ("a", "b", "c")}
        start, txn = clock.wall_ms(), store.begin_transaction(timeout=3600)

        def seen() -> dict[str, int | None]:
            rows = row_json(store.reports.list_producers("t"))
            return {
                row["producerName"]: row["lastPublishMs"] and row["lastPublishMs"] - start for row in rows
            }

        assert seen() == {"a": None, "b": None, "c": None}
        clock.advance(1)
        producers["a"].send(b"x")
        clock.advance(1)
        assert seen() == {"a": 1000, "b": None, "c": None}
        producers["b"].send(b"x", txn=txn)
        assert seen() == {"a": 1000, "b": 2000, "c": None}
        clock.advance(1)
        producers["a"].send_batch([b"x"] * 3)
        clock.advance(1)
        with store.create_producer("t", connected=False) as visitor:
            visitor.send(b"x")
        assert seen() == {"a": 3000, "b": 2000, "c": None}
        store.admin.transactions.abort_transaction(txn)
        assert seen() == {"a": 3000, "b": 2000, "c": None}
        assert row_json(store.reports.topic_stats("t"))["lastPublishMs"] == start + 4000

    def test_stats_name_the_publishers(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """Under upstream's names: accessMode, producerName; topicEpoch and waitingPublishers of the topic."""
        stats = row_json(store.reports.topic_stats("t"))
        assert (stats["topicEpoch"], stats["waitingPublishers"], stats["publishers"]) == (None, 0, [])
        since = clock.wall_ms()
        rivals.produce(EXCLUSIVE, producer_name="owner")
        rivals.wait()
        clock.advance(5)
        stats = row_json(store.reports.topic_stats("t"))
        assert (stats["topicEpoch"], stats["waitingPublishers"]) == (0, 1)
        fields = (
            "accessMode",
            "producerName",
            "epoch",
            "alive",
            "state",
            "connectedSinceMs",
            "lastPublishMs",
        )
        assert some(stats["publishers"], *fields) == [(EXCLUSIVE, "owner", 0, True, "alive", since, None)]

    def test_a_missing_topic_is_an_error(self, store: Store) -> None:
        """In every report, and in fencing it."""
        for call in (
            store.reports.list_producers, store.reports.ownership_history, store.reports.show_producers, store.admin.producers.fence_producers,
        ):  # fmt: skip
            with pytest.raises(TopicNotFound):
                call("missing")

    def test_reports_change_nothing(self, store: Store, rivals: Rivals, path: str, clock: TurnClock) -> None:
        """Also where they show the dead."""
        rivals.produce(SHARED)
        process = rivals.open()
        process.create_producer("t")
        process.close()
        before = records(store)
        with Store.open(path, read_only=True, clock=clock) as reader:
            reader.reports.list_producers()
            reader.reports.show_producers("t")
            reader.reports.ownership_history("t")
            reader.reports.topic_stats("t")
        assert records(store) == before


class TestHistory:
    """Who owned the topic, the newest first."""

    FIELDS = ("topicEpoch", "producerName", "accessMode", "waited", "endedBy", "takenOverBy")

    def test_every_grant_is_one_owner(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """How it came, and how it ended; Shared producers own nothing."""
        rivals.produce(SHARED, producer_name="nobody").close()
        closed = rivals.produce(EXCLUSIVE, producer_name="closed")
        waiter = rivals.wait(producer_name="waited")
        closed.close()
        rivals.look()
        rivals.produce(FENCING, producer_name="fenced")
        store.admin.producers.fence_producers("t")
        with rivals.open() as process:
            process.create_producer("t", access_mode=EXCLUSIVE, producer_name="dead")
        rivals.open().open_session("t", lease=5, producer_name="expired")
        clock.advance(6)
        rivals.produce(WAITING, producer_name="owner")
        assert waiter.error is None
        assert some(row_json(store.reports.ownership_history("t")), *self.FIELDS) == [
            (6, "owner", WAITING, False, None, None),
            (5, "expired", EXCLUSIVE, False, "expired", None),
            (4, "dead", EXCLUSIVE, False, "dead", None),
            (3, None, "fence", False, "closed", None),
            (2, "fenced", FENCING, False, "fenced", 3),
            (1, "waited", WAITING, True, "fenced", 2),
            (0, "closed", EXCLUSIVE, False, "closed", None),
        ]
        assert (
            row_json(store.reports.ownership_history("t", limit=2))
            == row_json(store.reports.ownership_history("t"))[:2]
        )
        assert row_json(store.reports.show_producers("t"))["history"] == row_json(
            store.reports.ownership_history("t")
        )

    def test_it_says_what_each_one_wrote(self, store: Store, rivals: Rivals) -> None:
        """The stretch of the topic between two grants is of one owner."""
        first = rivals.produce(EXCLUSIVE)
        first.send(b"1")
        first.send(b"2")
        second = rivals.produce(FENCING)
        second.send(b"3")
        second.close()
        rivals.produce(EXCLUSIVE)
        stretches = [
            (row["after"], row["through"]) for row in reversed(row_json(store.reports.ownership_history("t")))
        ]
        assert stretches == [("1:-1", "1:1"), ("1:1", "1:2"), ("1:2", None)]

    def test_it_counts_the_transactions_that_a_takeover_aborted(self, store: Store, rivals: Rivals) -> None:
        """Their abort markers come before its first message."""
        owner = rivals.produce(EXCLUSIVE)
        for _ in range(3):
            owner.send(b"x", txn=store.begin_transaction(timeout=3600))
        rivals.produce(FENCING)
        assert some(row_json(store.reports.ownership_history("t")), "transactionsAborted", "after") == [
            (3, "1:5"),
            (0, "1:-1"),
        ]

    def test_an_owner_that_comes_back_is_no_other(self, store: Store, rivals: Rivals) -> None:
        """Its end is taken back: it owns the topic again under its epoch."""
        process = rivals.open()
        token = process.create_producer("t", access_mode=EXCLUSIVE).session
        process.close()
        rivals.produce(SHARED).close()
        assert some(row_json(store.reports.ownership_history("t")), "topicEpoch", "endedBy") == [(0, "dead")]
        rivals.produce(EXCLUSIVE, resume=token)
        assert some(row_json(store.reports.ownership_history("t")), "topicEpoch", "endedBy") == [(0, None)]

    def test_it_is_bounded(self, store: Store, rivals: Rivals, monkeypatch: pytest.MonkeyPatch) -> None:
        """The last thousand are kept; here three."""
        monkeypatch.setattr("storage.topic.producers.ownership.OWNERS_KEPT", 3)
        process = rivals.open()
        for _ in range(6):
            process.create_producer("t", access_mode=EXCLUSIVE).close()
        assert [row["topicEpoch"] for row in row_json(store.reports.ownership_history("t"))] == [5, 4, 3]


class TestDelete:
    """Deleting a topic."""

    @pytest.mark.parametrize("mode", [SHARED, EXCLUSIVE])
    def test_it_is_refused_while_producers_are_connected(
        self, store: Store, rivals: Rivals, mode: str
    ) -> None:
        """Naming them; nothing has changed."""
        producer = rivals.produce(mode, producer_name="busy")
        before = records(store)
        with pytest.raises(ObjectHeld, match="busy"):
            store.admin.topics.delete_topic("t")
        assert records(store) == before
        producer.send(b"x")
        producer.close()
        store.admin.topics.delete_topic("t")
        assert not store.has_topic("t")

    def test_it_is_refused_while_somebody_waits(self, store: Store, rivals: Rivals) -> None:
        """The topic is promised to it."""
        owner = rivals.produce(EXCLUSIVE)
        rivals.wait(producer_name="patient")
        owner.close()
        with pytest.raises(ObjectHeld, match="patient"):
            store.admin.topics.delete_topic("t")

    def test_the_dead_hold_nothing(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """Neither a dead process nor a lease that has ended."""
        with rivals.open() as process:
            process.create_producer("t")
        rivals.open().open_session("t", lease=5)
        clock.advance(6)
        store.admin.topics.delete_topic("t")

    def test_by_force_it_evicts_them(self, store: Store, rivals: Rivals) -> None:
        """All of them, transactions too, and the report says whom."""
        owner, waiter = rivals.produce(EXCLUSIVE, producer_name="owner"), rivals.wait(producer_name="patient")
        txn = store.begin_transaction(timeout=3600)
        owner.send(b"x", txn=txn)
        report = row_json(store.admin.topics.delete_topic("t", force=True))
        assert report["producersEvicted"] == ["owner", "patient"]
        assert report["transactionsAborted"] == [str(txn)]
        with pytest.raises((TopicNotFound, ProducerFenced)):
            owner.send(b"never stored")
        owner.close()
        rivals.pass_time(1)
        assert isinstance(waiter.error, TopicNotFound | ProducerFenced)
        assert row_json(store.reports.list_producers()) == []

    def test_nothing_of_its_producers_is_left(self, store: Store, rivals: Rivals) -> None:
        """Created again it has nobody, no history, and an epoch that goes on counting (invariant 9)."""
        for _ in range(3):
            rivals.produce(FENCING)
        store.admin.topics.delete_topic("t", force=True)
        left = records(store)
        assert (left["producers"], left["owners"]) == ({}, {})
        store.create_topic("t")
        assert (
            topic_epoch(store),
            row_json(store.reports.list_producers("t")),
            row_json(store.reports.ownership_history("t")),
        ) == (2, [], [])
        for expected in (3, 4):
            with rivals.produce(EXCLUSIVE) as owner:
                assert owner.topic_epoch == expected
                owner.send(b"x")
        assert epochs(store) == [3, 4]

    def test_a_shared_producer_of_the_new_topic_carries_its_epoch(self, store: Store, rivals: Rivals) -> None:
        """So no message of it is of a lower epoch than one of the topic's former life."""
        rivals.produce(EXCLUSIVE).close()
        store.admin.topics.delete_topic("t")
        store.create_topic("t")
        shared = rivals.produce(SHARED)
        assert shared.topic_epoch == 0
        shared.send(b"x")
        assert epochs(store) == [0]


class TestRestore:
    """A backup restored is a new incarnation: sessions have ended, every topic epoch is raised."""

    def restored(self, store: Store, tmp_path: Path, clock: TurnClock) -> Store:
        store.maintenance.backup_store(tmp_path / "backup")
        # The clock of a restore is the machine's: the sessions of the backup are ended whatever it says.
        Store.restore(tmp_path / "backup", tmp_path / "restored")
        return Store.open(tmp_path / "restored", clock=clock)

    def test_sessions_have_ended(
        self, store: Store, rivals: Rivals, tmp_path: Path, clock: TurnClock
    ) -> None:
        """Attached, leased and waiting ones; their tokens open nothing there, and all is well here."""
        store.create_topic("u")
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        waiter = rivals.wait()
        token = row_json(rivals.open().open_session("u", lease=3600))["session"]
        owner.send(b"x")
        with self.restored(store, tmp_path, clock) as other:
            assert row_json(other.reports.list_producers()) == []
            for text, topic in ((token, "u"), (owner.session, "t")):
                with pytest.raises(TxnctlError):
                    other.session_producer(topic, text).send(b"x")
                with pytest.raises(ProducerFenced):
                    other.create_producer(topic, access_mode=EXCLUSIVE, resume=text)
            assert other.create_producer("t", access_mode=EXCLUSIVE).topic_epoch == 2
            assert other.maintenance.verify_store(full=True) == []
        owner.send(b"y")
        assert waiter.waits
        assert len(row_json(store.reports.list_producers())) == 3

    def test_epochs_are_raised(self, store: Store, rivals: Rivals, tmp_path: Path, clock: TurnClock) -> None:
        """Whoever had a topic there brings an epoch that is over; the history says why."""
        store.create_topic("u")
        owner = rivals.produce(EXCLUSIVE)
        with self.restored(store, tmp_path, clock) as other:
            assert topic_epoch(other) == 1
            with pytest.raises(ProducerFenced):
                other.create_producer("t", access_mode=EXCLUSIVE, topic_epoch=owner.topic_epoch)
            newest, former = row_json(other.reports.ownership_history("t"))
            assert (newest["accessMode"], newest["topicEpoch"]) == ("restore", 1)
            assert former["endedBy"] == "restored"
            with other.create_producer("t") as shared:
                shared.send(b"x")
            assert epochs(other) == [1]

    def test_open_transactions_are_aborted_there(
        self, store: Store, rivals: Rivals, tmp_path: Path, clock: TurnClock
    ) -> None:
        """And stay open here."""
        txn = store.begin_transaction(timeout=3600)
        rivals.produce(EXCLUSIVE).send(b"x", txn=txn)
        with self.restored(store, tmp_path, clock) as other:
            assert row_json(other.reports.show_transaction(txn))["state"] == "ABORTED"
        assert store.commit_transaction(txn) is True

    def test_a_backup_alone_changes_nobody(self, store: Store, rivals: Rivals, tmp_path: Path) -> None:
        """The owner goes on while and after it is made."""
        owner = rivals.produce(EXCLUSIVE)
        store.maintenance.backup_store(tmp_path / "backup")
        owner.send(b"x")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)
