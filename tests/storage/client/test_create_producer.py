"""Create producer: `storage/client/create_producer.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import (
    InvalidName,
)


class TestNames:
    """Who produced."""

    def test_unnamed_producers_get_names_that_no_other_ever_had(self, store: Store) -> None:
        """So (producer, sequence id) names one message (invariant 20)."""
        for _ in range(3):
            producer = store.create_producer("t")
            producer.send(b"x")
            producer.send(b"y")
        named = [(message.producer_name, message.sequence_id) for message in store.reader("t")]
        assert len(set(named)) == 6

    def test_such_a_name_cannot_be_given(self, store: Store) -> None:
        """Nobody can pass for the store."""
        with pytest.raises(InvalidName):
            store.create_producer("t", producer_name="producer-1")

    @pytest.mark.parametrize("name", ["", "a b", "../a", "ä", "x" * 129, "a\0"])
    def test_a_bad_name_is_refused(self, store: Store, name: str) -> None:
        """The rule of all names."""
        with pytest.raises(InvalidName):
            store.create_producer("t", producer_name=name)
