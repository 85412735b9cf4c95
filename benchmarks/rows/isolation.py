"""I1, I2: the cost of aborted and open transactions for readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC, scan
from benchmarks.payload import Payload
from benchmarks.prepared import prepared
from benchmarks.report import Comparison, compare
from storage import EARLIEST, LATEST, IsolationLevel, Position, Producer, Store
from storage.values.position import Extreme
from tests.row_json import row_json

_BATCH = 1000
_FEW_OPEN = 10
_LOOKS = 100
_TIMEOUT_S = 24 * 3600.0

# One aborted transaction in so many has a message before and a message behind the batches, so that every segment of
# the aborted set spans the batches, however the engine divides the set.
_STRADDLE = 100


def scan_past_aborted(bench: Bench) -> Iterator[Comparison]:
    """I1. The peer scans plain batches at READ_UNCOMMITTED, without any filter, in a topic without transactions.

    Many: READ_COMMITTED over the same batches, each checked against all aborted transactions. In the topic the aborted
    messages stand before the batches and their markers behind. Half: as many batches, but every second one was aborted.
    Through: READ_COMMITTED from the topic's start, past the aborted messages too.
    """
    many_target, half_target, through_target = targets_of("I1")
    batches, aborted = bench.sizes.scan_batches, bench.sizes.aborted_transactions
    committed, uncommitted = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    with ExitStack() as opened:
        plain = opened.enter_context(prepared(bench, lambda store: _fill_many_aborted(store, batches, 0)))
        many = opened.enter_context(
            prepared(bench, lambda store: _fill_many_aborted(store, batches, aborted))
        )
        half = opened.enter_context(prepared(bench, lambda store: _fill_half_aborted(store, batches)))
        first = _first_batch(many)
        samples = interleave(
            {
                "plain": _scan(plain, uncommitted, EARLIEST, batches * _BATCH),
                "many": _scan(many, committed, first, batches * _BATCH),
                "half": _scan(half, committed, EARLIEST, batches // 2 * _BATCH),
                "through": _scan(many, committed, EARLIEST, batches * _BATCH),
            },
            rounds=bench.sizes.scan_rounds,
        )
    yield compare(many_target, samples["many"], samples["plain"])
    yield compare(half_target, samples["half"], samples["plain"])
    yield compare(through_target, samples["through"], samples["plain"])


def max_read_position(bench: Bench) -> Iterator[Comparison]:
    """I2. Read as every delivery reads the position, and as an operator does."""
    position_target, stats = targets_of("I2")
    with ExitStack() as opened:
        few = opened.enter_context(prepared(bench, lambda store: _fill_open(store, _FEW_OPEN)))
        many = opened.enter_context(
            prepared(bench, lambda store: _fill_open(store, bench.sizes.open_transactions))
        )
        samples = interleave(
            {
                "few": _look(few),
                "many": _look(many),
                "few, stats": lambda: row_json(few.reports.topic_stats(TOPIC)),
                "many, stats": lambda: row_json(many.reports.topic_stats(TOPIC)),
            },
            rounds=bench.sizes.commit_rounds,
            burst=5,
        )
    yield compare(position_target, samples["many"], samples["few"])
    yield compare(stats, samples["many, stats"], samples["few, stats"])


def _fill_many_aborted(store: Store, batches: int, aborted: int) -> None:
    payload = Payload(_BATCH)
    with store.create_producer(TOPIC) as producer:
        opened = [store.begin_transaction(timeout=_TIMEOUT_S) for _ in range(aborted)]
        for transaction in opened:
            producer.send(b"before", txn=transaction)
        for _ in range(batches):
            producer.send_batch(payload.batch())
        for transaction in opened[::_STRADDLE]:
            producer.send(b"behind", txn=transaction)
    for transaction in opened:
        store.admin.transactions.abort_transaction(transaction)


def _fill_half_aborted(store: Store, batches: int) -> None:
    payload = Payload(_BATCH)
    with store.create_producer(TOPIC) as producer:
        for _ in range(batches // 2):
            producer.send_batch(payload.batch())
            _send_and_abort(store, producer, payload.batch())


def _send_and_abort(store: Store, producer: Producer, values: list[bytes]) -> None:
    transaction = store.begin_transaction(timeout=_TIMEOUT_S)
    producer.send_batch(list(values), txn=transaction)
    store.admin.transactions.abort_transaction(transaction)


def _fill_open(store: Store, count: int) -> None:
    payload = Payload(_BATCH)
    with store.create_producer(TOPIC) as producer:
        producer.send_batch(payload.batch())
        for _ in range(count):
            producer.send(b"open", txn=store.begin_transaction(timeout=_TIMEOUT_S))


def _first_batch(store: Store) -> Position:
    """Return the position of the first plain message."""
    with store.reader(TOPIC, isolation_level=IsolationLevel.READ_COMMITTED) as reader:
        return next(entry.position for entry in reader.entries())


def _scan(store: Store, level: IsolationLevel, start: Position | Extreme, count: int) -> Operation:
    def run() -> None:
        messages = scan(store, TOPIC, level, start, count)
        assert messages == count, f"{messages} messages instead of {count}"

    return run


def _look(store: Store) -> Operation:
    """Ask a reader at the end for more messages: compares its position with maxReadPosition."""
    reader = store.reader(TOPIC, start=LATEST)

    def run() -> None:
        for _ in range(_LOOKS):
            assert not reader.has_message_available()

    return run
