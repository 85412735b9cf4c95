"""Where a transaction's entries are, against a recount."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.disk.view import WriteBatch
from storage.txn import runs
from tests.storage.conftest import Scratch
from tests.storage.written_log import Step, WrittenLog, steps


class TestRuns:
    """Runs answer without a scan what a scan would."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_messages_through_equals_a_recount(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """At every position, inside a run, between runs and before a ledger, the count is that of the log."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            for txn in log.states:
                for at in log.places():
                    assert runs.messages_through(batch, log.topic_id, txn, at) == log.messages(
                        (0, -1), at, {txn}
                    )

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_ranges_cover_the_entries_of_the_transaction(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Every run lies within a ledger, and together they hold the transaction's entries and no others."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            for txn in log.states:
                ranges = runs.ranges(batch, log.topic_id, txn)
                assert all(first.ledger_id == last.ledger_id for first, last in ranges)
                covered = [
                    entry for entry in log.entries if any(first <= entry.at <= last for first, last in ranges)
                ]
                assert covered == [entry for entry in log.entries if entry.txn == txn and entry.count]

        scratch.run(check)
