"""A group is invisible to its thread: a program in groups does what it does one by one.

The same program, drawn at random, runs in two stores whose clocks stand still alike: in one with groups, in the other
without. Every call has the same result or error, every end the same outcome, and the stores hold the same in the end.
The long form:

    MODEL_EXAMPLES=2000 python -m pytest tests/storage/test_group_model.py --timeout=0
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, settings, strategies as st

from storage import IsolationLevel, Transaction
from storage.client.group import EndGroup
from storage.errors import GroupRefused, TxnctlError
from tests.model_runs import examples
from tests.storage.modelled_store import ModelledStore

SLOTS, KEYS, IDS = 3, 3, 4

slot_or_none = st.sampled_from([-1, -1, *range(SLOTS)])
id_or_none = st.sampled_from([-1, -1, -1, *range(IDS)])
step = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("put"), st.integers(0, SLOTS - 1), st.integers(0, KEYS - 1)),
    st.tuples(st.just("get"), st.integers(0, SLOTS - 1), st.integers(0, KEYS - 1)),
    st.tuples(st.just("scan"), st.integers(0, SLOTS - 1)),
    *[st.tuples(st.just("send"), slot_or_none, id_or_none)] * 5,
    st.tuples(st.just("plain_get"), st.integers(0, KEYS - 1)),
    *[st.tuples(st.just("commit"), st.integers(0, SLOTS - 1))] * 4,
    st.tuples(st.just("abort"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("number_of"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("state"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("read")),
    st.tuples(st.just("fence"), st.integers(0, 9)),
    st.tuples(st.just("toggle")),
    st.tuples(st.just("flush")),
)


class Run(ModelledStore):
    """One run of a program.

    Attributes:
        results: what each call returned, or the name of its error.
        outcomes: of each end, in order: the name of its error, or None.
    """

    def __init__(self, groups: bool) -> None:
        super().__init__()
        self.store.create_topic("t")
        self.store.create_table("a")
        self.table = self.store.table("a")
        self.producer = self.store.create_producer("t", producer_name="p")
        self.plain = self.store.create_producer("t")
        self.groups = groups
        self.group: EndGroup | None = None
        self.slots: list[Transaction | None] = [None] * SLOTS
        self.results: list[object] = []
        self.outcomes: list[str | None] = []
        self.number = 0
        self.is_fenced = False

    def run(self, program: list[tuple[Any, ...]]) -> None:
        for name, *arguments in program:
            self.number += 1
            self.clock.advance(0.001)
            self.results.append(self.tried(name, arguments))
        self.leave()

    def tried(self, name: str, arguments: list[Any]) -> object:
        action: Callable[..., object] = getattr(self, name)
        try:
            return action(*arguments)
        except TxnctlError as error:
            return type(error).__name__

    def end(self, call: Callable[[], object]) -> None:
        """Note the outcome of a commit or send: now, or where its group tells."""
        if self.group is not None:
            call()
            if self.is_fenced:  # A producer fails at once when it knows of its fencing: at the flush.
                self.group.flush()
            return
        try:
            call()
            self.outcomes.append(None)
        except TxnctlError as error:
            self.outcomes.append(type(error).__name__)

    def txn(self, slot: int) -> Transaction:
        txn = self.slots[slot]
        if txn is None:
            txn = self.slots[slot] = self.store.transaction()
        return txn

    def begin(self, slot: int) -> None:
        if self.slots[slot] is None:
            self.txn(slot)

    def put(self, slot: int, key: int) -> None:
        self.table.put(b"%d" % key, b"%d" % self.number, txn=self.txn(slot))

    def get(self, slot: int, key: int) -> object:
        return self.table.get(b"%d" % key, txn=self.txn(slot))

    def scan(self, slot: int) -> object:
        return [(row.key, row.value) for row in self.table.scan(txn=self.txn(slot))]

    def plain_get(self, key: int) -> object:
        return self.table.get(b"%d" % key)

    def send(self, slot: int, sequence_id: int) -> None:
        producer = self.plain if sequence_id < 0 else self.producer
        number = None if sequence_id < 0 else sequence_id
        value = b"%d" % self.number
        if slot >= 0:
            producer.send(value, sequence_id=number, txn=self.txn(slot))
        else:
            self.end(lambda: producer.send(value, sequence_id=number))

    def commit(self, slot: int) -> None:
        txn, self.slots[slot] = self.txn(slot), None
        if self.is_end(txn):
            self.end(txn.commit)
        else:
            txn.commit()

    def is_end(self, txn: Transaction) -> bool:
        """Whether a commit has something to write, and no failure to raise: such a one comes back at once."""
        work: Any = txn.work
        return work._write_behind.failure is None and not (work._buffers.is_empty and not work.txn_id)

    def abort(self, slot: int) -> None:
        txn, self.slots[slot] = self.txn(slot), None
        txn.abort()

    def number_of(self, slot: int) -> None:
        self.txn(slot).id  # noqa: B018

    def state(self, slot: int) -> object:
        return self.txn(slot).state

    def read(self) -> object:
        return [message.value for message in self.store.reader("t")]

    def fence(self, chance: int) -> None:
        if chance:
            return
        self.store.admin.producers.fence_producers("t")
        self.is_fenced = True

    def leave(self) -> None:
        group, self.group = self.group, None
        if group is None:
            return
        with suppress(GroupRefused):
            group.__exit__(None, None, None)
        refused = {end.place: type(end.error).__name__ for end in group.refused}
        self.outcomes += [refused.get(place) for place in range(group.durable + len(refused))]

    def toggle(self) -> None:
        """Leave the group, or enter one."""
        was_open = self.group is not None
        self.leave()
        if self.groups and not was_open:
            self.group = self.store.group().__enter__()

    def flush(self) -> None:
        if self.group is not None:
            self.group.flush()

    def content(self) -> object:
        """What the store holds."""
        level = IsolationLevel.READ_UNCOMMITTED
        messages = [
            (m.value, m.message_id, m.sequence_id, m.txn_state)
            for m in self.store.reader("t", isolation_level=level)
        ]
        return messages, [(row.key, row.value) for row in self.table.scan()]


class TestGroups:
    """Programs of one thread."""

    @settings(max_examples=examples(100), deadline=None)
    @given(program=st.lists(step, min_size=5, max_size=60))
    def test_a_program_in_groups_does_what_it_does_one_by_one(self, program: list[tuple[Any, ...]]) -> None:
        """Results, outcomes and content."""
        alone, grouped = Run(groups=False), Run(groups=True)
        for run in (alone, grouped):
            run.run(program)
        assert grouped.results == alone.results
        assert grouped.outcomes == alone.outcomes
        assert grouped.content() == alone.content()
        for run in (alone, grouped):
            run.finish()
