"""Checking a topic's producers: invariants 9 (epochs grow), 10 (one owner, and nobody beside it), 11 (first come first
served), from the records of sessions and owners, and from the log they wrote."""

from __future__ import annotations

from itertools import pairwise

from storage.disk.view import ReadView
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES
from storage.topic.producers import ownership as owners, session as sessions
from storage.topic.producers.ownership import Ownership
from storage.topic.producers.session import ProducerSession
from storage.topic.state import TopicState
from storage.values.names import LETTERS_PREFIX
from storage.values.position import Position
from storage.verify.log import Log, Report


def check_producers(view: ReadView, topic: Topic, head: TopicState, log: Log | None, report: Report) -> None:
    """Sessions, owners, and where there is a log who published under which epoch."""
    history = list(owners.every(view, topic.topic_id))
    there = list(sessions.every(view, topic.topic_id))
    _check_sessions(view, topic, head, there, report)
    _check_history(topic, head, history, there, report)
    if log is not None:
        _check_log(topic, head, history, log, report)


def _check_sessions(
    view: ReadView, topic: Topic, head: TopicState, there: list[ProducerSession], report: Report
) -> None:
    connected = [each for each in there if not each.is_waiting]
    exclusive = [each for each in connected if each.is_owner]
    if exclusive and len(connected) > 1:
        shown = ", ".join(each.name for each in connected)
        report(10, topic.name, f"has an exclusive owner, and {len(connected)} producers connected: {shown}")
    for each in exclusive:
        if head.owner_session != each.number:
            report(10, topic.name, f"session {each.number} owns it; its head names {head.owner_session}")
    for each in connected:
        if each.epoch != head.epoch:
            report(
                9,
                topic.name,
                f"{each.name} is connected under epoch {each.epoch}; the topic has {head.epoch}",
            )
        if each.number > view.superblock.last_producer:
            report(16, topic.name, f"session {each.number} was never issued")
    names = [each.name for each in connected if each.lease or view.now_ns < each.until_ns]
    for name in {name for name in names if names.count(name) > 1}:
        report(10, topic.name, f"two producers named {name} are connected")


def _check_history(
    topic: Topic, head: TopicState, history: list[Ownership], there: list[ProducerSession], report: Report
) -> None:
    epochs = [each.epoch for each in history]
    if epochs and (epochs[-1] != head.epoch or epochs != list(range(epochs[0], epochs[-1] + 1))):
        report(9, topic.name, f"its epoch is {head.epoch}; epochs {epochs[0]} to {epochs[-1]} were granted")
    for before, after in pairwise(history):
        if before.ended_by is None:
            report(
                10, topic.name, f"epoch {after.epoch} was granted while the owner of {before.epoch} is there"
            )
        elif before.through is not None and before.through > after.after:
            report(10, topic.name, f"epoch {after.epoch} was granted before {before.epoch} had ended")
    numbers = [each.session.number for each in history if each.session]
    for first, second in pairwise(numbers):
        if second <= first:
            report(
                11, topic.name, f"session {second} was granted the topic after {first}, which had come later"
            )
    for each in there:
        if each.is_waiting and numbers and each.number < numbers[-1]:
            report(
                11,
                topic.name,
                f"session {each.number} waits, and {numbers[-1]}, which came later, had its turn",
            )


def _check_log(topic: Topic, head: TopicState, history: list[Ownership], log: Log, report: Report) -> None:
    """Under an epoch its owner alone publishes, until it has left."""
    by_epoch = {each.epoch: each for each in history}
    for entry in log.entries:
        if entry.epoch > head.epoch:
            report(9, f"{topic.name} {Position(*entry.at)}", f"its epoch {entry.epoch} was never granted")
        ownership = by_epoch.get(entry.epoch)
        if entry.kind != MESSAGES or ownership is None or entry.producer.startswith(LETTERS_PREFIX):
            continue
        what = f"{topic.name} {Position(*entry.at)}"
        if entry.at <= ownership.after:
            report(9, what, f"it has epoch {entry.epoch}, which was granted later")
        is_over = ownership.through is not None and entry.at > ownership.through
        owner = ownership.session.name if ownership.session else None
        if not is_over and entry.producer != owner:
            report(10, what, f"{entry.producer} published while {owner or 'nobody'} owned the topic")
