"""The sizes of a run: `FULL` for figures that count, a part of these, `QUICK` to see that the harness runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts, named by the counted things."""

    name: str
    process_rounds: int
    commit_rounds: int
    sqlite_warmup: tuple[tuple[int, int], ...]
    """(messages a commit, commits): a recycled WAL is 1.85 times as fast as a fresh one."""
    bulk_messages: int
    bulk_rounds: int
    consume_rounds: int
    skip_rounds: int
    follow_messages: int
    scan_batches: int
    scan_rounds: int
    aborted_transactions: int
    open_transactions: int
    table_keys: int
    commit_keys: int
    commit_keys_rounds: int
    processes_max: int
    """Rows of several processes use fewer than they say where this is less."""
    crew_rounds: int
    crew_seconds: float
    """One burst of a crew."""
    fairness_seconds: float
    """As that, where the slow end counts: a burst ends the wait of those that it starved."""
    disk_payload_bytes: int
    memory_scan_bytes: int
    spark_messages: int
    spark_partitions_max: int
    """Rows on Spark use fewer partitions than they say where this is less."""
    spark_rounds: int
    spark_warmup: int

    def times(self, factor: float) -> Sizes:
        """These sizes times a factor, none below those of `QUICK`; counts of processes and partitions stay."""
        values = {field.name: self._scaled(field.name, factor) for field in fields(self)}
        return Sizes(**{**values, "name": f"{factor:g} of {self.name}"})

    def _scaled(self, field: str, factor: float) -> Any:
        size, least = getattr(self, field), getattr(QUICK, field)
        if field == "sqlite_warmup":
            pairs = zip(size, least, strict=True)
            return tuple((each, max(fewest, int(count * factor))) for (each, count), (_, fewest) in pairs)
        if field in ("name", "processes_max", "spark_partitions_max"):
            return size
        return max(least, type(size)(size * factor))


FULL = Sizes(
    name="full",
    process_rounds=40,
    commit_rounds=40,
    sqlite_warmup=((1, 3000), (100, 300), (1000, 40)),
    bulk_messages=1_000_000,
    bulk_rounds=3,
    consume_rounds=40,
    skip_rounds=20,
    follow_messages=500,
    scan_batches=1000,
    scan_rounds=5,
    aborted_transactions=100_000,
    open_transactions=10_000,
    table_keys=100_000,
    commit_keys=100_000,
    commit_keys_rounds=10,
    processes_max=8,
    crew_rounds=7,
    crew_seconds=0.5,
    fairness_seconds=5.0,
    disk_payload_bytes=64 << 20,
    memory_scan_bytes=2 << 30,
    spark_messages=10_000_000,
    spark_partitions_max=4,
    spark_rounds=3,
    spark_warmup=1,
)

QUICK = Sizes(
    name="quick",
    process_rounds=1,
    commit_rounds=2,
    sqlite_warmup=((1, 5), (100, 2), (1000, 1)),
    bulk_messages=2_000,
    bulk_rounds=1,
    consume_rounds=2,
    skip_rounds=1,
    follow_messages=5,
    scan_batches=4,
    scan_rounds=1,
    aborted_transactions=20,
    open_transactions=20,
    table_keys=1_000,
    commit_keys=200,
    commit_keys_rounds=1,
    processes_max=2,
    crew_rounds=1,
    crew_seconds=0.05,
    fairness_seconds=0.05,
    disk_payload_bytes=1 << 20,
    memory_scan_bytes=2 << 20,
    spark_messages=2_000,
    spark_partitions_max=1,
    spark_rounds=1,
    spark_warmup=0,
)
