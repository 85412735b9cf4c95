"""`store verify` finds what is wrong with producers (invariants 9, 10, 11): each test breaks one thing behind its back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store
from storage.disk.codec import key2
from storage.disk.schema import OWNERS
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics, state
from storage.topic.producers import ownership, session as sessions
from storage.topic.producers.ownership import Ownership
from storage.topic.producers.session import ProducerSession
from storage.topic.state import TopicState
from storage.txn import uncommitted_entries
from tests.storage.damage import Break, damage
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED
from tests.storage.topic.producers.rivals import TurnClock

TOPIC, OTHER = 1, 2


@pytest.fixture
def sound(tmp_path: Path, clock: TurnClock) -> Iterator[Store]:
    """A sound store of its own, which no fixture verifies: `t` has an owner of epoch 2, `u` two Shared producers."""
    path = str(tmp_path / "sound")
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as store:
        store.create_topic("t")
        store.create_topic("u")
        store.create_producer("t").send(b"0")
        for epoch in range(3):
            owner = store.create_producer("t", access_mode=FENCING, producer_name=f"owner-{epoch}")
            owner.send(b"of the owner")
        owner.send(b"open", txn=store.begin_transaction(timeout=3600))
        for name in ("a", "b"):
            store.create_producer("u", access_mode=SHARED, producer_name=name).send(b"shared")
        assert store.maintenance.verify_store(full=True) == []
        yield store


def with_head(change: Callable[[TopicState], object], topic_id: int = TOPIC) -> Break:
    def run(batch: WriteBatch) -> None:
        head = state.load(batch, topic_id)
        change(head)

    return run


def with_session(change: Callable[[ProducerSession], object], topic_id: int = TOPIC) -> Break:
    """Change the first session of a topic."""

    def run(batch: WriteBatch) -> None:
        session = next(sessions.every(batch, topic_id))
        change(session)
        sessions.save(batch, session)

    return run


def with_owner(epoch: int, change: Callable[[Ownership], object]) -> Break:
    def run(batch: WriteBatch) -> None:
        found = ownership.find(batch, TOPIC, epoch)
        assert found is not None
        change(found)
        ownership._save(batch, TOPIC, found)

    return run


def another_session(**fields: object) -> Break:
    """A second session on `t`, as nobody may be connected."""

    def run(batch: WriteBatch) -> None:
        session = next(sessions.every(batch, TOPIC))
        batch.superblock.last_producer += 1
        session.number, session.name = batch.superblock.last_producer, "intruder"
        for name, value in fields.items():
            setattr(session, name, value)
        sessions.save(batch, session)

    return run


def set_to(**fields: object) -> Callable[[object], None]:
    def change(target: object) -> None:
        for name, value in fields.items():
            assert hasattr(target, name)
            setattr(target, name, value)

    return change


class TestSessions:
    """Who is connected."""

    @pytest.mark.parametrize("mode", [EXCLUSIVE, SHARED])
    def test_nobody_is_connected_beside_an_owner(self, sound: Store, mode: str) -> None:
        """Neither another owner nor a Shared producer (10)."""
        found = damage(sound, another_session(mode=sessions.AccessMode(mode)))
        assert any(invariant == 10 and "intruder" in message for invariant, message in found)

    def test_the_owner_is_the_one_that_the_topic_names(self, sound: Store) -> None:
        """Its head says which session may publish, or come back (10)."""
        found = damage(sound, with_head(set_to(owner_session=999)))
        assert [invariant for invariant, _ in found] == [10]

    @pytest.mark.parametrize("topic_id", [TOPIC, OTHER])
    def test_everybody_is_connected_under_the_topics_epoch(self, sound: Store, topic_id: int) -> None:
        """An owner and a Shared producer (9)."""
        found = damage(sound, with_session(set_to(epoch=1), topic_id))
        assert [invariant for invariant, _ in found] == [9]

    def test_one_name_is_connected_once(self, sound: Store) -> None:
        """Two Shared producers of one name (10)."""
        found = damage(sound, with_session(set_to(name="b"), OTHER))
        assert {invariant for invariant, _ in found} == {10}

    def test_a_session_was_issued(self, sound: Store) -> None:
        """Its number is not above the last one (16)."""
        found = damage(sound, with_session(set_to(number=9999), OTHER))
        assert (16, "session 9999 was never issued") in found

    def test_whoever_waits_came_after_the_owner(self, sound: Store) -> None:
        """Else it was passed by (11)."""

        def change(batch: WriteBatch) -> None:
            session = next(sessions.every(batch, TOPIC))
            session.number, session.is_waiting, session.epoch, session.name = 1, True, -1, "passed-by"
            sessions.save(batch, session)

        assert any(invariant == 11 for invariant, _ in damage(sound, change))


class TestHistory:
    """Who owned the topic."""

    def test_no_epoch_is_missing(self, sound: Store) -> None:
        """Each was granted, one after the other (9)."""
        found = damage(sound, lambda batch: batch.delete(OWNERS, key2(TOPIC, 1)))
        assert [invariant for invariant, _ in found] == [9]

    @pytest.mark.parametrize("epoch", [1, 7])
    def test_the_topics_epoch_is_the_last_granted(self, sound: Store, epoch: int) -> None:
        """It neither fell behind nor ran ahead (9)."""
        found = damage(sound, with_head(set_to(epoch=epoch)))
        assert any(invariant == 9 and "were granted" in message for invariant, message in found)

    def test_an_owner_ends_before_the_next_begins(self, sound: Store) -> None:
        """At most one at any instant (10)."""
        found = damage(sound, with_owner(1, set_to(ended_by=None, ended_ms=None, through=None)))
        assert any(invariant == 10 for invariant, _ in found)

    def test_no_owner_wrote_after_the_next_one_began(self, sound: Store) -> None:
        """Its stretch of the topic ends where the next one's begins, or before (10)."""
        found = damage(sound, with_owner(1, set_to(through=(1, 3))))
        assert any(invariant == 10 and "before 1 had ended" in message for invariant, message in found)

    @pytest.mark.parametrize("waited", [True, False])
    def test_sessions_own_it_in_the_order_of_their_asking(self, sound: Store, waited: bool) -> None:
        """One that came later and owned it earlier would have passed by the other (11)."""

        def change(batch: WriteBatch) -> None:
            for epoch, number in ((0, 4), (1, 3)):
                found = ownership.find(batch, TOPIC, epoch)
                assert found is not None
                assert found.session is not None
                found.session.number, found.session.waited = number, waited
                ownership._save(batch, TOPIC, found)

        assert any(invariant == 11 for invariant, _ in damage(sound, change))


class TestLog:
    """Who published what."""

    def test_under_an_epoch_its_owner_publishes_alone(self, sound: Store) -> None:
        """Until it has left: another's message in its stretch is an intruder's (10)."""

        def rename(found: Ownership) -> None:
            assert found.session is not None
            found.session.name = "somebody-else"

        found = damage(sound, with_owner(1, rename))
        assert found == [(10, "owner-1 published while somebody-else owned the topic")]

    def test_no_message_is_of_an_epoch_that_was_granted_later(self, sound: Store) -> None:
        """It would have been published before it could be (9)."""
        found = damage(sound, with_owner(2, set_to(after=(1, 3))))
        assert any(invariant == 9 and "granted later" in message for invariant, message in found)

    def test_no_message_is_of_an_epoch_that_was_never_granted(self, sound: Store) -> None:
        """Above the topic's (9)."""

        def change(batch: WriteBatch) -> None:
            head = state.load(batch, TOPIC)
            head.epoch = 1
            batch.delete(OWNERS, key2(TOPIC, 2))

        found = damage(sound, change)
        assert any(invariant == 9 and "never granted" in message for invariant, message in found)

    def test_an_open_transaction_is_of_the_topics_epoch(self, sound: Store) -> None:
        """One of a lower epoch was missed by a takeover, and could show a fenced message (10)."""

        def change(batch: WriteBatch) -> None:
            ((txn, _),) = uncommitted_entries.open_transactions(batch, TOPIC)
            part = uncommitted_entries.part_of(batch, txn, TOPIC)
            assert part is not None
            part.epoch = 1
            uncommitted_entries.save_part(batch, txn, TOPIC, part)

        assert any(invariant == 10 for invariant, _ in damage(sound, change))

    def test_everything_of_a_deleted_topic_is_forgotten(self, sound: Store, clock: ManualClock) -> None:
        """Deleted and created again, it is sound under its old epoch with an empty history."""
        sound.admin.topics.delete_topic("t", force=True)
        sound.create_topic("t")
        assert sound.maintenance.verify_store(full=True) == []
        with sound.connection.view() as view:
            assert state.load(view, topics.get(view, "t").topic_id).epoch == 2
