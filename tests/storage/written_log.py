"""A topic written within one batch from a list of steps, and beside it the plain list of what was written.

Steps are (what, number): `n` appends a plain batch of so many messages, `a` to `d` append one in a transaction of
that name (begun when first used, anew after its end), `A` to `D` commit it, or abort it where the number is odd.
"""

from __future__ import annotations

from hypothesis import strategies as st

from storage import Store
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics, log, state as topic_head
from storage.topic.catalogue import LedgerLimits
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.txn import uncommitted_entries
from storage.txn.begin import NewTransaction
from storage.values.position import Position

Step = tuple[str, int]

steps = st.lists(st.tuples(st.sampled_from("nabcdABCD"), st.integers(1, 4)), min_size=12, max_size=40)


class Written:
    """One entry as it was written: a marker has no messages."""

    def __init__(self, at: Position, txn: int, count: int) -> None:
        self.at = at
        self.txn = txn
        self.count = count


class WrittenLog:
    """See the module.

    Attributes:
        entries: what was written, in order.
        states: by transaction with messages: OPEN, COMMITTED or ABORTED.
    """

    def __init__(self, store: Store, batch: WriteBatch, limit: int, wanted: list[Step]) -> None:
        self.batch = batch
        self._store = store
        self._owner = store.connection.identity
        self.topic = topics.create(batch, "written", LedgerLimits(entries_max=limit))
        self.topic_id = self.topic.topic_id
        self.entries: list[Written] = []
        self.states: dict[int, str] = {}
        self._names: dict[str, int] = {}
        self.go_on(wanted)

    def go_on(self, wanted: list[Step]) -> None:
        """Write more."""
        for what, number in wanted:
            self._step(what, number)
        self.head = topic_head.load(self.batch, self.topic_id)

    def _step(self, what: str, number: int) -> None:
        if what == "n":
            self._append(0, number)
        elif what.islower():
            if what not in self._names:
                record = self._store.engine.coordinator.begin(
                    self.batch, self._owner, 0, NewTransaction(60_000)
                )
                self._names[what] = record.txn_id
            txn = self._names[what]
            self.states[txn] = "OPEN"
            self._append(txn, number)
        elif what.lower() in self._names:
            txn = self._names.pop(what.lower())
            coordinator = self._store.engine.coordinator
            end = coordinator.abort if number % 2 else coordinator.commit
            end(self.batch, txn, self._owner)
            self.states[txn] = "ABORTED" if number % 2 else "COMMITTED"
            self.entries.append(Written(topic_head.load(self.batch, self.topic_id).last_confirmed, txn, 0))

    def _append(self, txn: int, count: int) -> None:
        topic = OpenTopic.load(self.batch, self.topic_id)
        body = Columns([b"x"] * count).body("p", 0)
        plain = not txn
        position = (
            log.append(topic, MESSAGES, count, 0, body)
            if plain
            else uncommitted_entries.append(topic, txn, count, body)
        )
        self.entries.append(Written(position, txn, count))

    def places(self) -> list[Position]:
        """Every position worth asking for: before each ledger, at each entry."""
        ledgers = {entry.at[0] for entry in self.entries} | {1}
        return sorted({entry.at for entry in self.entries} | {Position(ledger, -1) for ledger in ledgers})

    def state(self, entry: Written) -> str | None:
        return self.states[entry.txn] if entry.txn else None

    def messages(self, after: Position, through: Position, txns: set[int] | None = None) -> int:
        """Messages in (after, through], of these transactions only if they are given."""
        return sum(
            entry.count
            for entry in self.entries
            if after < entry.at <= through and (txns is None or entry.txn in txns)
        )
