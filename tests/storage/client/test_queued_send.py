"""A send in the queue of a group."""

from __future__ import annotations

import os

import pytest

from storage import DUPLICATE, Producer, Store
from storage.errors import (
    GroupRefused,
    SequenceConflict,
    StoreClosed,
)
from tests.storage.client.group_steps import ends_in, in_thread
from tests.storage.producer_steps import values


class TestQueuedSend:
    """Refused alone; the first one creates a topic."""

    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_a_forked_child_sends_nothing_of_its_parent(self, store: Store, producer: Producer) -> None:
        """Neither by a look nor by the end of the block."""
        with store.group() as group:
            message_id = producer.send(b"x")
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    message_id.entry_id  # noqa: B018
                except StoreClosed:
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert group.durable == 1
        assert values(store) == [b"x"]

    def test_a_refused_send_leaves_the_others(self, store: Store) -> None:
        """Nothing of it is stored, and its message id raises the refusal."""
        named = store.create_producer("t", producer_name="p")
        other = store.begin_transaction()
        named.send(b"held", sequence_id=5, txn=other)
        with ends_in(GroupRefused), store.group() as group:
            first = named.send(b"a", sequence_id=1)
            second = named.send(b"b", sequence_id=5)
            third = named.send(b"c", sequence_id=6)
            again = named.send(b"c", sequence_id=6)
        assert [refused.place for refused in group.refused] == [1]
        assert isinstance(group.refused[0].error, SequenceConflict)
        with pytest.raises(SequenceConflict):
            second.entry_id  # noqa: B018
        assert again == DUPLICATE
        assert third.entry_id > first.entry_id
        store.admin.transactions.abort_transaction(other)
        assert values(store) == [b"a", b"c"]

    def test_the_first_message_creates_its_topic(self, store: Store) -> None:
        """The sends behind it find the topic."""
        producer = store.create_producer("late", create_topic=True, create_late=True)
        with store.group():
            for number in range(3):
                producer.send(b"%d" % number)
            assert not in_thread(lambda: store.has_topic("late"))
        assert [message.value for message in store.reader("late")] == [b"0", b"1", b"2"]
