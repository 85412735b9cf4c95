r"""`python -m benchmarks.server --url URL`: a store on a server beside PostgreSQL's own commits.

URL names a store that does not exist yet; the run makes and removes the store, with a second schema for the work by
hand. Both sides use the same calls of libpq in one process, and take turns within one run, so that a slow phase of the
server slows both. Rows:

    one        a single durable `send`, beside a prepared INSERT of one row with its commit
    batch      100, 1,000 and 10,000 messages a commit, beside one INSERT of as many rows; 10,000 also beside the goal
    consume    receive and acknowledge 1,000 messages, beside DELETE ... FOR UPDATE SKIP LOCKED RETURNING
    bystander  a single `send`, and one with receive and acknowledge, while another session holds a snapshot, beside
               the same without it

Run it on the server's own machine over a socket for the figures of docs/SCALE.md, with nothing else running:

    python -m benchmarks.server --url 'postgresql://postgres@/postgres?host=/var/run/postgresql&store=bench' \
        --bystander 600 --json server.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from benchmarks import machine
from benchmarks.bursts import Sample, interleave
from benchmarks.contract import Sense, Target
from benchmarks.engine import Engine
from benchmarks.options import add_names, all_known
from benchmarks.payload import Payload
from benchmarks.peers.postgres_table import Bystander, PostgresTable, remove_store
from benchmarks.report import Comparison, compare, save, table_lines
from storage import SubscriptionType
from storage.disk.postgres.url import StoreUrl
from storage.errors import TxnctlError

BY_HAND = "PostgreSQL by hand"
ONE = Target("one", "durable send, 1 message a commit", "prepared INSERT + COMMIT", Sense.SPEED, 0.4, None)
BATCHES = (
    Target("batch", "100 messages a commit", "one INSERT of 100 rows", Sense.SPEED, None, None),
    Target("batch", "1,000 messages a commit", "one INSERT of 1,000 rows", Sense.SPEED, None, None),
    Target("batch", "10,000 messages a commit", "one INSERT of 10,000 rows", Sense.SPEED, None, None),
)
RATE = Target("batch", "10,000 messages a commit", "100,000 messages a second", Sense.SPEED, 1.0, None)
CONSUME = Target(
    "consume", "receive + acknowledge 1,000", "DELETE ... SKIP LOCKED RETURNING", Sense.SPEED, 0.5, None
)
HELD = Target("bystander", "durable send under a held snapshot", "without it", Sense.TIME, 2.0, None)
HELD_CONSUME = Target(
    "bystander", "send, receive + acknowledge under a held snapshot", "without it", Sense.TIME, 2.0, None
)
HELD_BY_HAND = Target(
    "bystander", "INSERT + COMMIT under a held snapshot", "without it", Sense.TIME, None, None
)

_SIZES = (100, 1000, 10_000)
_TAKEN = 1000
_RATE = 100_000
_LAST_SHARE = 0.2
"""Of the time under a held snapshot, the last part is judged: whatever grows has grown by then."""


class Server:
    """The two sides of a run.

    Attributes:
        sides: both queues, ours first.
        rounds: turns of each side.
        bystander_s: how long a snapshot is held.
    """

    def __init__(self, url: str, rounds: int, bystander_s: float, stack: ExitStack) -> None:
        self.url = StoreUrl.parse(url)
        self.rounds = rounds
        self.bystander_s = bystander_s
        self.peer = PostgresTable(self.url)
        stack.callback(self.peer.close)
        # Commits of both sides wait for a standby, or those of neither do.
        has_standby = bool(self.peer.settings()["synchronous_standby_names"])
        self.ours = Engine(url, "replicated" if has_standby else "local")
        stack.callback(remove_store, self.url)
        stack.callback(self.ours.close)

    def in_turns(
        self, ours: Callable[[], object], peer: Callable[[], object], *, burst: int, rounds: int
    ) -> tuple[Sample, Sample]:
        samples = interleave({"ours": ours, BY_HAND: peer}, rounds=rounds, burst=burst, warmup=2)
        return samples["ours"], samples[BY_HAND]


def one(server: Server) -> Iterator[Comparison]:
    """Single messages."""
    payload = Payload(1)
    yield compare(
        ONE,
        *server.in_turns(
            lambda: server.ours.append(payload.batch()),
            lambda: server.peer.append(payload.batch()),
            burst=50,
            rounds=server.rounds,
        ),
    )


def batch(server: Server) -> Iterator[Comparison]:
    """Batches of three sizes."""
    for size, target in zip(_SIZES, BATCHES, strict=True):
        payload = Payload(size)
        ours, peer = server.in_turns(
            lambda payload=payload: server.ours.append(payload.batch()),  # type: ignore[misc]
            lambda payload=payload: server.peer.append(payload.batch()),  # type: ignore[misc]
            burst=max(1, 1000 // size),
            rounds=server.rounds,
        )
        yield compare(target, ours, peer)
        if size == _SIZES[-1]:
            yield Comparison(RATE, ours.p50, size / _RATE, {"ours": ours.figures()})


def consume(server: Server) -> Iterator[Comparison]:
    """Receive and acknowledge; both sides are filled first, in batches of the same size."""
    payload = Payload(_TAKEN)
    for _ in range(server.rounds * 2 + 4):
        values = payload.batch()
        server.ours.append(values)
        server.peer.append(values)
    yield compare(
        CONSUME,
        *server.in_turns(
            lambda: server.ours.take(_TAKEN), lambda: server.peer.take(_TAKEN), burst=2, rounds=server.rounds
        ),
    )


def bystander(server: Server) -> Iterator[Comparison]:
    """Single messages before, and at the end of, a long held snapshot: sent, and sent and received."""
    payload, store = Payload(1), server.ours.store
    store.create_topic("passed")
    producer = store.create_producer("passed")
    consumer = store.subscribe("passed", "bench", subscription_type=SubscriptionType.SHARED)

    def pass_one() -> None:
        producer.send(payload.batch()[0])
        consumer.acknowledge(consumer.receive(timeout=10))

    def turns(rounds: int) -> dict[str, Sample]:
        work = {
            "send": lambda: server.ours.append(payload.batch()), "pass": pass_one,
            BY_HAND: lambda: server.peer.append(payload.batch()),
        }  # fmt: skip
        return interleave(work, rounds=rounds, burst=50, warmup=2)

    before = turns(server.rounds)
    held = Bystander(server.url)
    try:
        began = perf_counter()
        while perf_counter() - began < server.bystander_s * (1 - _LAST_SHARE):
            turns(1)
        under = {name: Sample() for name in before}
        while not under["send"].times or perf_counter() - began < server.bystander_s:
            for name, more in turns(1).items():
                under[name].times += more.times
    finally:
        held.close()
    consumer.close()
    producer.close()
    for name, target in (("send", HELD), ("pass", HELD_CONSUME), (BY_HAND, HELD_BY_HAND)):
        yield compare(target, under[name], before[name])


ROWS: dict[str, Callable[[Server], Iterator[Comparison]]] = {
    "one": one,
    "batch": batch,
    "consume": consume,
    "bystander": bystander,
}


def measure(server: Server, names: Sequence[str]) -> Iterator[Comparison]:
    """Measure the rows, in order."""
    for name in names or ROWS:
        yield from ROWS[name](server)


def main(words: list[str] | None = None) -> int:
    """Measure; return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__.split("\n")[0])
    add_names(parser, "row")
    parser.add_argument(
        "--url", required=True, help="a store that does not exist: postgresql://...&store=bench"
    )
    parser.add_argument(
        "--rounds", type=int, default=20, metavar="N", help="turns of each side (default: 20)"
    )
    parser.add_argument(
        "--bystander", type=float, default=60.0, metavar="S", help="seconds a snapshot is held (default: 60)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    arguments = parser.parse_args(words)
    if not all_known("row", arguments.names, list(ROWS)):
        return 2
    try:
        with ExitStack() as stack:
            server = Server(arguments.url, arguments.rounds, arguments.bystander, stack)
            settings = server.peer.settings()
            print(", ".join(f"{name} {value or '(empty)'}" for name, value in settings.items()), flush=True)
            comparisons = list(measure(server, arguments.names))
    except TxnctlError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    for line in table_lines(comparisons):
        print(line)
    if arguments.json is not None:
        rows = [comparison.document() for comparison in comparisons]
        facts = machine.describe(Path("/var/tmp"))
        save(arguments.json, {"machine": facts, "server": settings, "rows": rows})
    return int(any(comparison.reached == "NO" for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
