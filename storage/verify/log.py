"""The log of one topic read from end to end, for checking: invariants 5, 9, 16 and the counts of 23."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import ReadView
from storage.topic import log as managed_ledger
from storage.topic.entry import MESSAGES
from storage.topic.state import TopicState
from storage.values.position import Position

Report = Callable[[int | None, str, str], None]
Progress = Callable[[str, int], None]


class LoggedEntry:
    """The header of an entry, and who sent it; no one sends a marker."""

    __slots__ = ("at", "count", "epoch", "kind", "messages_before", "producer", "txn")

    def __init__(
        self,
        at: Position,
        kind: int,
        count: int,
        txn: int,
        messages_before: int,
        epoch: int,
        producer: str,
    ) -> None:
        self.epoch = epoch
        self.producer = producer
        self.at = at
        self.kind = kind
        self.count = count
        self.txn = txn
        self.messages_before = messages_before


class Log:
    """What a walk over the whole log found.

    Attributes:
        entries: all headers, in order.
        by_txn: the message entries of each transaction, in order.
        markers: the markers of each transaction: position and kind.
        sequences: per producer, ranges of sequence ids with the transaction (0: none) they were sent in.
    """

    __slots__ = ("by_txn", "entries", "markers", "sequences")

    def __init__(self) -> None:
        self.entries: list[LoggedEntry] = []
        self.by_txn: dict[int, list[LoggedEntry]] = {}
        self.markers: dict[int, list[tuple[Position, int]]] = {}
        self.sequences: dict[str, list[tuple[int, int, int]]] = {}


def read_log(
    view: ReadView, topic_id: int, head: TopicState, report: Report, name: str, progress: Progress | None
) -> Log:
    """Read it, and check what can be checked on the way."""
    log, expected = Log(), None
    messages, size = head.messages_trimmed, head.bytes_trimmed
    timestamp, epoch, markers = 0, -1, 0
    for entry in managed_ledger.scan(view, topic_id, Position(0, -1), head.last_confirmed):
        entry.check()
        at = entry.position
        what = f"{name} {entry.position}"
        if expected is not None and at not in (expected, (expected[0] + 1, 0)):
            report(5, what, f"follows {expected[0]}:{expected[1] - 1}: positions are not dense")
        if (entry.messages_before, entry.bytes_before) != (messages, size):
            report(23, what, f"counts {entry.messages_before} messages before it; there are {messages}")
        if entry.timestamp <= timestamp:
            report(16, what, "its timestamp is not after the one before")
        if entry.epoch < epoch:
            report(9, what, f"its epoch {entry.epoch} is below {epoch} before it")
        epoch = max(epoch, entry.epoch) if entry.kind == MESSAGES else epoch
        expected, timestamp = (at[0], at[1] + 1), entry.timestamp
        messages, size = messages + entry.count, size + entry.size
        producer = entry.producer_name if entry.kind == MESSAGES else ""
        logged = LoggedEntry(
            at, entry.kind, entry.count, entry.txn, entry.messages_before, entry.epoch, producer
        )
        log.entries.append(logged)
        if progress is not None and len(log.entries) % 1000 == 0:
            progress(name, 1000)
        if entry.kind == MESSAGES:
            if entry.txn:
                log.by_txn.setdefault(entry.txn, []).append(logged)
            _note_sequences(log, entry.producer_name, entry.sequence_ids, entry.txn)
        else:
            markers += 1
            log.markers.setdefault(entry.txn, []).append((at, entry.kind))
    if progress is not None:
        progress(name, len(log.entries) % 1000)
    if (messages, size, markers) != (head.messages, head.bytes, head.markers):
        report(23, name, f"its head counts {head.messages} messages, {head.bytes} bytes, {head.markers} markers; "
                         f"the log has {messages}, {size}, {markers}")  # fmt: skip
    if log.entries and log.entries[-1].at != head.last_confirmed:
        report(
            5, name, f"its last entry is {log.entries[-1].at}, not lastConfirmedEntry {head.last_confirmed}"
        )
    return log


def _note_sequences(log: Log, producer: str, ids: range | object, txn: int) -> None:
    ranges = log.sequences.setdefault(producer, [])
    if isinstance(ids, range):
        ranges.append((ids.start, ids.stop - 1, txn))
        return
    ranges.extend((each, each, txn) for each in ids)  # type: ignore[attr-defined]
