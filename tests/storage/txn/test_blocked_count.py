"""The blocked count, against a recount of the log."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.disk.view import WriteBatch
from storage.txn import blocked_count
from tests.storage.conftest import Scratch
from tests.storage.written_log import Step, WrittenLog, steps


class TestBlockedCount:
    """Blocked messages are counted without a scan as a scan counts them."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_counts_behind_every_position_equal_a_recount(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """From maxReadPosition on, committed and uncommitted messages behind a position are those of the log."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            opened = {txn for txn, state in log.states.items() if state == "OPEN"}
            aborted = {txn for txn, state in log.states.items() if state == "ABORTED"}
            for position in log.places():
                if position < log.head.max_read:
                    continue
                behind = [entry for entry in log.entries if entry.at > position]
                uncommitted = sum(entry.count for entry in behind if entry.txn in opened)
                blocked = sum(entry.count for entry in behind if entry.txn not in opened | aborted)
                assert uncommitted == blocked_count.uncommitted_behind(
                    batch, log.topic_id, log.head, position
                )
                assert blocked == blocked_count.blocked_behind(batch, log.topic_id, log.head, position)

        scratch.run(check)
