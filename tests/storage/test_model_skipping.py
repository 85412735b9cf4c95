"""The model of dispatch with `--on-open skip`, where random programs once found the model wrong and the store right."""

from __future__ import annotations

from storage import OnOpen, Store
from tests.storage.model import RC, Model, ModelTransaction
from tests.storage.model_subscription import ModelConsumer, ModelSubscription
from tests.storage.walk_steps import KEY_SHARED, Attach, values


def test_a_message_behind_a_transaction_holds_its_key_in_the_model_as_in_the_store(
    store: Store, attach: Attach
) -> None:
    """A later message of the key waits too, once an operator has acknowledged the transaction's own message."""
    txn, producer = store.begin_transaction(), store.create_producer("t")
    consumer = attach(KEY_SHARED, window=1, on_open=OnOpen.SKIP)
    model = Model()
    model.create_topic("t", 100)
    model.txns[1] = ModelTransaction(1, 1, attached=False)
    topic = model.topics["t"]
    mine = topic.subscriptions["a"] = ModelSubscription(topic, "a", KEY_SHARED, RC, -1, OnOpen.SKIP)
    modelled = ModelConsumer("c1", mine, 1)
    mine.consumers.append(modelled)

    def send(value: bytes, key: bytes | None, in_txn: bool = False) -> None:
        producer.send(value, key=key, txn=txn if in_txn else None)
        model.send("t", None, [(value, key, None)], None, int(in_txn))

    def received() -> list[bytes | None]:
        handed = values(consumer, 1)
        assert [topic.message(slot).value for slot, _ in mine.dispatch(modelled, 1, 0)] == handed
        return handed

    send(b"own", b"k", in_txn=True)
    send(b"first", None)
    send(b"behind", b"k")
    send(b"second", None)
    assert [received(), received()] == [[b"first"], [b"second"]]
    send(b"later", b"k")
    store.admin.transactions.abort_transaction(txn)
    model.end(1, committed=False)
    store.admin.subscriptions.skip_messages("t", "a", 1)
    assert mine.skip(1, beyond_max_read=False) == 1
    assert [received(), received(), received()] == [[b"behind"], [b"later"], []]
