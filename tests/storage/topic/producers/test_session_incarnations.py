"""Sessions and tokens of deleted topics, after a topic of the same name is created."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from storage.errors import ProducerBusy, ProducerFenced, TopicNotFound, TxnctlError
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, epochs, lease, publish, topic_epoch, values


class TestIncarnations:
    """Equal epochs that are not the same session: topic incarnation, epoch and session must all be right."""

    def test_a_shared_producer_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """The topic is created again under the same name, without an epoch as before: it is another topic."""
        shared = rivals.produce(SHARED)
        store.admin.topics.delete_topic("t", force=True)
        with pytest.raises((ProducerFenced, TopicNotFound)):
            shared.send(b"x")
        store.create_topic("t")
        assert topic_epoch(store) is None
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                shared.send(b"never stored")
        assert values(store) == []

    def test_the_owner_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """Upstream: deleted and recreated; the epoch goes on counting, and the owner is fenced for ever."""
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"x")
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        assert topic_epoch(store) == 0
        with pytest.raises(ProducerFenced):
            owner.send(b"never stored")
        rivals.produce(SHARED).send(b"of the new topic")
        with pytest.raises(ProducerFenced):
            owner.send(b"never stored")
        assert epochs(store) == [0]
        assert rivals.produce(FENCING).topic_epoch == 1

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_the_token_of_a_deleted_topic(self, store: Store, rivals: Rivals, mode: str) -> None:
        """It resumes nothing on the new one, and publishes nothing to it."""
        with rivals.open() as process:
            token = process.create_producer("t", access_mode=mode).session
        store.admin.topics.delete_topic("t")
        store.create_topic("t")
        for call in (
            lambda: rivals.produce(mode, resume=token),
            lambda: publish(rivals, token),
        ):
            with pytest.raises(TxnctlError) as caught:
                call()
            assert caught.value.exit_code in (2, 3, 4)
        assert values(store) == []

    def test_a_leased_session_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """Its lease still runs, and holds nothing of the new topic."""
        token = lease(rivals)
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        owner = rivals.produce(EXCLUSIVE)
        with pytest.raises(TxnctlError):
            publish(rivals, token)
        for call in (store.reports.show_session, store.admin.producers.close_session):
            with pytest.raises(TxnctlError):
                call(token)
        owner.send(b"mine")
        assert values(store) == [b"mine"]

    def test_the_epoch_of_a_session_that_waits_is_of_its_grant(self, store: Store, rivals: Rivals) -> None:
        """While it waits it has none."""
        rivals.produce(EXCLUSIVE)
        rivals.wait()
        assert [(row["epoch"], row["place"]) for row in row_json(store.reports.list_producers("t"))] == [
            (0, None),
            (None, 1),
        ]

    @pytest.mark.parametrize("how", ["resume", "topic_epoch"])
    def test_an_old_owner_does_not_take_the_session_of_a_new_one(
        self, store: Store, rivals: Rivals, how: str
    ) -> None:
        """It brings the epoch that a Shared producer carries as well: still only one of them was the owner."""
        owner = rivals.produce(EXCLUSIVE)
        owner.close()
        shared = rivals.produce(SHARED)
        shared.send(b"of the shared one")
        value: Any = owner.session if how == "resume" else 0
        with pytest.raises((ProducerFenced, ProducerBusy)):
            rivals.produce(EXCLUSIVE, **{how: value})
        shared.send(b"undisturbed")
