"""A producer whose session an operator closed, beside a second producer, and a transaction of the closed one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from storage import Store
from storage.errors import ProducerFenced, TransactionNotOpen


def test_a_producer_whose_session_was_closed_goes_on_only_as_a_new_one(store: Store) -> None:
    """The closed one is refused on each try, the waiting topic goes to the second, and a third try is a new producer."""
    closed = store.create_producer("t", producer_name="p", access_mode="Exclusive")
    closed.send(b"1")
    store.admin.producers.close_session(closed.session)
    for _ in range(2):
        with pytest.raises(ProducerFenced):
            closed.send(b"never")
    second = store.create_producer("t", producer_name="q", access_mode="Exclusive")
    second.send(b"2")
    with pytest.raises(ProducerFenced):
        closed.send(b"never")
    closed.close()
    second.send(b"3")
    second.close()
    with store.create_producer("t", producer_name="p", access_mode="Exclusive") as again:
        again.send(b"4")
        assert again.topic_epoch > second.topic_epoch
    assert [message.value for message in store.reader("t")] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("mode", ["Shared", "Exclusive"])
def test_messages_of_a_closed_producers_transaction_never_show(store: Store, mode: str) -> None:
    """Whether written or kept in the process; the second producer's transaction of the same moment commits."""
    closed = store.create_producer("t", access_mode=mode)
    txn, other = store.transaction(), store.transaction()
    closed.send(b"written", txn=txn)
    txn.flush()
    closed.send(b"kept", txn=txn)
    store.admin.producers.close_session(closed.session)
    second = store.create_producer("t", access_mode=mode)
    second.send(b"second", txn=other)
    with suppress(ProducerFenced, TransactionNotOpen):
        closed.send(b"never", txn=txn)
    with pytest.raises((ProducerFenced, TransactionNotOpen)):
        txn.commit()
    other.commit()
    second.send(b"behind")
    assert [message.value for message in store.reader("t")] == [b"second", b"behind"]
