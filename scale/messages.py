"""The produced messages, and the counts and checksums that every reader must find, by isolation level."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from zlib import crc32

from storage import Store, Transaction

VALUE_BYTES = 100
_NUMBER_BYTES = 12


@dataclass
class Checksum:
    """Checksum of messages in any order: the number, the sum of their CRC-32s, and the exclusive or of the CRC-32s."""

    count: int = 0
    total: int = 0
    parity: int = 0

    def add(self, values: list[bytes]) -> None:
        self.count += len(values)
        for checksum in map(crc32, values):
            self.total += checksum
            self.parity ^= checksum

    def fields(self) -> dict[str, int]:
        return asdict(self)


class Produced:
    """A filled topic.

    Attributes:
        committed, uncommitted: the checksums for READ_COMMITTED and READ_UNCOMMITTED.
        keys: of committed messages. Some keys appear in aborted messages alone, where a key is used in every hundredth
            batch.
        open: the transaction held open at the end, with messages in and behind the transaction.
    """

    def __init__(self) -> None:
        self.committed = Checksum()
        self.uncommitted = Checksum()
        self.keys: set[bytes] = set()
        self.open: Transaction | None = None

    def fields(self) -> dict[str, dict[str, int]]:
        return {"committed": self.committed.fields(), "uncommitted": self.uncommitted.fields()}


def produce(store: Store, topic: str, messages: int, batch: int) -> Produced:
    """Fill a topic: of ten batches one is in a transaction that commits, one in a transaction that aborts."""
    produced = Produced()
    key_count = max(1, messages // 100)
    store.create_topic(topic, ledger_entries_max=max(20, messages // batch // 8))
    with store.create_producer(topic) as producer:
        for number, first in enumerate(range(0, messages, batch)):
            values = _values(first, min(batch, messages - first))
            keys = [b"k%d" % (index % key_count) for index in range(first, first + len(values))]
            produced.uncommitted.add(values)
            if number % 10 == 9:
                with_abort = store.transaction()
                producer.send_batch(values, keys=keys, txn=with_abort)
                with_abort.flush()
                with_abort.abort()
                continue
            produced.committed.add(values)
            produced.keys.update(keys)
            if number % 10 == 4:
                with store.transaction() as txn:
                    producer.send_batch(values, keys=keys, txn=txn)
            else:
                producer.send_batch(values, keys=keys)
        produced.open = store.transaction(timeout=24 * 3600)
        for end in (produced.open, None):
            values = _values(messages, batch)
            messages += batch
            produced.uncommitted.add(values)
            producer.send_batch(values, txn=end)
    return produced


def _values(first: int, count: int) -> list[bytes]:
    """Return unique messages: a number, and bytes that do not compress."""
    width = VALUE_BYTES - _NUMBER_BYTES
    noise = os.urandom(count * width)
    return [b"%012d" % (first + index) + noise[index * width : (index + 1) * width] for index in range(count)]
