"""The counters of a store as read at once: events, and the durations of flushes, for monitoring."""

from __future__ import annotations

from typing import Final

from storage.values.counters import COUNTERS, DURATION_BOUNDS_MS
from storage.values.named_tuple import NamedTuple

BOUNDS_NS: Final = tuple(int(bound_ms * 1_000_000) for bound_ms in DURATION_BOUNDS_MS)
"""The upper bounds of the buckets of durations."""


class Counters(NamedTuple):
    """The counters of a store, from one reading.

    Attributes:
        since_ms: wall time at which they began at zero; None where nothing counts.
        events: by their numbers in `storage/values/counters.py`.
        duration_ns: the sum of the durations of all flushes, from asking for the writer gate to the end of the flush.
        buckets: flushes by duration: up to each bound, and longer ones; in no other bucket.
    """

    since_ms: int | None
    events: tuple[int, ...]
    duration_ns: int
    buckets: tuple[int, ...]


NO_COUNTS: Final = Counters(None, (0,) * COUNTERS, 0, (0,) * (len(BOUNDS_NS) + 1))
