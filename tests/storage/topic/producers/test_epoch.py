"""The topic epoch: raised by one, with the transactions of lower epochs aborted in the same batch."""

from __future__ import annotations

from storage import Store
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.epoch import raise_epoch
from tests.storage.conftest import Scratch


class Recorder:
    """Open transactions that only note what is asked of them."""

    def __init__(self, topic: OpenTopic[WriteBatch]) -> None:
        self.topic = topic
        self.asked: list[tuple[int, int, int, str, int]] = []

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        raise AssertionError("raising an epoch looks for no dead owner")

    def end_fenced(self, batch: WriteBatch, topic_id: int, epoch: int, spare: int, why: str) -> list[int]:
        self.asked.append((topic_id, epoch, spare, why, self.topic.state.epoch))
        return [7, 9]


def test_it_grows_by_one_after_the_aborts(scratch: Scratch) -> None:
    """The aborts are told the coming epoch, and happen under the former one."""

    def check(batch: WriteBatch) -> None:
        topic = OpenTopic.load(batch, topics.create(batch, "epochs", topics.LedgerLimits()).topic_id)
        transactions, changes = Recorder(topic), topic.state.session_changes
        assert raise_epoch(topic, transactions, "loader", 3) == [7, 9]
        assert transactions.asked == [(topic.topic_id, 0, 3, "loader took the topic over, epoch 0", -1)]
        assert (topic.state.epoch, topic.state.session_changes) == (0, changes + 1)
        raise_epoch(topic, transactions, "loader", 0)
        assert topic.state.epoch == 1

    scratch.run(check)


def test_an_owner_that_names_its_transaction_takes_over_the_messages_of_the_former_one(store: Store) -> None:
    """They stand under the new epoch, and are committed without a further one."""
    former = store.create_producer("t", access_mode="Exclusive")
    txn = store.begin_transaction()
    former.send(b"former", txn=txn)
    store.create_producer("t", access_mode="ExclusiveWithFencing", txn=txn)
    assert store.commit_transaction(txn)
    assert [message.value for message in store.reader("t")] == [b"former"]
