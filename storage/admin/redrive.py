"""Redrive of dead letters by an operator, in steps of bounded size, each a store transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping

from storage.admin.audited_change import Changed, ChangeRequest, OfSubscription, change_subscription
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.subscription import catalogue as subscriptions, dead_letter
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redrive import Redrive, Redriven
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.names import full_topic_name
from storage.values.position import MessageId, Position

_ALL = 1 << 62
_NONE_EXAMINED = MessageId(0, -1)


class DeadLettersRedriven(NamedTuple):
    """The dead-letter topic, and the letters given back, found in the backlog already, and without an original."""

    dead_letter_topic: str
    redriven: int
    in_backlog: int
    originals_gone: int


def redrive_letters(
    engine: Engine,
    names: tuple[str, str],
    count: int | None,
    dead_letter_topic: str | None,
    request: ChangeRequest,
) -> Changed[OfSubscription[DeadLettersRedriven]]:
    """Redrive in steps, a store transaction each; a dry run drops each, and remembers what the step has done.

    Args:
        names: of the topic and the subscription.
    """
    room, is_last = _ALL if count is None else count, False
    total, examined, given = Redriven(0, 0, 0), _NONE_EXAMINED, dict[Position, int]()
    while not is_last:
        step = _Step(request.dry_run, room - total.redriven, dead_letter_topic, examined, given)
        result = change_subscription(
            engine, names, request, step.change, lambda effects: effects.redriven > 0
        )
        done, is_last, examined = result.effects.change, step.is_last, step.examined
        total = Redriven(
            total.redriven + done.redriven,
            total.in_backlog + done.in_backlog,
            total.originals_gone + done.originals_gone,
        )
        for at, messages in step.given.items() if request.dry_run else ():
            given[at] = given.get(at, 0) | messages
    whole = DeadLettersRedriven(done.dead_letter_topic, *total)
    return result._replace(effects=result.effects._replace(change=whole))


class _Step:
    """One store transaction of redrive.

    Attributes:
        is_last: after the change, whether the redrive is complete.
        examined: the last letter examined.
        given: the messages given back.
    """

    def __init__(
        self,
        dry_run: bool,
        room: int,
        dead_letter_topic: str | None,
        examined: MessageId,
        given_before: Mapping[Position, int],
    ) -> None:
        """Args:
        examined, given_before: in a dry run, the results of the steps before.
        """
        self._dry_run = dry_run
        self._room = room
        self._dead_letter_topic = dead_letter_topic
        self._given_before = given_before
        self._examined_before = self.examined = examined
        self.is_last = False
        self.given: Mapping[Position, int] = {}

    def change(self, topic: Topic, opened: OpenSubscription[WriteBatch]) -> DeadLettersRedriven:
        """Take the step."""
        batch, subscription, named = opened.view, opened.subscription, self._dead_letter_topic
        place = named or dead_letter.topic_of(topic, subscription)
        letters = topics.find(batch, place) if named is None else topics.get(batch, place)
        if letters is None:
            # The store makes the topic with the first dead letter.
            self.is_last = True
            return DeadLettersRedriven(full_topic_name(place), 0, 0, 0)
        if self._dry_run and self._examined_before != _NONE_EXAMINED:
            subscription.redriven[letters.topic_id] = self._examined_before
        redrive = Redrive(
            opened, topic, OpenTopic.load(batch, letters.topic_id), self._room, self._given_before
        )
        done, self.is_last = redrive.step()
        self.examined, self.given = subscription.redriven[letters.topic_id], redrive.given
        subscriptions.save(batch, subscription)
        return DeadLettersRedriven(letters.full_name, *done)
