"""What must be found in a store after its process was killed, told from the journal of that process.

The journal says what was tried and what was acknowledged. What was acknowledged must be there (invariant 15); what
was only tried is there whole or not at all; a transaction counts everywhere or nowhere (6), at READ_COMMITTED only
when it is committed (2); what is acknowledged or pending is not delivered (7); what is not, is in the end (19). A takeover
granted an epoch and doomed the transactions before it, or did neither (9, 10).
"""

from __future__ import annotations

from typing import Any

from storage import IsolationLevel, Store, TransactionState
from storage.errors import TopicNotFound
from tests.processes import places
from tests.processes.crash_workload import BOOKS, DOOMED, GRAVE, SUBSCRIPTIONS, THRONE, TOPICS
from tests.processes.journal import Line
from tests.row_json import row_json

COMMITTED = TransactionState.COMMITTED.value
ABORTED = TransactionState.ABORTED.value
OPEN = TransactionState.OPEN.value


class Found:
    """What stands in the store: each topic at both levels, transactions with state and reason, who owned the throne."""

    def __init__(self, store: Store) -> None:
        txns = row_json(store.reports.list_transactions()) + row_json(
            store.reports.list_transactions(ended=True)
        )
        self.states: dict[str, str] = {row["txnId"]: row["state"] for row in txns}
        self.fenced = {row["txnId"] for row in txns if row["reason"] == "fenced"}
        self.owners = (
            {row["topicEpoch"]: row["sessionId"] for row in row_json(store.reports.ownership_history(THRONE))}
            if store.has_topic(THRONE)
            else {}
        )
        self.epochs: dict[str, int] = {}
        self.all: dict[str, list[tuple[str, str, str | None]]] = {}
        self.visible: dict[str, list[str]] = {}
        for topic in (*TOPICS, GRAVE, DOOMED):
            self.all[topic], self.visible[topic] = [], []
            try:
                messages = store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
            except TopicNotFound:
                continue
            for message in messages:
                txn = None if message.txn_id is None else str(message.txn_id)
                value = (message.value or b"").decode()
                self.all[topic].append((value, str(message.message_id), txn))
                if topic == THRONE:
                    self.epochs[value] = message.epoch
                assert message.txn_state is None or message.txn_state.value == self.states[txn or ""]
            self.visible[topic] = [(message.value or b"").decode() for message in store.reader(topic)]

        self.rows: dict[str, str] = {}
        if store.has_table(BOOKS):
            books = store.table(BOOKS)
            self.rows = {row.key.decode(): row.value.decode() for row in books.scan()}
        self.count = int(self.rows.pop("count", "0"))

    def state(self, txn: str | None) -> str:
        """The state of a transaction; what is sent plainly is committed."""
        return COMMITTED if txn is None else self.states[txn]

    def check_extends(self, earlier: Found) -> None:
        """What could be read once is still read, at its place, and decided states have not changed (4, 5, 16)."""
        for topic in (*TOPICS, GRAVE):
            assert self.all[topic][: len(earlier.all[topic])] == earlier.all[topic], topic
            assert self.visible[topic][: len(earlier.visible[topic])] == earlier.visible[topic], topic
        for txn, state in earlier.states.items():
            assert self.states.get(txn) == state or state == OPEN, txn
        assert earlier.rows.items() <= self.rows.items()
        assert earlier.count <= self.count
        for epoch, session in earlier.owners.items():
            assert self.owners[epoch] == session, f"epoch {epoch} was granted twice (9, 16)"

    def check_levels(self) -> None:
        """READ_COMMITTED shows what is committed before the first open transaction, and nothing else (2, 4)."""
        for topic, messages in self.all.items():
            expected = []
            for value, _, txn in messages:
                if self.state(txn) == OPEN:
                    break
                if self.state(txn) == COMMITTED:
                    expected.append(value)
            assert self.visible[topic] == expected, topic


class Subscription:
    """What a subscription may still be handed: acknowledged values are `done`, perhaps acknowledged ones `maybe`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done: set[str] = set()
        self.maybe: set[str] = set()
        self.pending: dict[str, set[str]] = {}
        self.maybe_pending: dict[str, set[str]] = {}
        self.last_first = -1
        self.seen: set[str] = set()

    def end(self, txn: str, is_committed: bool) -> None:
        """A transaction has ended."""
        certain, uncertain = self.pending.pop(txn, set()), self.maybe_pending.pop(txn, set())
        if is_committed:
            self.done |= certain
            self.maybe |= uncertain - self.done

    def acknowledge(self, values: set[str], txn: str | None, is_certain: bool) -> None:
        if txn is not None:
            (self.pending if is_certain else self.maybe_pending).setdefault(txn, set()).update(values)
        elif is_certain:
            self.done |= values
            self.maybe -= values
        else:
            self.maybe |= values - self.done

    def seek(self, is_certain: bool) -> None:
        """Back to the beginning."""
        self.maybe = set() if is_certain else self.maybe | self.done
        self.done = set()

    def receive(self, value: str, index: int) -> None:
        """Judge a delivery."""
        assert value not in self.done, f"{self.name} was handed {value} after it was acknowledged (7)"
        for txn, values in self.pending.items():
            assert value not in values, f"{self.name} was handed {value}, which is pending in {txn} (7)"
        self.maybe.discard(value)
        if value not in self.seen and SUBSCRIPTIONS[self.name][1].value in ("Exclusive", "Failover"):
            assert index > self.last_first, f"{self.name} was handed {value} out of order (4)"
            self.last_first = index
        self.seen.add(value)


class Model:
    """The journal, replayed against what was found."""

    def __init__(self, lines: list[Line], found: Found) -> None:
        self._lines = lines
        self._found = found
        self._done = {line["tried"] for line in lines if line["event"] == "did"}
        self._commits: set[str] = set()
        self._attached: set[str] = set()
        self._order = {
            topic: {value: index for index, (value, _, _) in enumerate(messages)}
            for topic, messages in found.all.items()
        }
        self.subscriptions = {name: Subscription(name) for name in SUBSCRIPTIONS}

    def check(self) -> None:
        """Everything that can be told from the journal."""
        self._check_sent()
        self._check_put()
        self._check_grouped()
        self._check_dealt()
        self._check_owners()
        for line in self._lines:
            self._replay(line)
        grave = [value for value, _, _ in self._found.all[GRAVE]]
        assert len(grave) == len(set(grave)), "a message goes to the dead-letter topic once"
        workers = self.subscriptions["workers"]
        assert not set(grave) & workers.done, "a letter is not acknowledged by its receiver as well"
        workers.done |= set(grave)

    def _check_sent(self) -> None:
        """Acknowledged messages are at their ids, tried ones whole or not at all, each at most once, no others."""
        stored = {
            (topic, value): (message_id, txn)
            for topic, messages in self._found.all.items()
            for value, message_id, txn in messages
        }
        assert len(stored) == sum(map(len, self._found.all.values())), "no value is stored twice (20)"
        tried: set[tuple[str, str]] = set()
        deleted = -1
        for line in self._lines:
            if line["kind"] == "delete":
                deleted = line["number"]
        for line in self._lines:
            if line["kind"] != "send" or (line["topic"] == DOOMED and line["number"] < deleted):
                continue
            names = [(line["topic"], value) for value in line["values"]]
            tried.update(names)
            there = [stored[name] for name in names if name in stored]
            assert len(there) in (0, len(names)), f"half of a batch is stored: {line}"
            assert there or line["event"] == "try", f"acknowledged and lost (15): {line}"
            assert {txn for _, txn in there} <= {line["txn"]}, line
            if "ids" in line:
                assert [message_id for message_id, _ in there] == line["ids"], line
        for deal in self._deals():
            tried.update((topic, value) for topic, values in deal["sends"].items() for value in values)
        doomed = {name for name in stored if name[0] == DOOMED}
        letters = {name for name in stored if name[0] == GRAVE}
        assert set(stored) - letters - doomed <= tried, "nothing is stored that nobody sent"

    def _check_put(self) -> None:
        """Acknowledged keys are there, those of a transaction all or none with the rest of it, and no others (6, 15)."""
        tried: set[str] = {key for deal in self._deals() for key in deal["keys"]}
        for line in self._lines:
            if line["kind"] != "put":
                continue
            keys, txn = set(line["keys"]), line["txn"]
            tried |= keys
            there = keys & set(self._found.rows)
            is_last_word = line["event"] == "did" or line["number"] not in self._done
            if not is_last_word:
                continue
            assert there in (set(), keys), f"half of what was put together is stored: {line}"
            if txn is not None and self._found.state(txn) != COMMITTED:
                assert not there, f"not committed, and seen (2): {line}"
            elif line["event"] == "did":
                assert there == keys, f"acknowledged and lost (15): {line}"
        assert set(self._found.rows) <= tried, "nothing is stored that nobody put"
        assert all(key == value for key, value in self._found.rows.items())
        transfers = [key for key in self._found.rows if key.endswith("/0")]
        assert self._found.count == len(transfers), "an update was lost (12)"

    def _check_grouped(self) -> None:
        """A flush is there whole or not at all."""
        sent = {value for value, _, _ in self._found.all["orders"]}
        for line in self._lines:
            if line["kind"] == "group":
                there = [key in self._found.rows for key in line["keys"]]
                there += [value in sent for value in line["values"]]
                assert all(there) or not any(there), f"half of a flush is stored: {line}"

    def _deals(self) -> list[Line]:
        """The last word on each transaction that kept what it did."""
        deals = [line for line in self._lines if line["kind"] == "deal"]
        return [line for line in deals if line["event"] == "did" or line["number"] not in self._done]

    def _dealt(self, line: Line) -> dict[tuple[str, str], str | None]:
        """The messages of such a transaction that are stored, each with the transaction that it names."""
        return {
            (topic, value): self._found.all[topic][self._order[topic][value]][2]
            for topic, values in line["sends"].items()
            for value in values
            if value in self._order[topic]
        }

    def _has_committed(self, line: Line) -> bool:
        return any(self._found.state(txn) == COMMITTED for txn in self._dealt(line).values())

    def _check_dealt(self) -> None:
        """Messages, rows and acknowledgement of such a transaction are all there or none is seen (6, 15, 17)."""
        for line in self._deals():
            stored, keys = self._dealt(line), set(line["keys"])
            assert len(set(stored.values())) <= 1, f"stored in several transactions: {line}"
            assert None not in stored.values(), f"stored outside its transaction: {line}"
            there = keys & set(self._found.rows)
            if self._has_committed(line):
                assert line["decision"] == "commit", f"nobody asked for this commit: {line}"
                assert len(stored) == sum(map(len, line["sends"].values())), (
                    f"half of it is committed: {line}"
                )
                assert there == keys, f"half of it is committed: {line}"
            else:
                assert not there, f"not committed, and seen (2): {line}"
                is_lost = line["event"] == "did" and line["decision"] == "commit"
                assert not is_lost, f"acknowledged and lost (15): {line}"

    def _check_owners(self) -> None:
        """Each acknowledged owner has its epoch; with each epoch came the end of what it doomed, and not without (10)."""
        found, epochs = self._found, list(self._found.epochs.values())
        assert epochs == sorted(epochs), "epochs never decrease along a topic (9)"
        assert sorted(found.owners) == list(range(len(found.owners))), "epochs grow by one (9)"
        tried = [line for line in self._lines if (line["event"], line["kind"]) == ("try", "own")]
        afters = [_epoch(line["before"]) for line in tried[1:]] + [max(found.owners, default=-1)]
        for line, after in zip(tried, afters, strict=False):
            before = _epoch(line["before"])
            assert after - before in (0, 1)
            assert after > before or line["number"] not in self._done, f"acknowledged and lost (15): {line}"
            for txn in line["dooms"]:
                assert (txn in found.fenced) or after == before, f"{txn} survived the takeover (10): {line}"
        doomed = {txn for line in tried for txn in line["dooms"]}
        refused = {line["txn"] for line in self._lines if line["kind"] == "refuse"}
        assert found.fenced <= doomed | refused, "nothing was fenced that nobody took over"
        for line in self._lines:
            if line["event"] == "did" and line["kind"] == "own":
                assert found.owners[line["epoch"]] == int(line["token"].split("-")[-2]), line
            elif line["event"] == "did" and line["kind"] == "refuse":
                assert line["txn"] is None or line["txn"] in found.fenced, (
                    f"refused, and not doomed (17): {line}"
                )
            elif line["kind"] == "send" and line["topic"] == THRONE:
                stored = {found.epochs[value] for value in line["values"] if value in found.epochs}
                assert stored <= {_epoch(line["epoch"])}, f"stored under another epoch (9): {line}"

    def _replay(self, line: Line) -> None:
        kind, is_done = line["kind"], line["event"] == "did"
        if kind == "started":
            self._end_attached()
        elif kind == "begin" and is_done and not line["detached"]:
            self._attached.add(line["txn"])
        elif kind in ("commit", "abort"):
            self._replay_end(line, is_done)
        elif kind == "received":
            self._replay_received(line)
        elif kind == "deal" and (is_done or line["number"] not in self._done):
            if self._has_committed(line):
                self._commits |= {txn for txn in self._dealt(line).values() if txn is not None}
                self._replay_acknowledge(line, is_done=True)
        elif kind == "acknowledge" and (is_done or line["number"] not in self._done):
            self._replay_acknowledge(line, is_done)
        elif kind == "seek" and (is_done or line["number"] not in self._done):
            self.subscriptions[line["subscription"]].seek(is_done)

    def _replay_end(self, line: Line, is_done: bool) -> None:
        txn, wanted = line["txn"], COMMITTED if line["kind"] == "commit" else ABORTED
        if line["kind"] == "commit":
            self._commits.add(txn)
        if is_done:
            assert self._found.states[txn] == wanted, f"an acknowledged decision has changed (16): {line}"
            self._attached.discard(txn)
            for each in self.subscriptions.values():
                each.end(txn, wanted == COMMITTED)

    def _end_attached(self) -> None:
        """A run has ended: what was attached to it is decided, by its last words or by the next writer."""
        for txn in self._attached:
            state = self._found.states[txn]
            assert state != COMMITTED or txn in self._commits, f"{txn} was committed, though nobody asked"
            for each in self.subscriptions.values():
                each.end(txn, state == COMMITTED)
        self._attached.clear()

    def _replay_received(self, line: Line) -> None:
        name = line["subscription"]
        topic = SUBSCRIPTIONS[name][0]
        order, messages = self._order[topic], self._found.all[topic]
        for value in line["values"]:
            self.subscriptions[name].receive(value, order[value])
            txn = messages[order[value]][2]
            if line["level"] == IsolationLevel.READ_COMMITTED.value and txn is not None:
                assert self._found.states[txn] == COMMITTED, f"a dirty read (2): {line}"
                assert txn in self._commits, f"a read before the commit (2): {line}"

    def _replay_acknowledge(self, line: Line, is_done: bool) -> None:
        name = line["subscription"]
        order, values = self._order[SUBSCRIPTIONS[name][0]], set(line["values"])
        if line["up_to"] is not None:
            values = {value for value, index in order.items() if index <= order[line["up_to"]]}
        self.subscriptions[name].acknowledge(values, line["txn"], is_done)

    def check_drained(self, store: Store) -> None:
        """After the drain every committed message is acknowledged everywhere, and nothing is held any more (19)."""
        for name, (topic, _, _) in SUBSCRIPTIONS.items():
            mine = self.subscriptions[name]
            for value, _, txn in self._found.all[topic]:
                if self._found.state(txn) == COMMITTED:
                    assert value in mine.done | mine.maybe, (
                        f"{name} was never handed {value}, or lost it (19)"
                    )
            stats: dict[str, Any] = row_json(store.reports.subscription_stats(topic, name))
            left = {word: stats[word] for word in ("visible", "blocked", "pending", "unackedMessages")}
            assert not any(left.values()), (name, left)
            assert stats["consumers"] == []
        assert OPEN not in self._found.states.values()


def check_others(lines: list[Line], path: str) -> None:
    """The other stores are there if their making was acknowledged; if one is there, it is whole."""
    must_be_there: dict[str, bool] = {}
    for line in lines:
        if line["kind"] in ("make", "drop"):
            must_be_there[line["store"]] = line["event"] == "did"
    for name, must in must_be_there.items():
        place = f"{path}.{name}" if name == "backup" else places.name_of(f"{path}.{name}")
        is_there = places.is_there(place)
        assert is_there or not must, f"{name} was acknowledged and is lost (15)"
        if is_there:
            with Store.open(place, read_only=True) as store:
                assert store.maintenance.verify_store(full=True) == []
                assert (store.topics() == []) is (name == "spare")
                assert (
                    name not in ("restored", "copied")
                    or row_json(store.reports.list_transactions())
                    == row_json(store.reports.list_producers())
                    == []
                )


def _epoch(shown: int | None) -> int:
    return -1 if shown is None else shown
