"""Errors: `storage/txn/errors.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, TransactionState, TxnID
from storage.errors import (
    TxnctlError,
)
from tests.row_json import row_json
from tests.storage.txn.coordinator_steps import produce


class TestRefusals:
    """A refused command leaves nothing behind (invariant 24)."""

    def test_a_refused_batch_leaves_no_part(self, store: Store, txn: TxnID) -> None:
        """An acknowledgement of two messages, of which one is not there, acknowledges neither."""
        with store.subscribe("t", "a", initial_position=EARLIEST) as consumer:
            message = consumer.receive(timeout=1)
            missing = message.message_id.__class__(1, 7)
            with pytest.raises(TxnctlError):
                consumer.acknowledge([message, missing], txn=txn)
            assert row_json(store.reports.list_pending_acknowledgements("t", "a")) == []
            assert row_json(store.reports.show_transaction(txn))["version"] == 1
            consumer.acknowledge(message, txn=txn)
        assert store.commit_transaction(txn)

    def test_bad_input_and_conflicts_do_not_doom(self, store: Store, txn: TxnID) -> None:
        """A refused send or acknowledgement leaves its transaction usable."""
        producer = store.create_producer("t", producer_name="p")
        other = store.begin_transaction()
        producer.send(b"theirs", sequence_id=1, txn=other)
        with pytest.raises(TxnctlError):
            producer.send(b"mine", sequence_id=1, txn=txn)
        with pytest.raises(TxnctlError):
            producer.send("text", txn=txn)  # type: ignore[arg-type]
        produce(store, txn)
        assert store.commit_transaction(txn)
        assert row_json(store.reports.show_transaction(txn))["state"] == TransactionState.COMMITTED.value
