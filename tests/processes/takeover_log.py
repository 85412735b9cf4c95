"""What must hold of a topic that many processes fought for, told from the topic and from their journals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from storage import IsolationLevel, Store, TransactionState
from tests.processes.contender import SIDE, TOPIC
from tests.processes.journal import Line
from tests.row_json import row_json

COMMITTED = TransactionState.COMMITTED.value


class Journals:
    """The journals of all contenders, by what they tell."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self.sends = {line["value"]: line for line in self.of("sends")}
        self.sides = {line["value"]: line for line in self.of("side")}
        self.spares = {line["epoch"]: line["spares"] for line in self.of("connected") if line["spares"]}
        self.commits = {line["txn"] for line in self.of("commits")}

    def of(self, kind: str) -> list[Line]:
        return [line for line in self._lines if line["kind"] == kind]

    def kinds(self) -> Counter[str]:
        """How often each kind of thing was noted."""
        return Counter(line["kind"] for line in self._lines)


class Fight:
    """The topic, and everything that its contenders noted."""

    def __init__(self, store: Store, lines: list[Line], history: dict[int, dict[str, Any]]) -> None:
        """Args:
        history: the owner of every epoch.
        """
        self.journals = Journals(lines)
        self.history = history
        everything = IsolationLevel.READ_UNCOMMITTED
        self.stored = list(store.reader(TOPIC, isolation_level=everything))
        self.visible = [_text(message.value) for message in store.reader(TOPIC)]
        self.side = [_text(message.value) for message in store.reader(SIDE)]
        self.markers = [
            row for row in row_json(store.reports.topic_log(TOPIC)) if row["kind"] in ("commit", "abort")
        ]
        self.states = {
            row["txnId"]: row["state"] for row in row_json(store.reports.list_transactions(ended=True))
        }
        assert row_json(store.reports.list_transactions()) == [], "nothing is left open"

    def check(self) -> None:
        """Everything that can be told."""
        self.check_epochs()
        self.check_grants()
        self.check_messages()
        self.check_owners_alone()
        self.check_fenced()
        self.check_transactions()

    def figures(self) -> dict[str, int]:
        """How often what happened."""
        kinds, grants = self.journals.kinds(), list(self.history.values())
        modes = Counter(row["accessMode"] for row in grants)
        return {
            "owners by Exclusive": modes["Exclusive"],
            "by WaitForExclusive at once": modes["WaitForExclusive"] - sum(row["waited"] for row in grants),
            "after waiting": sum(row["waited"] for row in grants),
            "by ExclusiveWithFencing": modes["ExclusiveWithFencing"],
            "by operators": modes["fence"],
            "owners that came back": kinds["resumed"],
            "transactions aborted by a takeover": sum(row["transactionsAborted"] for row in grants),
            "spared": len(self.journals.spares),
            "committed": kinds["committed"],
            "messages stored": len(self.stored),
            "publishes fenced": kinds["fenced"],
            "waiters fenced": kinds["fenced waiter"],
            "gave up waiting": kinds["timeout"],
            "refused as busy": kinds["busy"],
            "leases lost": kinds["lost lease"],
        }

    def check_epochs(self) -> None:
        """No message of an older epoch after one of a newer (9)."""
        epochs = [message.epoch for message in self.stored]
        assert epochs == sorted(epochs)

    def check_grants(self) -> None:
        """Each epoch was granted once, one after the other, and to sessions in the order of their asking (9, 10, 11).

        A session that asked before another and owns the topic after it would have been passed by while it waited, or
        would have outlived an eviction.
        """
        assert sorted(self.history) == list(range(len(self.history)))
        sessions = [
            row["sessionId"] for _, row in sorted(self.history.items()) if row["sessionId"] is not None
        ]
        assert sessions == sorted(set(sessions))
        for line in self.journals.of("connected"):
            if line["mode"] != "Shared":
                assert self.history[line["epoch"]]["sessionId"] == line["session"], line
        for line in self.journals.of("resumed"):
            if self.history[line["epoch"]]["sessionId"] != line["session"]:
                raise AssertionError(f"resumed what it never owned: {line}")

    def check_messages(self) -> None:
        """What is stored was sent, once, under the epoch of its producer; what was acknowledged is stored (15, 20)."""
        found = {_text(message.value): message for message in self.stored}
        assert len(found) == len(self.stored)
        for value, message in found.items():
            line = self.journals.sends[value]
            txn = None if message.txn_id is None else str(message.txn_id)
            assert (message.epoch, txn) == (line["epoch"], line["txn"]), line
        for line in self.journals.of("sent"):
            assert line["value"] in found, f"acknowledged and lost: {line}"

    def check_owners_alone(self) -> None:
        """Under one epoch its owner publishes alone, then perhaps Shared producers: nobody in between (10)."""
        shared_since: dict[int, str] = {}
        for message in self.stored:
            value = _text(message.value)
            if self.journals.sends[value]["mode"] == "Shared":
                shared_since.setdefault(message.epoch, value)
            else:
                before = shared_since.get(message.epoch)
                assert before is None, f"{value} of the owner of epoch {message.epoch} comes after {before}"

    def check_fenced(self) -> None:
        """A refused message is nowhere, and who is fenced stays fenced; what it sent in a transaction never shows."""
        assert self.journals.of("fenced no more") == []
        stored = {_text(message.value) for message in self.stored}
        for line in self.journals.of("fenced"):
            assert line["value"] not in stored
            if line["txn"] is not None:
                assert self.states[line["txn"]] != COMMITTED, (
                    f"its transaction was committed without it: {line}"
                )

    def check_transactions(self) -> None:
        """Committed ones were asked for, show whole, and hold nothing from before a takeover that did not spare them."""
        committed = {txn for txn, state in self.states.items() if state == COMMITTED}
        assert committed <= self.journals.commits
        for line in self.journals.of("committed"):
            assert line["txn"] in committed, f"acknowledged and lost: {line}"
        plain = [m for m in self.stored if m.txn_id is None or str(m.txn_id) in committed]
        assert self.visible == [_text(message.value) for message in plain]
        expected = [value for value in self.side if self.journals.sides[value]["txn"] in committed]
        assert self.side == expected
        first_epoch: dict[str, int] = {}
        for message in self.stored:
            if message.txn_id is not None:
                first_epoch.setdefault(str(message.txn_id), message.epoch)
        for row in self.markers:
            if row["kind"] == "commit":
                for epoch in range(first_epoch[row["txnId"]] + 1, _epoch(row["epoch"]) + 1):
                    spared = self.journals.spares.get(epoch)
                    assert spared == row["txnId"], (
                        f"{row['txnId']} was committed over the grant of epoch {epoch}"
                    )


def _epoch(shown: int | None) -> int:
    return -1 if shown is None else shown


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()
