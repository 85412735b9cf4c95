"""Check a topic against its log: invariants 1, 2, 5, 6, 10, 16, 20 and 23."""

from __future__ import annotations

import re
from itertools import pairwise

from storage.disk.codec import key1
from storage.disk.schema import SEQUENCES
from storage.disk.view import ReadView
from storage.subscription import lost_runs
from storage.topic import log as managed_ledger
from storage.topic.catalogue import Topic
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER
from storage.topic.sequence_ids import UsedRange
from storage.topic.state import TopicState
from storage.txn import aborted, aborted_blocks, record as records, runs, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.log import Log, LoggedEntry
from storage.verify.problem import Report
from storage.verify.timed import check_timed

_MARKER_KINDS = {TransactionState.COMMITTED: COMMIT_MARKER, TransactionState.ABORTED: ABORT_MARKER}


_ISSUED = re.compile("producer-[0-9]+")
"""Names that the store gives to producers without one."""


class _Counted(NamedTuple):
    """First and last position, entries and messages of a transaction on a topic."""

    first: Position
    last: Position
    entries: int
    messages: int


class TopicCheck:
    """The check of one topic: derive every record of the topic again from its log, and compare."""

    def __init__(self, view: ReadView, topic: Topic, state: TopicState, log: Log, report: Report) -> None:
        self._view = view
        self._topic = topic
        self._state = state
        self._log = log
        self._report = report
        self._is_trimmed = state.bytes_trimmed > 0
        self._txn_states = {txn: self._state_of(txn) for txn in {*log.by_txn, *log.markers}}

    def run(self) -> None:
        self._check_ledgers()
        self._check_markers()
        self._check_max_read()
        self._check_aborted()
        self._check_parts()
        for producer, ranges in self._log.sequences.items():
            self._check_sequences(producer, ranges)
        check_timed(
            self._view, self._topic, self._state, self._log,
            lambda invariant, message: self._report(invariant, self._topic.name, message),
        )  # fmt: skip

    def _state_of(self, txn: int) -> TransactionState:
        record = records.find(self._view, txn)
        if record is None:
            self._report(
                16, self._topic.name, f"messages name transaction {TxnID(txn)}, whose outcome is not kept"
            )
            return TransactionState.ABORTED
        return record.state

    def _label(self, txn: int) -> str:
        return f"{self._topic.name} transaction {TxnID(txn)}"

    def _check_ledgers(self) -> None:
        name, counted = self._topic.name, dict[int, tuple[int, int]]()
        for entry in self._log.entries:
            entries, messages = counted.get(entry.at[0], (0, 0))
            counted[entry.at[0]] = (entries + 1, messages + entry.messages)
        for ledger in managed_ledger.ledgers(self._view, self._topic.topic_id, self._state):
            entries, messages = counted.pop(ledger.ledger_id, (0, 0))
            if (entries, messages) != (ledger.entries, ledger.messages):
                self._report(23, f"{name} ledger {ledger.ledger_id}", f"records {ledger.entries} entries and "
                             f"{ledger.messages} messages; the log has {entries} and {messages}")  # fmt: skip
        for ledger_id in counted:
            self._report(5, f"{name} ledger {ledger_id}", "has entries, but no record")

    def _check_markers(self) -> None:
        """Check the markers: one after the last message of an ended transaction, of its kind; none of an open one."""
        for txn, state in self._txn_states.items():
            markers, entries = self._log.markers.get(txn, []), self._log.by_txn.get(txn, [])
            if state is TransactionState.OPEN:
                if markers:
                    self._report(6, self._label(txn), "is open, and has a marker")
            elif [kind for _, kind in markers] != [_MARKER_KINDS[state]]:
                message = f"is {state.value}, and has {len(markers)} markers, not one of that kind"
                self._report(6, self._label(txn), message)
            elif entries and markers[0][0] < entries[-1].at:
                self._report(6, self._label(txn), "has messages after its marker")

    def _check_max_read(self) -> None:
        """Check maxReadPosition and the index of open transactions against the first messages in the log."""
        state, report, name = self._state, self._report, self._topic.name
        open_first = self._open_first()
        expected = self._position_before(open_first[0][0]) if open_first else state.last_confirmed
        first_in_log = self._log.entries[0].at if self._log.entries else None
        is_trimmed = bool(open_first) and open_first[0][0] == first_in_log and self._is_trimmed
        is_begin = _is_same_place(state.max_read, expected, open_first[0][0] if open_first else None)
        if state.max_read != expected and not is_trimmed and not is_begin:
            formula = Position(*expected)
            report(1, name, f"maxReadPosition is {state.max_read_position}, its formula gives {formula}")
        opened = uncommitted_entries.indexed_transactions(self._view, self._topic.topic_id)
        indexed = [(tuple(first), txn) for txn, first in opened]
        if indexed != open_first:
            report(1, name, f"the index of open transactions has {len(indexed)}, the log {len(open_first)}")
        uncommitted = sum(entry.messages for _, txn in open_first for entry in self._log.by_txn[txn])
        if (state.open_txns, state.uncommitted) != (len(open_first), uncommitted):
            report(23, name, f"counts {state.open_txns} open transactions with {state.uncommitted} messages; "
                             f"there are {len(open_first)} with {uncommitted}")  # fmt: skip

    def _open_first(self) -> list[tuple[Position, int]]:
        """Return first entry and number of each open transaction, in the order of the log."""
        return sorted(
            (entries[0].at, txn)
            for txn, entries in self._log.by_txn.items()
            if self._txn_states[txn] is TransactionState.OPEN
        )

    def _position_before(self, at: Position) -> Position:
        """Return the position of the entry before `at`; `L:-1` before the first entry of the log."""
        previous: Position | None = None
        for entry in self._log.entries:
            if entry.at == at:
                break
            previous = entry.at
        return previous if previous is not None else Position(at[0], -1)

    def _check_aborted(self) -> None:
        """Check that the aborted set agrees with the log and the records of transactions."""
        expected = {
            (txn, *counted.first, *counted.last, counted.messages)
            for txn, entries in self._log.by_txn.items()
            if self._txn_states[txn] is TransactionState.ABORTED
            for counted in (self._counted(txn, entries),)
        }
        name, state = self._topic.name, self._state
        every = aborted.rows(self._view, self._topic.topic_id)
        # Rows of transactions that are trimmed whole stay as long as their segment.
        rows = [row for row in every if row[3:5] >= (state.first_ledger, 0)]
        if len(rows) != len(set(rows)) or set(rows) != expected:
            self._report(
                2, name, f"the aborted set has {len(rows)} transactions; the log has {len(expected)}"
            )
        sums = (len(every), sum(row[5] for row in every))
        if sums != (state.aborted_txns, state.aborted_messages):
            self._report(23, name, f"counts {state.aborted_txns} aborted transactions; the set has {sums[0]}")
        for segment in aborted.segments(self._view, self._topic.topic_id):
            if segment.transactions == 0:
                self._report(23, name, f"segment {segment.segment} of the aborted set is empty")
        self._check_aborted_blocks()

    def _check_aborted_blocks(self) -> None:
        """Check that each block of the aborted set has the range and the sums of its segments, which are sealed."""
        topic_id = self._topic.topic_id
        segments = {segment.segment: segment for segment in aborted.segments(self._view, topic_id)}
        for block in aborted_blocks.every(self._view, topic_id):
            if block.level == aborted_blocks.WHOLE:
                numbers = range(min(segments, default=0), max(segments, default=-1) + 1)
            else:
                numbers = aborted_blocks.segments_of(block)
            covered = [segments[number] for number in numbers if number in segments]
            expected = (
                min((part.first_position for part in covered), default=None),
                max((part.last_position for part in covered), default=None),
                sum(part.transactions for part in covered), sum(part.messages for part in covered),
            )  # fmt: skip
            end = self._state.aborted_segment + (block.level == aborted_blocks.WHOLE)
            is_sealed = len(covered) == len(numbers) and numbers.stop <= end
            if not is_sealed or block[2:] != expected:
                what = f"block {block.number} of level {block.level} of the aborted set"
                self._report(23, self._topic.name, f"{what} does not agree with its segments")

    def _check_parts(self) -> None:
        """Check that the part and the runs of each transaction on the topic agree with the log."""
        for txn, entries in self._log.by_txn.items():
            label = self._label(txn)
            part = uncommitted_entries.part_of(self._view, txn, self._topic.topic_id)
            if part is None:
                self._report(6, label, "has messages, but no part")
                continue
            if self._txn_states[txn] is TransactionState.OPEN and part.epoch != self._state.epoch:
                epochs = f"is open under epoch {part.epoch}; the topic has {self._state.epoch}"
                self._report(10, label, epochs)
            counted = self._counted(txn, entries)
            if (part.first, part.last, part.entries, part.messages) != counted:
                message = (
                    f"its part says {part.entries} entries, {part.messages} messages; the log {counted[2:]}"
                )
                self._report(23, label, message)
            self._check_runs(txn, entries)

    def _counted(self, txn: int, entries: list[LoggedEntry]) -> _Counted:
        """The entries and messages of a transaction: those in the log, and by its runs those that were trimmed."""
        view, topic_id = self._view, self._topic.topic_id
        first, count = entries[0].at, len(entries)
        messages = sum(entry.messages for entry in entries)
        if self._is_trimmed:
            begin = Position(self._state.first_ledger, -1)
            trimmed = [run for run in runs.ranges(view, topic_id, txn) if run[0] < begin]
            first = trimmed[0][0] if trimmed else first
            count += sum(last.entry_id - start.entry_id + 1 for start, last in trimmed)
            messages += runs.messages_through(view, topic_id, txn, begin)
        return _Counted(first, entries[-1].at, count, messages)

    def _check_runs(self, txn: int, entries: list[LoggedEntry]) -> None:
        view, topic_id, label = self._view, self._topic.topic_id, self._label(txn)
        begin = Position(self._state.first_ledger, -1)
        stored = [run for run in runs.ranges(view, topic_id, txn) if run[0] > begin]
        if stored != _runs(entries):
            self._report(23, label, "its runs do not match its entries")
        elif not lost_runs.is_sound(view, topic_id, txn):
            self._report(23, label, "its gathered runs do not match its runs")
        middle = entries[len(entries) // 2]
        below = sum(entry.messages for entry in entries if entry.at <= middle.at)
        below += runs.messages_through(view, topic_id, txn, begin)
        if runs.messages_through(view, topic_id, txn, middle.at) != below:
            self._report(
                23, label, f"its runs count a different number of messages up to {Position(*middle.at)}"
            )

    def _check_sequences(self, producer: str, ranges: list[tuple[int, int, int]]) -> None:
        """Check that no sequence id is stored or committed twice, and that the used ranges agree with the log."""
        label = f"{self._topic.name} producer {producer}"
        live = [
            (first, last, txn)
            for first, last, txn in ranges
            if not txn or self._txn_states[txn] is not TransactionState.ABORTED
        ]
        counting = sorted((first, last) for first, last, _ in live)
        for (_, last), (first, _) in pairwise(counting):
            if first <= last:
                self._report(20, label, f"sequence id {first} is stored twice")
        self._check_uses(producer)
        used = self._used_ranges(producer)
        if not used:
            # The store keeps no ids of shared producers whose names it has issued.
            if live and not _ISSUED.fullmatch(producer):
                self._report(20, label, "has messages, and none of its sequence ids is among the used ones")
            return
        users = {
            sequence_id: txn if txn and self._txn_states[txn] is TransactionState.OPEN else 0
            for first, last, txn in live
            for sequence_id in (first, last)
        }
        for sequence_id, txn in users.items():
            if not any(first <= sequence_id <= last and user == txn for first, last, user in used):
                self._report(20, label, f"sequence id {sequence_id} is not among the used ids")
        used_count = sum(last - first + 1 for first, last, _ in used)
        stored_count = sum(last - first + 1 for first, last in counting)
        # Ids of trimmed messages stay used.
        if used_count < stored_count or (used_count > stored_count and not self._is_trimmed):
            self._report(23, label, f"{used_count} sequence ids are used; {stored_count} are stored")

    def _check_uses(self, producer: str) -> None:
        """Check that no range was used in a ledger to come: its ids would be kept after their messages."""
        prefix = key1(self._topic.topic_id) + producer.encode("ascii") + b"\0"
        for key, payload in self._view.scan(SEQUENCES, prefix):
            used = UsedRange.decode(payload).used
            if used is not None and used.ledger_id > self._state.ledger_id:
                first = int.from_bytes(key[-8:], "big")
                why = f"was used in ledger {used.ledger_id}, which is still to come"
                self._report(20, f"{self._topic.name} producer {producer}", f"sequence id {first} {why}")

    def _used_ranges(self, producer: str) -> list[tuple[int, int, int]]:
        prefix = key1(self._topic.topic_id) + producer.encode("ascii") + b"\0"
        return [
            (int.from_bytes(key[-8:], "big"), *UsedRange.decode(payload)[:2])
            for key, payload in self._view.scan(SEQUENCES, prefix)
        ]


def _is_same_place(max_read: Position, expected: Position, following: Position | None) -> bool:
    """Whether maxReadPosition is the begin of the ledger of the next message, and its formula the end of the last one.

    So it is where a ledger was closed before the next entry was written.
    """
    return (
        following is not None
        and following.entry_id == 0
        and expected.ledger_id < following.ledger_id
        and max_read == (following.ledger_id, -1)
    )


def _runs(entries: list[LoggedEntry]) -> list[tuple[Position, Position]]:
    """Return the runs of consecutive positions among the entries, each as first and last position."""
    ranges: list[tuple[Position, Position]] = []
    for entry in entries:
        if ranges and ranges[-1][1] == (entry.at[0], entry.at[1] - 1):
            ranges[-1] = (ranges[-1][0], entry.at)
        else:
            ranges.append((entry.at, entry.at))
    return ranges
