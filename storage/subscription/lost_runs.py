"""The runs of a committed transaction that a subscription loses, gathered by span; in steps where they are many.

A subscription that loses a message of a committed transaction loses the rest of the transaction in the same store
transaction. The runs of a transaction whose entries alternate with other entries are a record each, so that reading
them would hold the writer gate the longer the larger the transaction is. They never change any more. So where a
transaction has many runs, they are gathered first, some in a step, one record for each span (TXN_RUNS, top bit of the
ledger set). Records of gathered runs go with the runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from storage.disk.codec import U64_MAX, corrupt, decoded, key2, key4, pack, unpack
from storage.disk.schema import TXN_RUNS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import LOST_RUNS_STEP
from storage.subscription import span
from storage.subscription.ack_spans import AckedMessages
from storage.topic import log, state as states
from storage.txn import runs, uncommitted_entries
from storage.txn.runs import GATHERED, Run
from storage.values.position import Position, as_position

_LAYER_BYTES = span.SPAN_ENTRIES // 8


class GatheredRuns:
    """The entries of runs that lie in one span.

    Attributes:
        first: the first entry of the span.
        entries: sets of entries, as layer 0, by the number of their messages.
        long: runs of more entries than a span has, of which the first entry lies in the span.
        through: the last entry of the latest run, which may lie in a span behind.
    """

    __slots__ = ("entries", "first", "long", "through")

    def __init__(self, first: Position) -> None:
        self.first = first
        self.entries: dict[int, int] = {}
        self.long: list[Run] = []
        self.through = first[1]

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> GatheredRuns:
        """Decode the record stored under `key`.

        Raises:
            CorruptStore
        """
        return decoded(TXN_RUNS, key, payload, partial(cls._of, span.unpack(key[16:])[0]))

    @classmethod
    def _of(cls, first: Position, payload: memoryview) -> GatheredRuns:
        gathered = cls(first)
        gathered.through, sets, long = unpack(payload, 3)
        gathered.entries = {count: int.from_bytes(entries, "big") for count, entries in sets}
        gathered.long = [Run(Position(first[0], begin), last, messages) for begin, last, messages in long]
        return gathered

    def encode(self) -> bytes:
        sets = [
            [count, entries.to_bytes(_LAYER_BYTES, "big")] for count, entries in sorted(self.entries.items())
        ]
        return pack([self.through, sets, [[run.first[1], run.last, run.messages] for run in self.long]])

    @property
    def messages(self) -> int:
        """The number of messages."""
        in_sets = sum(count * entries.bit_count() for count, entries in self.entries.items())
        return in_sets + sum(run.messages for run in self.long)

    def positions(self) -> int:
        """All entries of the sets, as layer 0."""
        every = 0
        for entries in self.entries.values():
            every |= entries
        return every

    def in_span(self) -> AckedMessages:
        """The messages of the entries that a span keeps, with their sizes."""
        messages = sizes = 0
        for count, entries in self.entries.items():
            if span.fits(count):
                every = int.from_bytes(entries.to_bytes(_LAYER_BYTES, "little") * count, "little")
                messages |= every
                sizes |= every ^ entries
        return AckedMessages(messages, sizes)

    def beyond_span(self) -> list[Position]:
        """The entries with too many messages for a span, in order."""
        beyond = 0
        for count, entries in self.entries.items():
            beyond |= 0 if span.fits(count) else entries
        return span.entries(self.first, beyond)


def has_rest(batch: WriteBatch, topic_id: int, txn: int, after: Position) -> bool:
    """Whether `rest` can be asked for; else some more runs were gathered, and another step must come.

    The answer for a transaction with few runs needs no record.
    """
    part = uncommitted_entries.part_of(batch, txn, topic_id)
    if part is None or part.last <= after or 2 * part.entries < LOST_RUNS_STEP:
        return True
    if _has_few(batch, topic_id, txn, after):
        return True
    return _gather_some(batch, topic_id, txn, part.last)


def rest(view: ReadView, topic_id: int, txn: int, after: Position) -> list[GatheredRuns]:
    """The entries of a transaction on a topic behind a position, in the order of spans; see `has_rest`.

    Raises:
        CorruptStore: a run of entries is missing.
    """
    part = uncommitted_entries.part_of(view, txn, topic_id)
    if part is None or part.last <= after:
        return []
    if _gathered_through(view, topic_id, txn) < part.last:
        unread = uncommitted_entries.runs_behind(view, topic_id, txn, after)
        return list(_by_span(view, topic_id, unread).values())
    behind = [_behind(view, topic_id, txn, record, after) for record in _stored(view, topic_id, txn, after)]
    messages = part.messages - runs.messages_through(view, topic_id, txn, after)
    if sum(record.messages for record in behind) != messages:
        raise corrupt(TXN_RUNS, key2(topic_id, txn), f"a run before {part.last} is not gathered")
    return behind


def is_sound(view: ReadView, topic_id: int, txn: int) -> bool:
    """Whether the gathered runs of a transaction are what the runs say: of ledgers that were not trimmed."""
    reached, begin = (
        _gathered_through(view, topic_id, txn),
        Position(states.load(view, topic_id).first_ledger, -1),
    )
    known = {record.first: record.encode() for record in _stored(view, topic_id, txn, begin)}
    if not known:
        return True
    gathered = (run for run in runs.behind(view, topic_id, txn, begin) if (run.first[0], run.last) <= reached)
    return known == {first: record.encode() for first, record in _by_span(view, topic_id, gathered).items()}


def _has_few(view: ReadView, topic_id: int, txn: int, after: Position) -> bool:
    """Whether so few entries, or runs, lie behind a position that one step reads them all."""
    work = 0
    for run in islice(runs.behind(view, topic_id, txn, after), LOST_RUNS_STEP):
        work += _work(run)
        if work >= LOST_RUNS_STEP:
            return False
    return work < LOST_RUNS_STEP


def _work(run: Run) -> int:
    """The entries of a run that are read, and the run itself."""
    entries = run.last - run.first[1] + 1
    return 1 if entries in (1, run.messages) or entries > span.SPAN_ENTRIES else 1 + entries


def _gathered_through(view: ReadView, topic_id: int, txn: int) -> Position:
    """The last entry of a transaction up to which its runs are gathered; if none are, the beginning of the log."""
    newest = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, U64_MAX, U64_MAX))
    if newest is None or not span.unpack(newest[0][16:])[1]:
        return Position(states.load(view, topic_id).first_ledger, -1)
    record = GatheredRuns.decode(*newest)
    return Position(record.first[0], record.through)


def _gather_some(batch: WriteBatch, topic_id: int, txn: int, last: Position) -> bool:
    """Gather the next runs of a transaction; whether all were gathered before."""
    reached = _gathered_through(batch, topic_id, txn)
    if reached >= last:
        return True
    chosen, work = list[Run](), 0
    for run in runs.behind(batch, topic_id, txn, reached):
        chosen.append(run)
        work += _work(run)
        if work >= LOST_RUNS_STEP:
            break
    for first, gathered in _by_span(batch, topic_id, chosen).items():
        key = key4(topic_id, txn, GATHERED + first[0], first[1])
        payload = batch.get(TXN_RUNS, key)
        if payload is not None:
            known = GatheredRuns.decode(key, payload)
            for count, entries in known.entries.items():
                gathered.entries[count] = gathered.entries.get(count, 0) | entries
            gathered.long = known.long + gathered.long
        batch.put(TXN_RUNS, key, gathered.encode())
    return False


def _by_span(view: ReadView, topic_id: int, ordered: Iterable[Run]) -> dict[Position, GatheredRuns]:
    """Gather runs, which are in order."""
    spans: dict[Position, GatheredRuns] = {}

    def of(first: Position, through: int) -> GatheredRuns:
        gathered = spans.get(first) or spans.setdefault(first, GatheredRuns(first))
        gathered.through = max(gathered.through, through)
        return gathered

    for run in ordered:
        (ledger_id, entry), last, messages = run
        number = last - entry + 1
        if number > span.SPAN_ENTRIES:
            of(span.first_of(run.first), last).long.append(run)
        elif number == 1 or number == messages:
            for first, entries in _sets(run):
                _add(of(first, min(last, first[1] + span.SPAN_ENTRIES - 1)), messages // number, entries)
        else:
            for at in log.scan(view, topic_id, Position(ledger_id, entry - 1), Position(ledger_id, last)):
                _add(of(span.first_of(at.position), at.position[1]), at.count, span.bit_of(at.position))
    return spans


def _add(gathered: GatheredRuns, count: int, entries: int) -> None:
    gathered.entries[count] = gathered.entries.get(count, 0) | entries


def _sets(run: Run) -> Iterator[tuple[Position, int]]:
    """The entries of a run, as sets by span."""
    ledger_id, entry = run.first
    while entry <= run.last:
        offset = entry % span.SPAN_ENTRIES
        number = min(run.last - entry + 1, span.SPAN_ENTRIES - offset)
        yield as_position((ledger_id, entry - offset)), ((1 << number) - 1) << offset
        entry += number


def _stored(view: ReadView, topic_id: int, txn: int, after: Position) -> Iterator[GatheredRuns]:
    """Yield the records with entries behind a position."""
    prefix = key2(topic_id, txn)
    start = key4(topic_id, txn, GATHERED + after[0], 0)
    for key, payload in view.scan(TXN_RUNS, prefix, start):
        record = GatheredRuns.decode(key, payload)
        if (record.first[0], record.through) > after:
            yield record


def _behind(view: ReadView, topic_id: int, txn: int, record: GatheredRuns, after: Position) -> GatheredRuns:
    """The part of a record that lies behind a position."""
    if record.first > after:
        return record
    passed = span.through(record.first, after)
    record.entries = {count: left for count, entries in record.entries.items() if (left := entries & ~passed)}
    behind = []
    for run in record.long:
        end = Position(run.first[0], run.last)
        if run.first > after:
            behind.append(run)
        elif end > after:
            through = runs.messages_through(view, topic_id, txn, end)
            left = through - runs.messages_through(view, topic_id, txn, after)
            behind.append(Run(Position(after[0], after[1] + 1), run.last, left))
    record.long = behind
    return record
