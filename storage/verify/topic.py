"""Checking a topic against its log: invariants 1, 5, 6, 16, 20, 23."""

from __future__ import annotations

from itertools import pairwise

from storage.disk.codec import U64X2, key1
from storage.disk.schema import SEQUENCES
from storage.disk.view import ReadView
from storage.topic import log as managed_ledger
from storage.topic.catalogue import Topic
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER
from storage.topic.state import TopicState
from storage.txn import aborted, buffer, record as records, runs
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.log import Log, LoggedEntry, Report


def check_topic(view: ReadView, topic: Topic, head: TopicState, log: Log, report: Report) -> None:
    """Everything about a topic that its log implies."""
    states = {txn: _state(view, txn, topic, report) for txn in {*log.by_txn, *log.markers}}
    _check_ledgers(view, topic, head, log, report)
    _check_markers(topic, log, states, report)
    _check_max_read(view, topic, head, log, states, report)
    _check_aborted(view, topic, head, log, states, report)
    _check_parts(view, topic, head, log, states, report)
    _check_sequences(view, topic, log, states, report)


def _state(view: ReadView, txn: int, topic: Topic, report: Report) -> TransactionState:
    record = records.find(view, txn)
    if record is None:
        report(16, topic.name, f"messages name transaction {TxnID(txn)}, whose outcome is not kept")
        return TransactionState.ABORTED
    return record.state


def _check_ledgers(view: ReadView, topic: Topic, head: TopicState, log: Log, report: Report) -> None:
    counted: dict[int, tuple[int, int]] = {}
    for entry in log.entries:
        entries, messages = counted.get(entry.at[0], (0, 0))
        counted[entry.at[0]] = (entries + 1, messages + entry.count)
    for ledger in managed_ledger.ledgers(view, topic.topic_id, head):
        has = counted.pop(ledger.ledger_id, (0, 0))
        if has != (ledger.entries, ledger.messages):
            report(23, f"{topic.name} ledger {ledger.ledger_id}", f"records {ledger.entries} entries and "
                   f"{ledger.messages} messages; it has {has[0]} and {has[1]}")  # fmt: skip
    for ledger_id in counted:
        report(5, f"{topic.name} ledger {ledger_id}", "has entries, but no record")


def _check_markers(topic: Topic, log: Log, states: dict[int, TransactionState], report: Report) -> None:
    """One marker of the right kind after the last message of every decided transaction; none of an open one."""
    wanted_kind = {TransactionState.COMMITTED: COMMIT_MARKER, TransactionState.ABORTED: ABORT_MARKER}
    for txn, state in states.items():
        markers, entries = log.markers.get(txn, []), log.by_txn.get(txn, [])
        what = f"{topic.name} transaction {TxnID(txn)}"
        if state is TransactionState.OPEN:
            if markers:
                report(6, what, "is open, and has a marker")
        elif [kind for _, kind in markers] != [wanted_kind[state]]:
            report(6, what, f"is {state.value}, and has {len(markers)} markers, not one of that kind")
        elif entries and markers[0][0] < entries[-1].at:
            report(6, what, "has messages after its marker")


def _check_max_read(
    view: ReadView,
    topic: Topic,
    head: TopicState,
    log: Log,
    states: dict[int, TransactionState],
    report: Report,
) -> None:
    """maxReadPosition by its formula, and the index that gives it."""
    before: dict[tuple[int, int], tuple[int, int]] = {}
    previous: tuple[int, int] | None = None
    for entry in log.entries:
        before[entry.at] = previous if previous is not None else (entry.at[0], -1)
        previous = entry.at
    open_first = sorted(
        (entries[0].at, txn) for txn, entries in log.by_txn.items() if states[txn] is TransactionState.OPEN
    )
    wanted = before[open_first[0][0]] if open_first else head.last_confirmed
    trimmed_away = open_first and open_first[0][0] == (log.entries[0].at if log.entries else None)
    if head.max_read != wanted and not trimmed_away:
        report(
            1,
            topic.name,
            f"maxReadPosition is {head.max_read_position}, its formula gives {Position(*wanted)}",
        )
    indexed = [(tuple(first), txn) for txn, first in buffer.open_transactions(view, topic.topic_id)]
    if indexed != open_first:
        report(1, topic.name, f"the index of open transactions has {len(indexed)}, the log {len(open_first)}")
    uncommitted = sum(entry.count for _, txn in open_first for entry in log.by_txn[txn])
    if (head.open_txns, head.uncommitted) != (len(open_first), uncommitted):
        report(23, topic.name, f"counts {head.open_txns} open transactions with {head.uncommitted} messages; "
                               f"there are {len(open_first)} with {uncommitted}")  # fmt: skip


def _check_aborted(
    view: ReadView,
    topic: Topic,
    head: TopicState,
    log: Log,
    states: dict[int, TransactionState],
    report: Report,
) -> None:
    """The aborted set is what the log and the records say."""
    wanted = {
        (txn, *entries[0].at, *entries[-1].at, sum(entry.count for entry in entries))
        for txn, entries in log.by_txn.items()
        if states[txn] is TransactionState.ABORTED
    }
    has = aborted.rows(view, topic.topic_id)
    if len(has) != len(set(has)) or set(has) != wanted:
        report(2, topic.name, f"the aborted set has {len(has)} transactions; the log has {len(wanted)}")
    sums = (len(has), sum(row[5] for row in has))
    if sums != (head.aborted_txns, head.aborted_messages):
        report(23, topic.name, f"counts {head.aborted_txns} aborted transactions; the set has {sums[0]}")
    for segment in aborted.segments(view, topic.topic_id):
        if segment.transactions == 0:
            report(23, topic.name, f"segment {segment.segment} of the aborted set is empty")


def _check_parts(
    view: ReadView,
    topic: Topic,
    head: TopicState,
    log: Log,
    states: dict[int, TransactionState],
    report: Report,
) -> None:
    """Each transaction's part on the topic, and its runs, agree with the log."""
    for txn, entries in log.by_txn.items():
        what = f"{topic.name} transaction {TxnID(txn)}"
        part = buffer.part_of(view, txn, topic.topic_id)
        if part is None:
            report(6, what, "has messages, but no part")
            continue
        if states[txn] is TransactionState.OPEN and part.epoch != head.epoch:
            report(10, what, f"is open under epoch {part.epoch}; the topic has {head.epoch}")
        counted = (entries[0].at, entries[-1].at, len(entries), sum(entry.count for entry in entries))
        if (part.first, part.last, part.entries, part.messages) != counted:
            report(
                23,
                what,
                f"its part says {part.entries} entries, {part.messages} messages; the log {counted[2:]}",
            )
        if [(tuple(a), tuple(b)) for a, b in runs.ranges(view, topic.topic_id, txn)] != _runs(entries):
            report(23, what, "its runs are not where its entries are")
        middle = entries[len(entries) // 2]
        below = sum(entry.count for entry in entries if entry.at <= middle.at)
        if runs.messages_through(view, topic.topic_id, txn, middle.at) != below:
            report(23, what, f"its runs count another number of messages up to {Position(*middle.at)}")


def _runs(entries: list[LoggedEntry]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for entry in entries:
        if found and found[-1][1] == (entry.at[0], entry.at[1] - 1):
            found[-1] = (found[-1][0], entry.at)
        else:
            found.append((entry.at, entry.at))
    return found


def _check_sequences(
    view: ReadView, topic: Topic, log: Log, states: dict[int, TransactionState], report: Report
) -> None:
    """No sequence id is stored plain or committed twice; the used ranges are those of the log."""
    for producer, ranges in log.sequences.items():
        counting = sorted(
            (first, last)
            for first, last, txn in ranges
            if not txn or states[txn] is not TransactionState.ABORTED
        )
        for (_, last), (first, _) in pairwise(counting):
            if first <= last:
                report(20, f"{topic.name} producer {producer}", f"sequence id {first} is stored twice")
        has = _used(view, topic.topic_id, producer)
        if not has:
            continue  # a producer that was given its name by the store is not deduplicated
        wanted = {
            each: txn if txn and states[txn] is TransactionState.OPEN else 0
            for first, last, txn in ranges
            if not txn or states[txn] is not TransactionState.ABORTED
            for each in (first, last)
        }
        for each, txn in wanted.items():
            if not any(first <= each <= last and owner == txn for first, last, owner in has):
                report(
                    20, f"{topic.name} producer {producer}", f"sequence id {each} is not among the used ones"
                )
        used = sum(last - first + 1 for first, last, _ in has)
        stored = sum(last - first + 1 for first, last in counting)
        if used != stored:
            report(
                23, f"{topic.name} producer {producer}", f"{used} sequence ids are used; {stored} are stored"
            )


def _used(view: ReadView, topic_id: int, producer: str) -> list[tuple[int, int, int]]:
    prefix = key1(topic_id) + producer.encode("ascii") + b"\0"
    return [
        (int.from_bytes(key[-8:], "big"), *U64X2.unpack(payload)) for key, payload in view.scan(SEQUENCES, prefix)
    ]  # fmt: skip
