"""A rule machine: processes of all kinds want two topics, some die, some wait, clocks jump, and the machine reboots.

The store and `model` are told the same things. Whom the store refuses, the model refuses with that error; who owns,
waits, is fenced, and what can be read is what the model says. The long form:

    MODEL_EXAMPLES=2000 python -m pytest tests/storage/topic/producers/test_producer_model.py --timeout=0
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import note, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage import IsolationLevel, Producer, Store, TxnctlError
from tests.model_runs import MODEL_EXAMPLES, examples
from tests.row_json import row_json
from tests.storage.topic.producers.model import (
    ABORTED,
    COMMITTED,
    EXCLUSIVE_MODES,
    OPEN,
    Model,
    Process,
    Session,
    Topic,
    Txn,
)
from tests.storage.topic.producers.modes import MODES, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, TurnClock, Waiter

SECOND = 10**9
LIFE_S = 24 * 3600
TOPICS = st.sampled_from(["t", "t", "t", "u"])
NAMES = st.sampled_from([None, None, "a", "b"])
WEIGHTS = {
    "connect": 16, "open_lease": 5, "resume": 6, "send": 14, "reap_some": 2, "borrow": 8, "close": 5, "close_lease": 2,
    "begin": 4, "end": 4, "look": 8, "interrupt": 2, "die": 5, "fence": 2, "delete": 1, "let_time_pass": 6,
    "set_wall_clock": 1, "reboot": 1,
}  # fmt: skip
STEPS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
PROCESSES_MAX = 5


class Handle:
    """A producer of a process, in the store and in the model."""

    def __init__(self, producer: Producer, topic: Topic, session: Session, process: Process, borrowed: bool):
        self.producer = producer
        self.topic = topic
        self.session = session
        self.process = process
        self.borrowed = borrowed
        self.fenced = False


class Waiting:
    """A call that waits, in the store and in the model."""

    def __init__(self, waiter: Waiter, topic: Topic, session: Session, process: Process, lease_ns: int):
        self.waiter = waiter
        self.topic = topic
        self.session = session
        self.process = process
        self.lease_ns = lease_ns


class ProducerMachine(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="producers-")
        self.path = os.path.join(self.directory, "store")
        self.clock = TurnClock()
        Store.create(self.path, clock=self.clock)
        self.rivals = Rivals(self.path, self.clock)
        self.model = Model()
        self.handles: list[Handle] = []
        self.waiting: list[Waiting] = []
        self.processes: dict[Process, Store] = {}
        self.sent = 0
        self.open_observer()

    def open_observer(self) -> None:
        """Who looks at the store for the comparison, and sets the model's clock."""
        self.observer = Store.open(self.path, clock=self.clock)
        self.observer.connection.write(lambda batch: None)
        with self.observer.connection.view() as view:
            self.began_ns = self.clock.boot_now_ns - view.now_ns
        self.model.now_ns = self.clock.boot_now_ns - self.began_ns

    def teardown(self) -> None:
        try:
            problems = self.observer.maintenance.verify_store(full=True)
            assert not problems, problems
            self.rivals.close()
            problems = self.observer.maintenance.verify_store(full=True)
            assert not problems, problems
        finally:
            self.rivals.close()
            self.observer.close()
            shutil.rmtree(self.directory)

    @initialize()
    def set_up(self) -> None:
        """Two topics, two processes."""
        for name in "tu":
            self.observer.create_topic(name)
            self.model.topics[name] = Topic(name, -1)
        for _ in range(2):
            self.start_process()

    @rule(data=st.data(), what=st.sampled_from(STEPS))
    def step(self, data: st.DataObject, what: str) -> None:
        """One thing that happens, the usual ones more often."""
        getattr(self, what)(data)

    @invariant()
    def agree(self) -> None:
        """What can be seen of topics, producers and transactions is what the model says."""
        for topic in self.model.topics.values():
            if topic.exists:
                self.compare(topic)
            else:
                assert not self.observer.has_topic(topic.name)
        for txn in self.model.txns:
            assert (
                row_json(self.observer.reports.show_transaction(f"0:{txn.number}"))["state"] == txn.state
            ), txn.number

    def compare(self, topic: Topic) -> None:
        name = topic.name
        shown = row_json(self.observer.reports.show_producers(name))
        fields = ("producerName", "accessMode", "epoch", "isOwner", "isWaiting", "place", "state")
        living = [row for row in shown["publishers"] + shown["waiting"] if row["alive"]]
        wanted = self.model.rows(topic)
        got = [
            tuple(
                None if field == "producerName" and _is_given(row[field]) else row[field] for field in fields
            )
            for row in living
        ]
        assert got == wanted, name
        assert sum(row["isOwner"] for row in living) <= 1, "at most one exclusive owner (10)"
        admission = {each["accessMode"]: each["result"] for each in shown["admission"]}
        assert admission == self.model.admission(topic), name
        assert shown["topicEpoch"] == (topic.epoch if topic.epoch >= 0 else None)
        grants = [
            (row["topicEpoch"], row["accessMode"])
            for row in row_json(self.observer.reports.ownership_history(name))
        ]
        assert grants[::-1] == topic.grants, name
        stored = list(self.observer.reader(name, isolation_level=IsolationLevel.READ_UNCOMMITTED))
        assert [(m.value, m.epoch) for m in stored] == [(value, epoch) for value, epoch, _ in topic.log]
        epochs = [message.epoch for message in stored]
        assert epochs == sorted(epochs), "epochs never decrease along a topic (9)"
        assert [m.value for m in self.observer.reader(name)] == self.model.visible(topic)

    # Tools

    def attempt(
        self, what: str, call: Callable[[], Any], wanted: set[str], either: bool = False
    ) -> tuple[Any, bool]:
        """Run a step; it must fail with one of `wanted` if there are any, but for `either`."""
        result, raised = None, None
        try:
            result = call()
        except TxnctlError as error:
            raised = error
        note(f"{what} -> {type(raised).__name__}: {raised}" if raised else f"{what} -> done")
        if raised is None:
            assert either or not wanted, f"{what} went well; expected {wanted}"
        else:
            assert type(raised).__name__ in wanted, f"{what}: {raised!r}; expected {wanted or 'success'}"
        return result, raised is None

    def start_process(self) -> Process:
        process = Process()
        self.processes[process] = self.rivals.open()
        return process

    def a_process(self, data: st.DataObject) -> Process:
        """One that lives; now and then a new one."""
        count = len(self.processes)
        index = data.draw(st.integers(0, min(count, PROCESSES_MAX - 1)), label="process")
        return list(self.processes)[index] if index < count else self.start_process()

    def a_topic(self, data: st.DataObject) -> Topic:
        return self.model.topics[data.draw(TOPICS, label="topic")]

    def a_txn(self, data: st.DataObject) -> Txn | None:
        """None mostly, else one that is open, or the last one that ended."""
        found = [txn for txn in self.model.txns if txn.state == OPEN]
        found += [txn for txn in self.model.txns if txn.state != OPEN][-1:]
        index = data.draw(st.integers(-len(found) - 1, len(found) - 1), label="txn")
        return found[index] if index >= 0 else None

    def txn_problems(self, txn: Txn | None) -> set[str]:
        return {"TransactionNotOpen"} if txn is not None and txn.state != OPEN else set()

    # Connecting

    def connect(self, data: st.DataObject) -> None:
        self.ask(data, self.a_topic(data), data.draw(st.sampled_from(MODES), label="mode"))

    def open_lease(self, data: st.DataObject) -> None:
        lease_s = data.draw(st.sampled_from([5, 60]), label="lease")
        mode = data.draw(st.sampled_from([*EXCLUSIVE_MODES, *EXCLUSIVE_MODES, SHARED]), label="mode")
        self.ask(data, self.a_topic(data), mode, lease_s=lease_s)

    def resume(self, data: st.DataObject) -> None:
        known = [each for each in self.model.sessions() if each.token]
        if not known:
            return
        session = data.draw(st.sampled_from(known[-4:]).map(_Shown), label="session").object
        topic = self.model.topics[self.model.topic_of(session).name]
        lease_s = data.draw(st.sampled_from([0, 0, 60]), label="lease")
        self.ask(data, topic, data.draw(st.sampled_from(EXCLUSIVE_MODES), label="mode"), lease_s, session)

    def ask(
        self, data: st.DataObject, topic: Topic, mode: str, lease_s: int = 0, resumes: Session | None = None
    ) -> None:
        """Ask for a topic, and see that what comes of it is what the model says."""
        process, txn = self.a_process(data), self.a_txn(data)
        name = data.draw(NAMES, label="name") if resumes is None else None
        brings = None
        if mode != SHARED and resumes is None and data.draw(st.sampled_from([False] * 4 + [True])):
            brings = data.draw(st.integers(0, topic.epoch + 1), label="epoch brought")
        wanted = self.model.connect_problems(topic, mode, name, brings, resumes)
        if topic.exists and self.txn_problems(txn):
            wanted = self.txn_problems(txn) | wanted
        how: dict[str, Any] = {"access_mode": mode, "producer_name": name, "topic_epoch": brings}
        if txn is not None:
            how["txn"] = f"0:{txn.number}"
        if resumes is not None:
            how["resume"] = resumes.token
        if lease_s:
            how["lease"] = lease_s
        what = f"{mode} on {topic.name} {how}"
        if not wanted and self.model.admission(topic)[mode] == "waits":
            patience = data.draw(st.sampled_from([None, 20]), label="patience")
            self.begin_to_wait(what, topic, process, patience, lease_s, how, (name, brings, resumes, txn))
            return
        result, is_done = self.attempt(what, lambda: self.call(process, topic, how, lease_s), wanted)
        if is_done:
            session = self.model.connect(topic, mode, name, process, lease_s * SECOND, brings, resumes, txn)
            self.take(result, topic, session, process)

    def call(self, process: Process, topic: Topic, how: dict[str, Any], lease_s: int, **more: Any) -> Any:
        store = self.processes[process]
        if lease_s:
            return row_json(store.open_session(topic.name, **how, **more))
        return store.create_producer(topic.name, **how, **more)

    def take(self, result: Any, topic: Topic, session: Session, process: Process) -> None:
        """Keep what a successful call returned."""
        epoch = session.epoch if session.epoch >= 0 else None
        if isinstance(result, Producer):
            assert (result.topic_epoch, result.access_mode.value) == (epoch, session.mode)
            assert result.session is not None
            session.token = result.session
            self.handles.append(Handle(result, topic, session, process, borrowed=False))
        else:
            assert (result["epoch"], result["accessMode"], result["state"]) == (epoch, session.mode, "leased")
            session.token = result["session"]

    def begin_to_wait(
        self,
        what: str,
        topic: Topic,
        process: Process,
        patience: int | None,
        lease_s: int,
        how: dict[str, Any],
        asked: tuple[Any, ...],
    ) -> None:
        note(f"{what} waits for {patience} s")
        waiter = self.rivals.wait(
            topic.name,
            self.processes[process],
            "open_session" if lease_s else "create_producer",
            timeout=patience,
            **how,
        )
        assert waiter.waits, f"{what}: {waiter.error or waiter.result}"
        name, brings, resumes, txn = asked
        session = self.model.connect(topic, WAITING, name, process, lease_s * SECOND, brings, resumes, txn)
        assert session.waiting
        session.waits_ns = self.model.now_ns + (patience or LIFE_S * 1000) * SECOND
        self.waiting.append(Waiting(waiter, topic, session, process, lease_s * SECOND))

    # Waiting

    def look(self, data: st.DataObject) -> None:
        """One of those who wait looks, or all of them until nothing happens any more."""
        index = data.draw(st.integers(-1, 3), label="who looks")
        chosen = self.waiting[index : index + 1] if 0 <= index < len(self.waiting) else list(self.waiting)
        self.pass_time(1)  # in which it finds out about deaths
        while sum([self.let_look(each) for each in chosen if each in self.waiting]):
            self.pass_time(1)

    def let_look(self, mine: Waiting) -> bool:
        """Whether its waiting has ended by that."""
        wanted, session = self.model.look(mine.topic, mine.session, mine.lease_ns, mine.process)
        waits = mine.waiter.look()
        who = f"{mine.session.name or 'unnamed'} (place {mine.session.number}) on {mine.topic.name}"
        if not wanted and session is None:
            assert waits, f"{who} must still wait: {mine.waiter.error or mine.waiter.result}"
            return False
        assert not waits, f"{who} must not wait any more: {wanted or 'it is its turn'}"
        self.waiting.remove(mine)
        if wanted:
            note(f"{who} -> {mine.waiter.error!r}")
            assert type(mine.waiter.error).__name__ in wanted, (who, wanted, mine.waiter.error)
            return True
        note(f"{who} -> owns it")
        assert session is not None
        assert mine.waiter.error is None, mine.waiter.error
        self.take(mine.waiter.result, mine.topic, session, mine.process)
        return True

    def interrupt(self, data: st.DataObject) -> None:
        if self.waiting:
            mine = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1), label="who"))
            note(f"Ctrl-C for place {mine.session.number}")
            mine.waiter.interrupt()
            assert isinstance(mine.waiter.error, KeyboardInterrupt)
            mine.session.ended = True

    # Publishing

    def send(self, data: st.DataObject) -> None:
        if self.handles:
            handle = self.handles[data.draw(st.integers(0, len(self.handles) - 1), label="producer")]
            self.send_by(handle, self.a_txn(data))

    def borrow(self, data: st.DataObject) -> None:
        """Publish through the session of somebody else, as one shell command does."""
        known = [each for each in self.model.sessions() if each.token]
        if not known:
            return
        session = data.draw(st.sampled_from(known[-4:]).map(_Shown), label="session").object
        topic = self.model.topic_of(session)
        now = self.model.topics[topic.name]
        if now is not topic or (session.mode == SHARED and session.name is None and not session.lease_ns):
            return
        process = self.a_process(data)
        store = self.processes[process]
        if not topic.exists:
            self.attempt(
                "borrow", lambda: store.session_producer(topic.name, session.token), {"TopicNotFound"}
            )
            return
        wanted = self.model.send_problems(topic, session, borrowed=True)
        result, is_done = self.attempt(
            f"borrow session {session.number}",
            lambda: store.session_producer(topic.name, session.token),
            wanted,
            either=True,
        )
        if not is_done:
            return
        handle = Handle(result, topic, session, process, borrowed=True)
        self.send_by(handle, self.a_txn(data))
        if handle.fenced:
            self.send_by(handle, None)

    def send_by(self, handle: Handle, txn: Txn | None) -> None:
        topic, session = handle.topic, handle.session
        wanted = self.model.send_problems(topic, session, handle.borrowed)
        if handle.fenced:
            wanted = {"ProducerFenced"}
        is_fenced = "ProducerFenced" in wanted
        if not wanted or (is_fenced and txn is not None and txn.state != OPEN):
            wanted = wanted | self.txn_problems(txn)
        value = self.fresh_value()
        _, is_done = self.attempt(
            f"send {value!r} on {topic.name} by session {session.number} txn {txn and txn.number}",
            lambda: handle.producer.send(value, txn=f"0:{txn.number}" if txn else None),
            wanted,
        )
        if is_done:
            self.model.send(topic, session, value, txn)
        elif is_fenced:
            handle.fenced = True
            self.model.lose(topic, session)
            if txn is not None and txn.state == OPEN:
                txn.state = ABORTED

    def reap_some(self, data: st.DataObject) -> None:
        """A Shared producer that is not connected between its sends."""
        topic, process, txn = self.a_topic(data), self.a_process(data), self.a_txn(data)
        name, value = data.draw(NAMES, label="name"), self.fresh_value()
        wanted = self.model.passing_problems(topic, name)
        if not wanted:
            wanted = self.txn_problems(txn)

        def call() -> None:
            producer = self.processes[process].create_producer(
                topic.name, producer_name=name, connected=False
            )
            producer.send(value, txn=f"0:{txn.number}" if txn else None)

        if self.attempt(f"pass by {topic.name} as {name} txn {txn and txn.number}", call, wanted)[1]:
            self.model.send(topic, None, value, txn)

    def fresh_value(self) -> bytes:
        self.sent += 1
        return b"%d" % self.sent

    # Leaving

    def close(self, data: st.DataObject) -> None:
        if self.handles:
            handle = self.handles.pop(data.draw(st.integers(0, len(self.handles) - 1), label="producer"))
            note(f"close session {handle.session.number}")
            handle.producer.close()
            session = handle.session
            if not session.ended and session.holder is handle.process:
                self.model.leave(handle.topic, session)

    def close_lease(self, data: st.DataObject) -> None:
        known = [each for each in self.model.sessions() if each.token and each.lease_ns]
        if not known:
            return
        session = data.draw(st.sampled_from(known[-3:]).map(_Shown), label="session").object
        is_alive = session.alive(self.model.now_ns)
        store = self.processes[self.a_process(data)]
        wanted = set() if is_alive else {"SessionNotFound", "ProducerFenced"}
        _, is_done = self.attempt(
            f"close lease {session.number}",
            lambda: row_json(store.admin.producers.close_session(session.token)),
            wanted,
            either=not is_alive and not session.ended,
        )
        if is_done:
            self.model.leave(self.model.topic_of(session), session)

    def die(self, data: st.DataObject) -> None:
        if len(self.processes) > 1:
            process = list(self.processes)[
                data.draw(st.integers(0, len(self.processes) - 1), label="process")
            ]
            note("a process dies")
            self.processes.pop(process).close()
            self.forget(process)

    def forget(self, process: Process) -> None:
        process.alive = False
        self.handles = [each for each in self.handles if each.process is not process]
        self.waiting = [each for each in self.waiting if each.process is not process]

    # Transactions

    def begin(self, data: st.DataObject) -> None:
        if len(self.model.open_txns()) < 4:
            txn = self.observer.begin_transaction(timeout=LIFE_S)
            self.model.txns.append(Txn(txn.least))

    def end(self, data: st.DataObject) -> None:
        txn = self.a_txn(data)
        if txn is None:
            return
        committed = data.draw(st.booleans(), label="commit")
        call = (
            self.observer.commit_transaction
            if committed
            else self.observer.admin.transactions.abort_transaction
        )
        target = COMMITTED if committed else ABORTED
        wanted = set() if txn.state in (OPEN, target) else {"TransactionNotOpen"}
        if self.attempt(f"{call.__name__} {txn.number}", lambda: call(f"0:{txn.number}"), wanted)[1]:
            txn.state = target

    # Operators, clocks, the machine

    def fence(self, data: st.DataObject) -> None:
        topic = self.a_topic(data)
        wanted = set() if topic.exists else {"TopicNotFound"}
        waiting = data.draw(st.booleans(), label="waiting too")
        there = self.model.there(topic)
        evicted = len(there if waiting else self.model.connected(topic))
        before = {txn for txn in self.model.open_txns() if topic in txn.topics}
        result, is_done = self.attempt(
            f"fence {topic.name} waiting {waiting}",
            lambda: row_json(self.observer.admin.producers.fence_producers(topic.name, waiting=waiting)),
            wanted,
        )
        if is_done:
            self.model.fence(topic, waiting)
            assert result["topicEpoch"] == topic.epoch
            assert (len(result["evicted"]), len(result["waiting"])) == (evicted, len(there) - evicted)
            assert set(result["transactionsAborted"]) == {f"0:{txn.number}" for txn in before}

    def delete(self, data: st.DataObject) -> None:
        """Delete a topic, or create it again."""
        topic = self.a_topic(data)
        if not topic.exists:
            note(f"create {topic.name} again")
            self.observer.create_topic(topic.name)
            self.model.topics[topic.name] = Topic(topic.name, topic.epoch)
            return
        force = data.draw(st.booleans(), label="force")
        holds = self.model.there(topic) or [txn for txn in self.model.open_txns() if topic in txn.topics]
        wanted = {"ObjectHeld"} if holds and not force else set()
        call = self.observer.admin.topics.delete_topic
        if self.attempt(f"delete {topic.name} force {force}", lambda: call(topic.name, force=force), wanted)[
            1
        ]:
            self.model.delete(topic)

    def let_time_pass(self, data: st.DataObject) -> None:
        seconds = data.draw(st.sampled_from([1, 4, 21, 61]), label="seconds")
        self.pass_time(seconds)

    def pass_time(self, seconds: int) -> None:
        note(f"{seconds} s pass")
        self.clock.advance(seconds)
        self.model.now_ns = self.clock.boot_now_ns - self.began_ns

    def set_wall_clock(self, data: st.DataObject) -> None:
        days = data.draw(st.sampled_from([-4000, -1, 1, 4000]), label="days")
        note(f"the wall clock jumps by {days} days")
        self.clock.wall_now_ns += days * 86_400 * SECOND

    def reboot(self, data: st.DataObject) -> None:
        """Everybody dies; leases go on from where the store's clock was."""
        note("reboot")
        self.rivals.crash()
        self.observer.close()
        for process in list(self.processes):
            self.processes.pop(process)
            self.forget(process)
        self.clock.reboot()
        self.rivals = Rivals(self.path, self.clock)
        self.open_observer()
        self.start_process()


def _is_given(name: str) -> bool:
    """Whether the store made the name up."""
    return name.startswith("producer-")


class _Shown:
    """A session, shown in a failing example by its number."""

    def __init__(self, session: Session) -> None:
        self.object = session

    def __repr__(self) -> str:
        return f"session {self.object.number} ({self.object.mode})"


ProducerMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=60 if MODEL_EXAMPLES else 40
)
TestProducers = ProducerMachine.TestCase
