"""The two isolation levels, as functions of values: bound and filter (PIP-298)."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage import IsolationLevel, SubscriptionType
from storage.subscription.isolation import bound, delivers
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER, MESSAGES

RC, RU = IsolationLevel
levels = st.sampled_from([RC, RU])
positions = st.tuples(st.integers(1, 9), st.integers(-1, 9))
txns = st.integers(0, 5)
aborted = st.sets(st.integers(1, 5))


class TestBound:
    """How far a level reads."""

    @given(positions, positions)
    def test_each_level_has_its_bound(self, max_read: tuple[int, int], last: tuple[int, int]) -> None:
        """READ_COMMITTED ends at maxReadPosition, READ_UNCOMMITTED at lastConfirmedEntry."""
        assert bound(RC, max_read, last) == max_read
        assert bound(RU, max_read, last) == last


class TestFilter:
    """What a level leaves out."""

    @given(levels, st.sampled_from([COMMIT_MARKER, ABORT_MARKER]), txns, aborted)
    def test_markers_are_delivered_at_neither(
        self, level: IsolationLevel, kind: int, txn: int, ids: set[int]
    ) -> None:
        """A marker is nobody's message."""
        assert not delivers(level, kind, txn, ids)

    @given(txns, aborted)
    def test_read_uncommitted_leaves_no_message_out(self, txn: int, ids: set[int]) -> None:
        """Open, committed and aborted messages are all delivered."""
        assert delivers(RU, MESSAGES, txn, ids)

    @given(txns, aborted)
    def test_read_committed_leaves_out_the_aborted_alone(self, txn: int, ids: set[int]) -> None:
        """A plain message, and one of a transaction that is not aborted, is delivered."""
        assert delivers(RC, MESSAGES, txn, ids) == (txn not in ids)


class TestNames:
    """What is durable and printed."""

    def test_levels_and_types_have_pulsars_names(self) -> None:
        """The values are those of PIP-298 and of Pulsar's stats."""
        assert [level.value for level in IsolationLevel] == ["READ_COMMITTED", "READ_UNCOMMITTED"]
        assert [type_.value for type_ in SubscriptionType] == [
            "Exclusive",
            "Failover",
            "Shared",
            "Key_Shared",
        ]

    def test_only_one_consumer_at_a_time_is_ordered(self) -> None:
        """Exclusive and Failover are ordered, and so take cumulative acknowledgements; the shared ones are not."""
        assert [type_.is_ordered for type_ in SubscriptionType] == [True, True, False, False]
