"""Check the producers of a topic, from the records of sessions and owners, and from the log.

Invariants 9 (epochs grow), 10 (an exclusive owner publishes alone) and 11 (first come, first served).
"""

from __future__ import annotations

from itertools import pairwise

from storage.disk.view import ReadView
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES
from storage.topic.producers import ownership as owners, session as sessions, session_index
from storage.topic.state import TopicState
from storage.values.names import LETTERS_PREFIX
from storage.values.position import Position
from storage.verify.log import Log, LoggedEntry
from storage.verify.problem import Report


class ProducersCheck:
    """The check of the producers of one topic."""

    def __init__(self, view: ReadView, topic: Topic, state: TopicState, report: Report) -> None:
        self._view = view
        self._name = topic.name
        self._topic_id = topic.topic_id
        self._state = state
        self._report = report
        self._history = list(owners.every(view, topic.topic_id))
        self._sessions = list(sessions.every(view, topic.topic_id))

    def run(self, log: Log | None) -> None:
        """Check sessions and owners; with the log, check the epoch of every entry."""
        self._check_sessions()
        self._check_index()
        self._check_epochs()
        self._check_order()
        if log is not None:
            by_epoch = {ownership.epoch: ownership for ownership in self._history}
            for entry in log.entries:
                self._check_entry(entry, by_epoch.get(entry.epoch))

    def _problem(self, invariant: int, message: str) -> None:
        self._report(invariant, self._name, message)

    def _check_sessions(self) -> None:
        view, state = self._view, self._state
        connected = [session for session in self._sessions if not session.is_waiting]
        exclusive = [session for session in connected if session.is_owner]
        if exclusive and len(connected) > 1:
            names = ", ".join(session.name for session in connected)
            self._problem(10, f"has an exclusive owner, and {len(connected)} producers connected: {names}")
        for session in exclusive:
            if state.owner_session != session.number:
                self._problem(10, f"session {session.number} owns it; its state names {state.owner_session}")
        for session in connected:
            if session.epoch != state.epoch:
                epochs = f"under epoch {session.epoch}; the topic has {state.epoch}"
                self._problem(9, f"{session.name} is connected {epochs}")
            if session.number > view.superblock.last_producer:
                self._report(16, self._name, f"session {session.number} was never issued")
        live_names = [
            session.name for session in connected if session.lease or view.now_ns < session.until_ns
        ]
        for name in {name for name in live_names if live_names.count(name) > 1}:
            self._problem(10, f"two producers named {name} are connected")

    def _check_index(self) -> None:
        """The index names the connected sessions and counts the waiting ones, if the topic has an index."""
        connected = {(session.name, session.number) for session in self._sessions if not session.is_waiting}
        waiting, named = session_index.entries(self._view, self._topic_id)
        if waiting is None and not named:
            return
        if named != connected:
            self._problem(
                10, f"the index names {len(named)} connected sessions; {len(connected)} have records"
            )
        queued = len(self._sessions) - len(connected)
        if waiting != queued:
            self._problem(11, f"the index counts {waiting} waiting sessions; {queued} have records")

    def _check_epochs(self) -> None:
        """Epochs were granted without a gap, each after the end of the one before."""
        epochs, current = [ownership.epoch for ownership in self._history], self._state.epoch
        if epochs and (epochs[-1] != current or epochs != list(range(epochs[0], epochs[-1] + 1))):
            self._problem(9, f"its epoch is {current}; epochs {epochs[0]} to {epochs[-1]} were granted")
        last = self._history[-1] if self._history else None
        owner = last.session if last is not None and last.ended_by is None else None
        if owner is not None and owner.number not in {session.number for session in self._sessions}:
            self._problem(10, f"session {owner.number} owns it, and has no record")
        if self._state.owner_session and (last is None or last.session is None):
            self._problem(
                10, f"session {self._state.owner_session} owns it, or may resume; no grant is recorded"
            )
        for before, after in pairwise(self._history):
            if before.ended_by is None:
                self._problem(
                    10, f"epoch {after.epoch} was granted before the owner of {before.epoch} had left"
                )
            elif before.through is not None and before.through > after.after:
                self._problem(10, f"epoch {after.epoch} was granted before {before.epoch} had ended")

    def _check_order(self) -> None:
        """Sessions owned the topic in the order of their arrival."""
        numbers = [ownership.session.number for ownership in self._history if ownership.session]
        for first, second in pairwise(numbers):
            if second <= first:
                self._problem(
                    11, f"session {second} was granted the topic after {first}, which had come later"
                )
        for session in self._sessions:
            if session.is_waiting and numbers and session.number < numbers[-1]:
                turn = f"{numbers[-1]}, which came later, had its turn"
                self._problem(11, f"session {session.number} waits, and {turn}")

    def _check_entry(self, entry: LoggedEntry, ownership: owners.Ownership | None) -> None:
        """Under an epoch its owner alone publishes, until the owner has left."""
        label = f"{self._name} {Position(*entry.at)}"
        if entry.epoch > self._state.epoch:
            self._report(9, label, f"its epoch {entry.epoch} was never granted")
        if entry.kind != MESSAGES or ownership is None or entry.producer.startswith(LETTERS_PREFIX):
            return
        if entry.at <= ownership.after:
            self._report(9, label, f"its epoch {entry.epoch} was granted later")
        is_over = ownership.through is not None and entry.at > ownership.through
        owner = ownership.session.name if ownership.session else None
        if not is_over and entry.producer != owner:
            self._report(
                10, label, f"{entry.producer} published while {owner or 'no producer'} owned the topic"
            )
