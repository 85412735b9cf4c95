"""The rules of K2-3SI beside the engine: a plain model of them, and random histories of both, compared step by step.

With `inline` 0 no intent is finalised with its transaction's end, so that every reader and writer meets what is left.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from storage import CheckMode, Store, TxnID
from storage.errors import LostConflict, TransactionNotOpen, WriteTooOld
from storage.process.clock import ManualClock
from storage.table import intent as intents
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.conftest import check_whole

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.one_of(st.none(), st.sampled_from([b"1", b"2", b"3"]))
BOUNDS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
RANKS = ["highest", "high", "medium", "low", "lowest"]

Refused = type[Exception] | None


class Txn:
    """A transaction of the model."""

    def __init__(self, txn_id: TxnID, timestamp: int, priority: str) -> None:
        self.id = txn_id
        self.at = timestamp
        self.rank = RANKS.index(priority)
        self.state = "OPEN"
        self.lost = False

    def beats(self, other: Txn) -> bool:
        return (self.rank, -self.at) < (other.rank, -other.at)


class Model:
    """Every version ever committed, every intent, every read."""

    def __init__(self) -> None:
        self.finalized: dict[bytes, list[tuple[int, bytes | None]]] = {}
        self.intents: dict[bytes, tuple[Txn, bytes | None]] = {}
        self.reads: list[tuple[int, bytes, bytes]] = []  # timestamp, first key, last key

    def end(self, txn: Txn, state: str, inline: bool) -> None:
        txn.state = state
        if inline:
            for key in [key for key, (holder, _) in self.intents.items() if holder is txn]:
                self.finalize(key)

    def finalize(self, key: bytes) -> None:
        txn, value = self.intents.pop(key)
        if txn.state == "COMMITTED":
            self.finalized.setdefault(key, []).append((txn.at, value))

    def doom(self, txn: Txn, inline: bool, lost: bool) -> None:
        txn.lost = lost
        self.end(txn, "ABORTED", inline)

    def committed(self, key: bytes) -> list[tuple[int, bytes | None]]:
        found = list(self.finalized.get(key, []))
        holder = self.intents.get(key)
        if holder is not None and holder[0].state == "COMMITTED":
            found.append((holder[0].at, holder[1]))
        return found

    def read(self, txn: Txn, keys: list[bytes], inline: bool) -> tuple[Refused, dict[bytes, bytes]]:
        """The caller has recorded the read. Keys are met in order, and the first lost push ends it."""
        for key in keys:
            holder = self.intents.get(key)
            if holder is not None and holder[0].state == "OPEN" and holder[0].at < txn.at:
                if not txn.beats(holder[0]):
                    self.doom(txn, inline, lost=True)
                    return LostConflict, {}
                self.doom(holder[0], inline, lost=True)
        seen = {}
        for key in keys:
            holder = self.intents.get(key)
            if holder is not None and holder[0] is txn:
                value = holder[1]
            else:
                below = [each for each in self.committed(key) if each[0] <= txn.at]
                value = max(below)[1] if below else None
            if value is not None:
                seen[key] = value
        return None, seen

    def write(self, txn: Txn, key: bytes, value: bytes | None, inline: bool) -> Refused:
        later_read = any(at > txn.at and first <= key <= last for at, first, last in self.reads)
        later_version = any(at > txn.at for at, _ in self.committed(key))
        if later_read or later_version:
            self.doom(txn, inline, lost=False)
            return WriteTooOld
        holder = self.intents.get(key)
        if holder is not None and holder[0].state == "OPEN" and holder[0] is not txn:
            if not txn.beats(holder[0]):
                self.doom(txn, inline, lost=True)
                return LostConflict
            self.doom(holder[0], inline, lost=True)
        holder = self.intents.get(key)
        if holder is not None and holder[0] is not txn:
            self.finalize(key)
        self.intents[key] = (txn, value)
        return None


class Machine(RuleBasedStateMachine):
    """Detached transactions, so that every operation is one step in the store as it is in the model."""

    inline = True
    txns = Bundle("txns")

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.clock, self.path = ManualClock(), os.path.join(self.directory, "store")
        Store.create(self.path, clock=self.clock)
        self.store = Store.open(self.path, clock=self.clock)
        self.store.create_table("t")
        self.table = self.store.table("t")
        self.model = Model()

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for key in (b"a", b"b", b"c", b"d"):
            found = self.model.committed(key)
            assert self.table.get(key) == (max(found)[1] if found else None)
        self.store.close()
        check_whole(self.path, self.clock)
        shutil.rmtree(self.directory)

    def check(self, txn: Txn, action: Any, expected: Refused) -> Any:
        """Do it, and see that it is refused as the model says; what it returned."""
        result, refused = None, None
        try:
            result = action()
        except (LostConflict, WriteTooOld, TransactionNotOpen) as refusal:
            refused = type(refusal)
        assert refused is expected, f"transaction {txn.id}"
        return result

    def ended(self, txn: Txn) -> Refused:
        if txn.state == "OPEN":
            return None
        return LostConflict if txn.lost else TransactionNotOpen

    @rule(target=txns, priority=st.sampled_from(["medium"] * 6 + RANKS))
    def begin(self, priority: str) -> Txn:
        txn_id = self.store.begin_transaction(priority=priority)
        return Txn(txn_id, int(row_json(self.store.reports.show_transaction(txn_id))["timestamp"]), priority)

    @rule(txn=txns, key=KEYS)
    def get(self, txn: Txn, key: bytes) -> None:
        expected, seen = self.ended(txn), {}
        if expected is None:
            self.model.reads.append((txn.at, key, key))
            expected, seen = self.model.read(txn, [key], self.inline)
        found = self.check(txn, lambda: self.table.get(key, txn=txn.id), expected)
        assert found == seen.get(key)

    @rule(txn=txns, start=BOUNDS, end=BOUNDS, reverse=st.booleans())
    def scan(self, txn: Txn, start: bytes, end: bytes, reverse: bool) -> None:
        expected, seen = self.ended(txn), {}
        keys = sorted((k for k in (b"a", b"b", b"c", b"d") if start <= k < end), reverse=reverse)
        if expected is None:
            if start < end:
                self.model.reads.append((txn.at, start, end[:-1] + bytes((end[-1] - 1,))))
            expected, seen = self.model.read(txn, keys, self.inline)

        def run() -> list[tuple[bytes, bytes]]:
            rows = self.table.scan(start=start, end=end, reverse=reverse, txn=txn.id)
            return [(row.key, row.value) for row in rows]

        found = self.check(txn, run, expected)
        if expected is None:
            assert found == [(key, seen[key]) for key in keys if key in seen]

    @rule(txn=txns, key=KEYS, value=VALUES)
    def write(self, txn: Txn, key: bytes, value: bytes | None) -> None:
        expected = self.ended(txn) or self.model.write(txn, key, value, self.inline)

        def run() -> int:
            if value is None:
                return self.table.delete(key, txn=txn.id)
            return self.table.put(key, value, txn=txn.id)

        version = self.check(txn, run, expected)
        assert expected is not None or version == txn.at

    @rule(txn=txns)
    def commit(self, txn: Txn) -> None:
        expected = None if txn.state == "COMMITTED" else self.ended(txn)
        if txn.state == "OPEN":
            self.model.end(txn, "COMMITTED", self.inline)
        self.check(txn, lambda: self.store.commit_transaction(txn.id), expected)

    @rule(txn=txns)
    def abort(self, txn: Txn) -> None:
        expected = TransactionNotOpen if txn.state == "COMMITTED" else None
        if txn.state == "OPEN":
            self.model.end(txn, "ABORTED", self.inline)
        self.check(txn, lambda: row_json(self.store.admin.transactions.abort_transaction(txn.id)), expected)

    @rule(key=KEYS, check=st.sampled_from(CheckMode))
    def read_committed(self, key: bytes, check: CheckMode) -> None:
        newest = self.model.committed(key)
        if check is CheckMode.NONE:
            newest = self.model.finalized.get(key, [])
        expected = max(newest)[1] if newest else None
        assert self.table.get(key, check=check) == expected
        row = self.table.get_row(key, check=check)
        assert (None if row is None else row.value) == expected

    @rule()
    def collect(self) -> None:
        for key in [k for k, (txn, _) in self.model.intents.items() if txn.state != "OPEN"]:
            self.model.finalize(key)
        self.store.maintenance.collect_garbage()


@pytest.mark.parametrize("inline", [True, False])
def test_the_engine_follows_the_rules_of_k2(monkeypatch: pytest.MonkeyPatch, inline: bool) -> None:
    """Reads, writes, pushes, priorities, refusals, check modes and finalisation, in any order."""
    if not inline:
        monkeypatch.setattr(intents, "FINALIZE_INLINE_MAX", 0)

    class Case(Machine):
        pass

    Case.inline = inline
    run_state_machine_as_test(
        Case, settings=settings(max_examples=examples(25), stateful_step_count=40, deadline=None)
    )
