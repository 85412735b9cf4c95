"""The targets of the performance contract: a `Target` for each comparison, in print order.

The direction of a ratio is part of the target, not of the code that measures:

- `SPEED`  = the peer's time / our time. 0.75 means "three quarters of the peer's speed"; more is better.
- `TIME`   = our time / the peer's time. 4.2 means "takes 4.2 times as long"; less is better.
- `AMOUNT` = a figure without a peer (bytes a byte, MiB); less is better.

A target without a goal is context: printed and saved, not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from benchmarks.contention import LEVELS


class Sense(Enum):
    """The meaning of a ratio, and so whether more or less is better."""

    SPEED = "speed"
    TIME = "time"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True)
class Target:
    """One comparison: our operation, the peer, and the ratio to reach.

    `unit` is the unit of the two raw figures (for `AMOUNT`: of the figure itself).
    """

    row: str
    what: str
    beside: str
    sense: Sense
    goal: float | None
    aim: float | None
    unit: str = "s"

    def ratio(self, ours: float, peer: float | None) -> float:
        """The figure to be judged: `Target(..SPEED..).ratio(ours=2.0, peer=1.0)` is 0.5, half the speed."""
        if self.sense is Sense.AMOUNT:
            return ours
        assert peer is not None, f"{self.row} is a comparison: it needs the peer's figure"
        return peer / ours if self.sense is Sense.SPEED else ours / peer

    def verdict(self, measured: float) -> str:
        """`aim`, `goal` or `NO`; empty where nothing is asked for."""
        if self.goal is None:
            return ""
        if self.aim is not None and self._reaches(measured, self.aim):
            return "aim"
        return "goal" if self._reaches(measured, self.goal) else "NO"

    def _reaches(self, measured: float, bound: float) -> bool:
        return measured >= bound if self.sense is Sense.SPEED else measured <= bound


_SPEED, _TIME, _AMOUNT = Sense.SPEED, Sense.TIME, Sense.AMOUNT

RAW_LMDB = "raw LMDB"
RAW_LMDB_PUTS = "raw LMDB, a put a message"
PLAIN_FILE = "file + fsync"
SQLITE = "sqlite3"
SQLITE_EACH_STEP = "sqlite3, a commit each step"
SQLITE_IMMEDIATE = "sqlite3 BEGIN IMMEDIATE"
SQLITE_VERSIONED = "sqlite3, versioned rows"
REDIS = "Redis, AOF always"
SPARK_PARQUET = "Spark's own Parquet"
PARTITIONS = (1, 2, 4)
SPARK_READS = (
    ("the store", 0.3, 0.6),
    ("the store, all columns", None, None),
    ("offloaded files", 0.8, 1.0),
    ("offloaded files, read_topic", 0.8, 1.0),
)
"""The ways in which Spark reads this store, with goal and aim; values alone unless stated."""

SENT_ONE_BY_ONE = (
    ("the same of messages sent one by one, 100 a batch", 100),
    ("the same of messages sent one by one, 1,000 a batch", 1000),
)
"""Consumed batches of messages that are an entry each."""


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


TARGETS = (
    Target("S1", "topics stats -o json, whole process", "bare Python", _TIME, 4.9, 3.9),
    Target("S2", "one durable produce -m, whole process", "bare Python", _TIME, 5.2, 4.4),
    Target("S3", "100 x begin + produce + commit, one process", "bare Python", _TIME, 18.0, 12.0),
    Target("P1", "durable produce, 1 message a commit", RAW_LMDB, _SPEED, 0.75, 0.9),
    Target("P1", "durable produce, 1 message a commit", SQLITE, _SPEED, 0.42, 0.5),
    Target("P2", "100 messages a commit", RAW_LMDB, _SPEED, 0.70, 0.85),
    Target("P2", "100 messages a commit", SQLITE, _SPEED, 0.75, 0.95),
    Target("P2", "100 messages a commit", RAW_LMDB_PUTS, _SPEED, None, None),
    Target("P3", "1,000 messages a commit", RAW_LMDB, _SPEED, 0.45, 0.62),
    Target("P3", "1,000 messages a commit", PLAIN_FILE, _SPEED, 0.55, 0.78),
    Target("P3", "1,000 messages a commit", SQLITE, _SPEED, 2.3, 3.2),
    Target("P3", "1,000 messages a commit", REDIS, _SPEED, 6.0, 9.0),
    Target("P3", "1,000 messages a commit", RAW_LMDB_PUTS, _SPEED, None, None),
    Target("P4", "bulk produce of lines, the command", "sqlite3 .import", _SPEED, 0.45, 0.6),
    Target("P5", "send_async, 100 messages on the way", "send, one by one", _SPEED, None, None),
    Target("C1", "consume + durable ack, 1,000 a batch", SQLITE, _SPEED, 1.4, 1.9),
    Target("C1", "consume + durable ack, 1,000 a batch", PLAIN_FILE, _SPEED, 0.6, 0.85),
    Target("C1", "consume + durable ack, 1,000 a batch", REDIS, _SPEED, 5.0, 8.0),
    *[Target("C4", what, SQLITE, _SPEED, 0.5, 1.0) for what, _ in SENT_ONE_BY_ONE],
    Target("C2", "consume -o ndjson, the command", "sqlite3 -json", _SPEED, 0.15, 0.4),
    Target("C3", "--follow: commit to line, p99", "one fsync", _TIME, 3.0, None),
    Target("I1", "scan with 100,000 aborted transactions", "scan without filter", _TIME, 1.30, 1.15),
    Target("I1", "scan with half of the batches aborted", "scan without filter", _TIME, 0.75, 0.6),
    Target("I1", "the first, through the aborted messages too", "scan without filter", _TIME, None, None),
    Target("I2", "maxReadPosition, 10,000 open transactions", "10 open", _TIME, 1.5, 1.2),
    Target("I2", "topic stats, 10,000 open transactions", "10 open", _TIME, 1.5, None),
    Target("I3", "delivery behind an open transaction, skip", "none open", _TIME, 1.5, 1.1),
    Target("I3", "delivery behind an open transaction, read uncommitted", "none open", _TIME, 1.5, 1.1),
    Target("I3", "delivery of other keys, Key_Shared, skip", "none open", _TIME, None, None),
    Target("T1", "begin, 3 x 10 messages, commit", SQLITE, _SPEED, 0.45, 0.55),
    Target("T1", "begin, 3 x 10 messages, commit", SQLITE_EACH_STEP, _SPEED, None, None),
    Target("T1", "the same, 10 ends a flush", SQLITE, _SPEED, 0.85, 1.1),
    Target("T1", "the same, 100 ends a flush", SQLITE, _SPEED, 1.4, 2.0),
    Target("T2", "commits, 8 processes together", "1 process", _SPEED, 1.0, 2.5),
    Target("T2", "fairness: the process with fewest commits", "with most", _SPEED, 0.9, None),
    Target("T2", "worst p99 of a process, 8 processes", "8 commits in a row", _TIME, 3.0, 1.5),
    Target("T2", "worst p99 of a process, 8 processes", SQLITE, _TIME, None, None),
    Target("T3", "commit of a transaction with 100,000 keys", "with 1 key", _TIME, 2.0, 1.1),
    Target("K1", "read-committed point read, 10 % intents", "raw LMDB get", _TIME, 4.5, 3.2),
    Target("K1", "read-committed point read, 10 % intents", SQLITE_VERSIONED, _SPEED, 1.2, 1.7),
    Target("K1", "read-committed scan of 1,000 rows, 10 % intents", SQLITE_VERSIONED, _SPEED, None, None),
    Target("K1", "put of one key, one durable commit", SQLITE_VERSIONED, _SPEED, None, None),
    *(
        Target("K2", f"transfers, {count} at once, {level}", SQLITE_IMMEDIATE, _SPEED, 0.3, aim)
        for count, aim in ((1, 0.55), (2, 0.55), (4, 0.55), (8, 1.0))
        for level in LEVELS
    ),
    Target("K3", "read-committed reads, 4 writers on the keys", "no writers", _SPEED, 0.7, 0.95),
    Target("K3", "serializable reads, 4 writers on the keys", "no writers", _SPEED, None, None),
    Target("K3", "read-committed reads, 4 writers on the keys", "serializable reads", _SPEED, None, None),
    Target("K3", "aborts a second by read-committed reads", "-", _AMOUNT, 0.0, None, "1/s"),
    Target("K3", "aborts a second by serializable reads", "-", _AMOUNT, None, None, "1/s"),
    Target("K3", "4 writers beside read-committed reads", "no reads", _SPEED, None, None),
    Target("K3", "4 writers beside serializable reads", "no reads", _SPEED, None, None),
    Target("D1", "bytes on disk a payload byte, 100 B", "payload", _AMOUNT, 1.65, None, "B/B"),
    Target("D1", "bytes on disk a payload byte, 1 KB", "payload", _AMOUNT, 1.12, None, "B/B"),
    Target("D2", "RssAnon above import after a scan", "-", _AMOUNT, 16.0, None, "MiB"),
    *(
        Target("X1", f"Spark reads {what}, {_partitions(count)}", SPARK_PARQUET, _SPEED, goal, aim)
        for count in PARTITIONS
        for what, goal, aim in SPARK_READS
    ),
    *(
        Target("X2", f"Spark writes a topic, {_partitions(count)}", SPARK_PARQUET, _SPEED, 0.25, 0.5)
        for count in PARTITIONS
    ),
)


def targets_of(row: str) -> tuple[Target, ...]:
    """The comparisons of one row, in print order."""
    return tuple(target for target in TARGETS if target.row == row)
