"""The log of one topic, read from end to end: invariants 5, 9, 16 and the counts of 23."""

from __future__ import annotations

from collections.abc import Iterable

from storage.disk.view import ReadView
from storage.topic import log as managed_ledger, trim
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Entry
from storage.topic.state import TopicState
from storage.values.ledger_ids import is_next
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.verify.problem import Progress, Report


class LoggedEntry(NamedTuple):
    """The header of an entry, with the producer's name, "" for a marker, and with delivery times, None for none."""

    at: Position
    kind: int
    messages: int
    txn: int
    messages_before: int
    epoch: int
    producer: str
    times: list[int | None] | None


class Log:
    """The result of a walk over the whole log.

    Attributes:
        entries: all headers, in order.
        by_txn: the message entries of each transaction, in order.
        markers: the markers of each transaction: position and kind.
        sequences: per producer, ranges of sequence ids, each with its transaction (0: none).
    """

    __slots__ = ("by_txn", "entries", "markers", "sequences")

    def __init__(self) -> None:
        self.entries: list[LoggedEntry] = []
        self.by_txn: dict[int, list[LoggedEntry]] = {}
        self.markers: dict[int, list[tuple[Position, int]]] = {}
        self.sequences: dict[str, list[tuple[int, int, int]]] = {}

    def add(self, entry: Entry) -> None:
        """Note one entry."""
        at, is_message = entry.position, entry.kind == MESSAGES
        producer = entry.producer_name if is_message else ""
        logged = LoggedEntry(
            at, entry.kind, entry.count, entry.txn, entry.messages_before, entry.epoch, producer,
            entry.delivery_times,
        )  # fmt: skip
        self.entries.append(logged)
        if not is_message:
            self.markers.setdefault(entry.txn, []).append((at, entry.kind))
            return
        if entry.txn:
            self.by_txn.setdefault(entry.txn, []).append(logged)
        self._add_sequences(producer, entry.sequence_ids, entry.txn)

    def _add_sequences(self, producer: str, ids: Iterable[int], txn: int) -> None:
        ranges = self.sequences.setdefault(producer, [])
        if isinstance(ids, range):
            ranges.append((ids.start, ids.stop - 1, txn))
        else:
            ranges.extend((sequence_id, sequence_id, txn) for sequence_id in ids)


class _Walk:
    """The checks of each entry against the entries before."""

    def __init__(self, topic: Topic, state: TopicState, report: Report) -> None:
        self._name = topic.name
        self._report = report
        self._expected: Position | None = None
        self._timestamp, self._epoch = 0, -1
        self._ledger_id, self._latest_ms = -1, 0
        self.messages, self.bytes = state.messages_trimmed, state.bytes_trimmed
        self.markers = 0

    def check(self, entry: Entry) -> None:
        """Check position, counts, timestamp and epoch of the next entry."""
        entry.check_body()
        at, expected, report = entry.position, self._expected, self._report
        label = f"{self._name} {entry.position}"
        if expected is not None and at != expected and (at[1] != 0 or not is_next(expected[0], at[0])):
            report(5, label, f"follows {expected[0]}:{expected[1] - 1}: positions are not dense")
        if (entry.messages_before, entry.bytes_before) != (self.messages, self.bytes):
            report(23, label, f"counts {entry.messages_before} messages before it; there are {self.messages}")
        if entry.timestamp <= self._timestamp:
            report(16, label, "its timestamp is not after the timestamp of the entry before")
        if entry.epoch < self._epoch:
            report(9, label, f"its epoch {entry.epoch} is below {self._epoch} before it")
        self._check_order(entry, label)
        if entry.kind == MESSAGES:
            self._epoch = max(self._epoch, entry.epoch)
        else:
            self.markers += 1
        self._expected, self._timestamp = Position(at[0], at[1] + 1), entry.timestamp
        self.messages, self.bytes = self.messages + entry.count, self.bytes + entry.size

    def _check_order(self, entry: Entry, label: str) -> None:
        """Check that no earlier entry of the ledger has a later publish time, where the header says so."""
        if entry.ledger_id != self._ledger_id:
            self._ledger_id, self._latest_ms = entry.ledger_id, entry.publish_time
        if entry.is_in_order and entry.publish_time < self._latest_ms:
            self._report(
                23, label, "an earlier entry of the ledger has a later publish time, against its header"
            )
        self._latest_ms = max(self._latest_ms, entry.publish_time)


def read_log(
    view: ReadView, topic: Topic, state: TopicState, report: Report, progress: Progress | None
) -> Log:
    """Read the whole log, and check each entry and the topic's counts on the way."""
    log, walk = Log(), _Walk(topic, state, report)
    first = Position(state.first_ledger, -1)
    remains = trim.remains(view, topic.topic_id, state, 1 << 62)
    walk.markers = sum(entry.kind != MESSAGES for entry in remains)
    for entry in managed_ledger.walk(view, topic.topic_id, first, state.last_confirmed):
        walk.check(entry)
        log.add(entry)
        if progress is not None and len(log.entries) % 1000 == 0:
            progress(topic.name, 1000)
    if progress is not None:
        progress(topic.name, len(log.entries) % 1000)
    if (walk.messages, walk.bytes, walk.markers) != (state.messages, state.bytes, state.markers):
        report(23, topic.name, f"its state counts {state.messages} messages, {state.bytes} bytes, {state.markers} "
                               f"markers; the log has {walk.messages}, {walk.bytes}, {walk.markers}")  # fmt: skip
    # Hard retention closes a ledger before the next entry is written: the open one is empty then.
    is_rolled = (
        state.next_entry == 0 and bool(log.entries) and is_next(log.entries[-1].at[0], state.ledger_id)
    )
    if log.entries and log.entries[-1].at != state.last_confirmed and not is_rolled:
        last = log.entries[-1].at
        report(5, topic.name, f"its last entry is {last}, not lastConfirmedEntry {state.last_confirmed}")
    return log
