"""The rows by name. A further group of rows is a module here, its targets in `contract`, and its lines in `ROWS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.report import Comparison
from benchmarks.rows import (
    bulk,
    consume,
    disk,
    follow,
    isolation,
    memory,
    processes,
    produce,
    readers,
    skipping,
    spark,
    startup,
    tables,
    transactions,
    transfers,
)

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
    "C4": consume.consume_one_by_one,
    "C2": bulk.consume_ndjson,
    "C3": follow.commit_to_line,
    "I1": isolation.scan_past_aborted,
    "I2": isolation.max_read_position,
    "I3": skipping.delivery_with_one_open,
    "T1": transactions.thirty_messages,
    "T2": processes.commits_of_eight,
    "T3": transactions.commit_of_many_keys,
    "K1": tables.point_reads,
    "K2": transfers.transfers,
    "K3": readers.reads_beside_writers,
    "D1": disk.bytes_per_payload_byte,
    "D2": memory.scan_memory,
    "X1": spark.reads,
    "X2": spark.writes,
}
