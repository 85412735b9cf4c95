"""Which state of a transaction may follow which: a table of all cases."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.values.txn_state import STATE_CODES, TransactionState, Verdict, judge_end

OPEN, COMMITTED, ABORTED = TransactionState
times = st.integers(0, 1 << 62)


class TestJudgeEnd:
    """State and deadline are compared once (semantics section 3)."""

    @given(times, times)
    def test_an_open_one_is_committed_before_its_deadline_only(self, now_ns: int, deadline_ns: int) -> None:
        """From the deadline on it can only be aborted."""
        expected = Verdict.PROCEED if now_ns < deadline_ns else Verdict.TOO_LATE
        assert judge_end(OPEN, COMMITTED, now_ns, deadline_ns) is expected

    @given(times, times)
    def test_an_open_one_is_aborted_at_any_time(self, now_ns: int, deadline_ns: int) -> None:
        """No deadline keeps a transaction from being aborted."""
        assert judge_end(OPEN, ABORTED, now_ns, deadline_ns) is Verdict.PROCEED

    @pytest.mark.parametrize("state", [COMMITTED, ABORTED])
    @given(now_ns=times, deadline_ns=times)
    def test_repeating_what_happened_succeeds_however_late(
        self, state: TransactionState, now_ns: int, deadline_ns: int
    ) -> None:
        """Commit and abort are idempotent, also long after the deadline."""
        assert judge_end(state, state, now_ns, deadline_ns) is Verdict.ALREADY_SO

    @pytest.mark.parametrize(("state", "asked"), [(COMMITTED, ABORTED), (ABORTED, COMMITTED)])
    @given(now_ns=times, deadline_ns=times)
    def test_asking_for_the_other_is_a_conflict(
        self, state: TransactionState, asked: TransactionState, now_ns: int, deadline_ns: int
    ) -> None:
        """A decided state never changes (invariant 16)."""
        assert judge_end(state, asked, now_ns, deadline_ns) is Verdict.CONFLICT

    def test_the_numbers_on_disk_are_fixed(self) -> None:
        """0 is open, 1 committed, 2 aborted, for ever."""
        assert STATE_CODES == (OPEN, COMMITTED, ABORTED)
