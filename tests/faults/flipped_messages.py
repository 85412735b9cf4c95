"""The share of acknowledged messages that one flipped bit costs: `python -m tests.faults.flipped_messages [FLIPS] [SEED]`.

Each flip has a copy of a store with acknowledged messages. All of them are read, one entry after the other, beyond an
entry that is damaged: a message is right, refused as damage, wrong, or missing without a word.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from typing import Final

from storage import Position, Store
from storage.errors import CorruptStore, TxnctlError
from tests.processes.damage import Flip, in_child

MESSAGES: Final = 5_000
_TOPIC: Final = "orders"


def _value(number: int) -> bytes:
    return b"message %06d " % number + b"x" * (number % 200)


def build(path: str) -> list[tuple[Position, range]]:
    """Build a store of MESSAGES messages, each acknowledged to its sender; its entries, each with its messages."""
    entries = []
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic(_TOPIC)
        with store.create_producer(_TOPIC) as producer:
            for first in range(0, MESSAGES, 50):
                receipt = producer.send_batch([_value(number) for number in range(first, first + 25)])
                entries.append((next(iter(receipt)).position, range(first, first + 25)))
                entries += [
                    (producer.send(_value(number)).position, range(number, number + 1))
                    for number in range(first + 25, first + 50)
                ]
    with Store.open(path) as store:
        store.maintenance.compact_store()
    return entries


def read_all(path: str, entries: list[tuple[Position, range]]) -> Counter[str]:
    """Read every message, beyond those that are refused; count right, refused, wrong and missing ones."""
    counts, at = Counter[str](), 0
    try:
        with Store.open(path, read_only=True) as store:
            while at < len(entries):
                at = _read_from(store, entries, at, counts)
    except TxnctlError:
        counts["refused"] += sum(len(numbers) for _, numbers in entries[at:])
    return counts


def _read_from(store: Store, entries: list[tuple[Position, range]], at: int, counts: Counter[str]) -> int:
    """Read from an entry on up to the end or to a refusal; the index of the entry to go on from."""
    try:
        for message in store.reader(_TOPIC, start=entries[at][0]):
            while at < len(entries) and entries[at][0] < message.message_id.position:
                counts["missing"] += len(entries[at][1])
                at += 1
            position, numbers = entries[at]
            number = numbers[max(0, message.message_id.batch_index)]
            is_right = message.message_id.position == position and message.value == _value(number)
            counts["right" if is_right else "wrong"] += 1
            at += number == numbers[-1]
    except CorruptStore:
        counts["refused"] += len(entries[at][1])
        return at + 1
    counts["missing"] += sum(len(numbers) for _, numbers in entries[at:])
    return len(entries)


def main(flips: int = 2_000, seed: int = 1) -> int:
    """Flip bits, one a copy; print the shares, and return the number of flips with wrong or missing messages."""
    chance, sums, worst, bad, untouched = random.Random(seed), Counter[str](), 0, 0, 0
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        path = os.path.join(directory, "store")
        entries = build(path)
        data = os.path.join(path, "data.mdb")
        size = os.path.getsize(data)
        for _ in range(flips):
            flip = Flip(chance.randrange(size), chance.randrange(8))
            flip.apply(data)
            status, counts = in_child(lambda: read_all(path, entries))
            flip.apply(data)
            counts = counts if status == 0 else Counter(refused=MESSAGES, died=1)
            sums += counts
            worst = max(worst, counts["refused"])
            untouched += counts["right"] == MESSAGES
            if counts["wrong"] or counts["missing"]:
                bad += 1
                print(f"{flip}: {dict(counts)}", flush=True)
    read = flips * MESSAGES
    shares = {name: f"{100 * sums[name] / read:.3f} %" for name in ("right", "refused", "wrong", "missing")}
    print(f"{flips} single flipped bits in {size} bytes with {MESSAGES} acknowledged messages, seed {seed}:")
    print(
        f"messages {shares}; died {sums['died']} times; {untouched} flips cost nothing, the worst {worst} messages"
    )
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
