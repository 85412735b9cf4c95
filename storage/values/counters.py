"""The events that a store counts, by the number of their counter; see `storage/disk/lmdb/counters_file.py`."""

from __future__ import annotations

from typing import Final

from storage.values.txn_state import AbortReason

MESSAGES_WRITTEN: Final = 0
"""Messages written to a log, those of transactions included."""
DELIVERIES: Final = 1
"""Messages given to a consumer."""
REDELIVERIES: Final = 2
"""Deliveries of a message that was delivered before."""
COMMITS: Final = 3
"""Committed transactions, those of a single write to a table included."""
CONFLICTS_LOST: Final = 4
"""Transactions that lost a key of a table."""
TAKEOVERS: Final = 5
"""Topics that a producer of mode ExclusiveWithFencing took from connected producers."""
_FIRST_ABORT: Final = 6

ABORTS: Final = {reason.value: _FIRST_ABORT + place for place, reason in enumerate(AbortReason)}
"""The counter of aborted transactions of each reason."""

COUNTERS: Final = _FIRST_ABORT + len(ABORTS)

DURATION_BOUNDS_MS: Final = (0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
"""Upper bounds of the buckets of the durations of flushes; one more bucket has the longer ones."""
