"""The rows by name. A further group of rows is a module here, its targets in `contract`, and its lines in `ROWS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.report import Comparison
from benchmarks.rows import bulk, consume, disk, follow, isolation, memory, produce, startup

Row = Callable[[Bench], Iterator[Comparison]]

ROWS: dict[str, Row] = {
    "S1": startup.stats_command,
    "S2": startup.produce_command,
    "S3": startup.transactions_script,
    "P1": produce.one_a_commit,
    "P2": produce.hundred_a_commit,
    "P3": produce.thousand_a_commit,
    "P4": bulk.produce_lines,
    "C1": consume.consume_and_acknowledge,
    "C2": bulk.consume_ndjson,
    "C3": follow.commit_to_line,
    "I1": isolation.scan_past_aborted,
    "I2": isolation.max_read_position,
    "D1": disk.bytes_per_payload_byte,
    "D2": memory.scan_memory,
}
