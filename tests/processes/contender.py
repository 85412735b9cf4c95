"""A process of the takeover test: it wants a topic again and again, in every way there is, and notes what it is told.

    python -m tests.processes.contender STORE JOURNAL SEED

A turn is one connection: asked for in some access mode, attached or leased, with messages plain and in transactions,
and ended by a close, by a death (its handle on the store goes, and with it the kernel lock), by an expired lease, or
by whoever takes the topic over. The test kills and stops the whole process besides. What stands in the journal is
told by `takeover_log`.
"""

from __future__ import annotations

import random
import sys

from storage import Producer, Store, Transaction, TxnctlError
from storage.errors import (
    ProducerBusy,
    ProducerFenced,
    SessionNotFound,
    TransactionNotOpen,
    TransactionTimedOut,
    WaitTimeout,
    WriterBusy,
)
from tests.processes.journal import Journal
from tests.processes.parent import has_let_go, say
from tests.row_json import row_json
from tests.waiting import moment_of_chance

TOPIC, SIDE = "throne", "side"
MODES = ["Shared"] * 3 + ["Exclusive"] * 3 + ["WaitForExclusive"] * 8 + ["ExclusiveWithFencing"]
LOST = (ProducerFenced, SessionNotFound)
OVER = (TransactionNotOpen, TransactionTimedOut)


class Contender:
    """One process of them."""

    def __init__(self, path: str, journal: Journal, name: str, chance: random.Random) -> None:
        self.path = path
        self.journal = journal
        self.name = name
        self.chance = chance
        self.store = self.open()
        self.side = self.store.create_producer(SIDE)

    def open(self) -> Store:
        return Store.open(self.path, lock_timeout=120)

    def note(self, kind: str, **fields: object) -> None:
        self.journal.note("is", kind, **fields)

    def turn(self) -> None:
        """Ask for the topic, use it, lose it or leave it."""
        mode, handle = self.chance.choice(MODES), self.open()
        spared = self.sent_before(handle) if mode != "Shared" and self.chance.random() < 0.3 else None
        try:
            if self.chance.random() < 0.2:
                self.by_lease(handle, mode, spared)
            else:
                self.attached(handle, mode, spared)
        except ProducerBusy:
            self.note("busy", mode=mode)
            self.pause(0.02)
        except WaitTimeout:
            self.note("timeout", mode=mode)
        except WriterBusy:
            # Who waits for a moment only has little patience at the gate, and a holder may be stopped.
            self.note("gate busy", mode=mode)
        except LOST:
            self.note("fenced waiter", mode=mode)
        except OVER:
            self.note("nothing to spare", mode=mode)
        finally:
            handle.close()

    def pause(self, seconds: float) -> None:
        """Let others come by."""
        moment_of_chance(self.chance, 0, seconds)

    def ask(self, mode: str, spared: Transaction | None) -> dict[str, object]:
        """How to ask."""
        how: dict[str, object] = {"access_mode": mode}
        if self.chance.random() < 0.3:
            how["producer_name"] = self.name
        if mode == "WaitForExclusive" and self.chance.random() < 0.3:
            how["timeout"] = self.chance.uniform(0, 0.5)
        if spared is not None:
            how["txn"] = spared
        return how

    def attached(self, handle: Store, mode: str, spared: Transaction | None) -> None:
        """A producer that is connected as long as its handle is open."""
        producer = handle.create_producer(TOPIC, **self.ask(mode, spared))
        self.connected(mode, session_of(producer), epoch_of(producer), spared)
        self.produce(producer, handle, mode, spared)
        end = self.chance.random()
        if end < 0.5:
            producer.close()
        elif end < 0.8:
            handle.close()
            self.come_back(producer, mode)

    def come_back(self, producer: Producer, mode: str) -> None:
        """Its connection was lost, for the others it died; it goes on if nobody was quicker."""
        if mode == "Shared":
            return
        self.pause(0.01)
        with self.open() as handle:
            again = handle.create_producer(TOPIC, access_mode=mode, resume=producer.session, timeout=0.2)
            self.note("resumed", mode=mode, session=session_of(again), epoch=epoch_of(again))
            self.produce(again, handle, mode, None)

    def by_lease(self, handle: Store, mode: str, spared: Transaction | None) -> None:
        """A session as shell commands have it: published through by one handle after the other, and it may expire."""
        row = row_json(
            handle.open_session(TOPIC, lease=self.chance.choice([0.02, 0.1, 5]), **self.ask(mode, spared))
        )
        epoch = -1 if row["epoch"] is None else row["epoch"]
        self.connected(mode, row["sessionId"], epoch, spared)
        for _ in range(self.chance.randint(1, 3)):
            try:
                self.produce(handle.session_producer(TOPIC, row["session"]), handle, mode, spared)
                spared = None
            except ProducerBusy:
                break
            except LOST:
                self.note("lost lease", mode=mode)
                return
            self.pause(0.05)
        try:
            handle.admin.producers.close_session(row["session"])
        except LOST:
            self.note("lost lease", mode=mode)

    def connected(self, mode: str, session: int, epoch: int, spared: Transaction | None) -> None:
        spares = None if spared is None else str(spared.id)
        self.note("connected", mode=mode, session=session, epoch=epoch, spares=spares)

    def sent_before(self, handle: Store) -> Transaction | None:
        """A transaction with a message of a Shared producer, which is to be spared by taking the topic over."""
        txn = handle.transaction(timeout=60)
        try:
            with handle.create_producer(TOPIC) as producer:
                self.send(producer, "Shared", txn)
        except (ProducerBusy, *LOST):
            txn.abort()
            return None
        except OVER:
            return None
        return txn

    def produce(self, producer: Producer, handle: Store, mode: str, spared: Transaction | None) -> None:
        """A few messages, plain ones and some in a transaction that also writes to another topic."""
        for _ in range(self.chance.randint(0, 2)):
            self.send(producer, mode, None)
        if spared is not None or self.chance.random() < 0.5:
            self.transact(producer, handle, mode, spared)

    def transact(self, producer: Producer, handle: Store, mode: str, spared: Transaction | None) -> None:
        txn = spared or handle.transaction(timeout=60)
        try:
            for _ in range(self.chance.randint(1, 2)):
                self.send(producer, mode, txn)
            value = f"side:{self.name}:{len(self.journal.lines)}"
            self.note("side", value=value, txn=str(txn.id))
            self.side.send(value.encode(), txn=txn)
            self.pause(0.01)
            fate = self.chance.random()
            if fate < 0.7:
                self.note("commits", txn=str(txn.id))
                txn.commit()
                self.note("committed", txn=str(txn.id))
            elif fate < 0.9:
                txn.abort()
        except OVER:
            self.note("over", txn=str(txn.id))

    def send(self, producer: Producer, mode: str, txn: Transaction | None) -> None:
        """One message, noted before and after; who is fenced tries again, which must not help."""
        value = f"{self.name}:{len(self.journal.lines)}"
        in_txn = str(txn.id) if txn else None
        self.note("sends", value=value, mode=mode, epoch=epoch_of(producer), txn=in_txn)
        try:
            producer.send(value.encode(), txn=txn)
        except ProducerFenced:
            self.note(
                "fenced", value=value, session=session_of(producer), epoch=epoch_of(producer), txn=in_txn
            )
            try:
                producer.send(f"again {value}".encode())
            except LOST:
                raise
            self.note("fenced no more", value=value)
        self.note("sent", value=value, txn=in_txn)


def session_of(producer: Producer) -> int:
    """The number of its session: they grow in the order of asking."""
    assert producer.session is not None
    return int(producer.session.split("-")[-2])


def epoch_of(producer: Producer) -> int:
    return -1 if producer.topic_epoch is None else producer.topic_epoch


def main(path: str, journal: str, seed: str) -> None:
    """See the module."""
    name = journal.rpartition("/")[2]
    contender = Contender(path, Journal(journal), name, random.Random(seed))
    contender.note("started")
    say("started")
    while not has_let_go():
        contender.turn()
    contender.note("ended")
    contender.store.close()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TxnctlError as error:
        sys.exit(f"{type(error).__name__}: {error}\n{error.hint}")
