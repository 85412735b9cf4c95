"""Open topics: one state for everything that opens the topic in a batch."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.view import WriteBatch
from storage.errors import TopicNotFound
from storage.topic import catalogue as topics, state as states
from storage.topic.open_topic import OpenTopic
from tests.storage.conftest import Scratch


def test_the_state_is_shared_within_a_batch(scratch: Scratch) -> None:
    """A change through one open topic is seen through the next, without a write in between."""

    def check(batch: WriteBatch) -> None:
        topic = topics.create(batch, "shared", topics.LedgerLimits())
        first = OpenTopic.load(batch, topic.topic_id, topic.name)
        first.state.session_changes += 1
        assert (
            OpenTopic.load(batch, topic.topic_id).state is first.state is states.load(batch, topic.topic_id)
        )

    scratch.run(check)


def test_a_deleted_topic_cannot_be_opened(scratch: Scratch) -> None:
    """Even in the batch that has changed and deleted it."""

    def check(batch: WriteBatch) -> None:
        topic = topics.create(batch, "gone", topics.LedgerLimits())
        OpenTopic.load(batch, topic.topic_id).state.session_changes += 1
        topics.delete(batch, topic)
        with pytest.raises(TopicNotFound):
            OpenTopic.load(batch, topic.topic_id)

    scratch.run(check)


def test_over_a_view_each_topic_is_read_anew(store: Store) -> None:
    """A view changes nothing, so that nothing need be shared."""
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        assert OpenTopic.load(view, topic_id).state is not OpenTopic.load(view, topic_id).state
