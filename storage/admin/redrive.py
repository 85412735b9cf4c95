"""Redrive of dead letters by an operator, in steps of bounded size, each a store transaction of its own."""

from __future__ import annotations

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

_ALL = 1 << 62


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
    """Redrive in steps; a dry run takes all steps in one store transaction, and drops it.

    Args:
        names: of the topic and the subscription.
    """
    room, is_last = _ALL if count is None else count, False
    total = Redriven(0, 0, 0)
    while not is_last:

        def change(
            topic: Topic, opened: OpenSubscription[WriteBatch], before: int = total.redriven
        ) -> DeadLettersRedriven:
            nonlocal is_last
            batch, subscription = opened.view, opened.subscription
            place = dead_letter_topic or dead_letter.topic_of(topic, subscription)
            letters = topics.find(batch, place) if dead_letter_topic is None else topics.get(batch, place)
            done, is_last = Redriven(0, 0, 0), letters is None
            if letters is None:
                # The store makes the topic with the first dead letter.
                return DeadLettersRedriven(full_topic_name(place), *done)
            while not is_last:
                left = room - before - done.redriven
                more, is_last = Redrive(opened, topic, OpenTopic.load(batch, letters.topic_id), left).step()
                done = _sum(done, more)
                if not request.dry_run:
                    break
            subscriptions.save(batch, subscription)
            return DeadLettersRedriven(letters.full_name, *done)

        result = change_subscription(engine, names, request, change, lambda effects: effects.redriven > 0)
        step = result.effects.change
        total = _sum(total, Redriven(step.redriven, step.in_backlog, step.originals_gone))
    whole = DeadLettersRedriven(step.dead_letter_topic, *total)
    return result._replace(effects=result.effects._replace(change=whole))


def _sum(one: Redriven, two: Redriven) -> Redriven:
    return Redriven(*map(sum, zip(one, two, strict=True)))
