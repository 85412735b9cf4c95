"""Errors for a producer that may not connect or publish: the sessions in the way, and a hint."""

from __future__ import annotations

from collections.abc import Sequence

from storage.actions import Action, Hint, Keyword
from storage.disk.view import ReadView
from storage.errors import ProducerBusy, ProducerFenced
from storage.process.locks import Locks
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import ownership
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.ownership import Ownership
from storage.topic.producers.session import ProducerSession
from storage.values.timestamps import rfc3339

_NAMED_MAX = 5


def shown_epoch(epoch: int) -> int | None:
    """An epoch for reports: None while absent."""
    return epoch if epoch >= 0 else None


def described(view: ReadView, locks: Locks, session: ProducerSession) -> str:
    """Describe a session: `loader (Exclusive, alice@db-2:48211 (txnctl produce), alive)`."""
    return f"{session.name} ({session.mode.value}, {session.owner}, {session.state(view, locks)})"


def busy(
    view: ReadView, locks: Locks, topic: str, mode: AccessMode, present: Sequence[ProducerSession]
) -> ProducerBusy:
    """Make the error for a topic at which producers are connected or wait."""
    owner = next((session for session in present if session.is_owner), None)
    connected = [session for session in present if not session.is_waiting]
    waiting = [session for session in present if session.is_waiting]
    if not mode.is_exclusive and waiting:
        # Connected Shared producers exclude no Shared producer: only the queue does.
        connected = [owner] if owner is not None else []
    if owner is not None:
        what = f"has an exclusive producer: {described(view, locks, owner)}"
    elif connected:
        what = f"has {_counted(connected, 'connected')}: {_list(view, locks, connected)}"
    else:
        what = f"has {_counted(waiting, 'waiting for it')}: {_list(view, locks, waiting)}"
    show = Action("store.reports.show_producers", topic)
    if mode.is_exclusive:
        hint = Hint(
            "Wait for your turn with {}, or take the topic over with ExclusiveWithFencing. `{}` has all of them.",
            Keyword("access_mode", AccessMode.WAIT_FOR_EXCLUSIVE.value),
            show,
        )
    else:
        fence = Action("store.admin.producers.fence_producers", topic)
        hint = Hint("`{}` has all of them; `{}` evicts them.", show, fence)
    return ProducerBusy(
        f"topic {topic} {what}",
        hint=hint,
        topic=topic,
        owner=owner.name if owner else None,
        publishers=[session.name for session in connected],
        waitingPublishers=len(waiting),
    )


def name_taken(view: ReadView, locks: Locks, topic: str, holder: ProducerSession) -> ProducerBusy:
    """Make the error for a name that a connected producer has."""
    return ProducerBusy(
        f"topic {topic} has a producer {holder.name} already: {described(view, locks, holder)}",
        hint=Hint(
            "Choose another name, or wait until that one has left: `{}` tells of it.",
            Action("store.reports.show_producers", topic),
        ),
        topic=topic,
        producerName=holder.name,
    )


def _counted(sessions: Sequence[ProducerSession], what: str) -> str:
    return f"{len(sessions)} producer{'s' if len(sessions) != 1 else ''} {what}"


def _list(view: ReadView, locks: Locks, sessions: Sequence[ProducerSession]) -> str:
    named = ", ".join(described(view, locks, session) for session in sessions[:_NAMED_MAX])
    return named + (", ..." if len(sessions) > _NAMED_MAX else "")


def fenced(
    topic: OpenTopic[ReadView],
    name: str | None,
    epoch: int | None,
    why: str | None = None,
    last_sequence_id: int | None = None,
) -> ProducerFenced:
    """Make the error for a producer that had a topic, or waited for the topic, and lost it.

    Args:
        epoch: the producer's epoch; None if the producer never had one.
        why: the reason, unless a different producer or an operator took the topic over.
    """
    view, topic_epoch = topic.view, topic.state.epoch
    now = ownership.find(view, topic.topic_id, topic_epoch)
    if why is None and now is not None and epoch != topic_epoch:
        # An operator's fence may have left the topic to the next waiting producer.
        after = ownership.find(view, topic.topic_id, epoch + 1) if epoch is not None else None
        why = _lost_to(view, after if after is not None and after.how == "fence" else now)
    return ProducerFenced(
        f"producer {name or '(unnamed)'} of topic {topic.name} is fenced: {why or 'its session ended'}",
        hint=Hint(
            "It can never publish again; what was acknowledged before stands. Connect a new producer, and see `{}`.",
            Action("store.reports.show_producers", topic.name),
        ),
        topic=topic.name,
        epoch=shown_epoch(epoch) if epoch is not None else None,
        topicEpoch=shown_epoch(topic_epoch),
        takenOverBy=now.session.name if now is not None and now.session and epoch != topic_epoch else None,
        lastSequenceId=last_sequence_id,
    )


def closed_words(owned: Ownership) -> str | None:
    """Describe who closed an owner's session, and when; None for an owner that ended otherwise."""
    if owned.ended_by != "closed" or owned.session is None or owned.ended_ms is None:
        return None
    return f"its session was closed at {rfc3339(owned.ended_ms)} by {owned.closed_by or owned.session.owner}"


def _lost_to(view: ReadView, taker: Ownership) -> str:
    """Describe the ownership that took a topic from a producer: owner, time and reason."""
    at = rfc3339(taker.granted_ms)
    if taker.session:
        return f"{taker.words} took the topic over at {at}"
    if taker.how == "fence":
        from storage import audit_trail

        reason = audit_trail.reason_of(view, taker.granted_ms, "producers fence", "transactions abort")
        said = f": {reason}" if reason else ""
        return f"the operator {taker.by} fenced its producers at {at}, epoch {taker.epoch}{said}"
    if taker.how == "failover":
        return f"the store moved to another server, as {taker.by} found at {at}, epoch {taker.epoch}"
    return f"the store was restored from a backup by {taker.by} at {at}, epoch {taker.epoch}"


def recreated(topic: str, name: str | None, epoch: int | None) -> ProducerFenced:
    """Make the error for a producer whose topic was deleted and created again."""
    return ProducerFenced(
        f"producer {name or '(unnamed)'} of topic {topic} is fenced: the topic was deleted and created again",
        hint="Connect a new producer.",
        topic=topic,
        epoch=shown_epoch(epoch) if epoch is not None else None,
        topicEpoch=None,
        takenOverBy=None,
        lastSequenceId=None,
    )
