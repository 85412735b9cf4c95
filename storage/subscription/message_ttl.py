"""Time to live: acknowledge messages of an age for every subscription that has not, in steps of bounded size.

Messages go in the order of the log, up to the first one that is younger, and up to maxReadPosition at most: every
transaction there is decided. Messages with a pending acknowledgement are left alone until their transaction ends.
"""

from __future__ import annotations

from itertools import islice

from storage import audit_trail
from storage.disk.view import ReadView, WriteBatch
from storage.limits import (
    DISPATCH_SCAN_ENTRIES_MAX,
    ENTRIES_OF_A_SUBSCRIPTION,
    EXPIRED_NOTED_MS,
    FORCED_STEP_SUBSCRIPTIONS,
)
from storage.process.identity import ProcessIdentity
from storage.subscription import catalogue as subscriptions, cursor as cursors, forced_acks
from storage.subscription.behind import lowest_ledger, subscriptions_behind
from storage.subscription.hard_trimming import Loss, added, with_name
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log, publish_times
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

REASON = "ttl"
"""The reason in the audit trail."""


class TtlStep(NamedTuple):
    """The messages acknowledged by a step, and whether another step has work."""

    expired: list[Loss]
    has_more: bool


class MessagesExpired(NamedTuple):
    """Messages acknowledged for their age, as the audit trail stores it."""

    expired: list[Loss]


def step(topic: OpenTopic[WriteBatch], ttl_ms: int, entries_max: int) -> TtlStep:
    """Acknowledge messages past the time to live, examining at most so many entries and a few that are pending."""
    batch, expired, has_more, room = topic.view, list[Loss](), False, entries_max
    through = _last_expired(topic, batch.now_ms - ttl_ms, lowest_ledger(batch, topic.topic_id))
    for subscription in subscriptions_behind(batch, topic.topic_id, through):
        if room <= 0:
            has_more = True
            break
        opened = OpenSubscription(batch, subscription)
        before = opened.cursor.mark_delete
        messages, entries, is_done = _expire(opened, through, room)
        if messages or opened.cursor.mark_delete > before:
            # A subscription with nothing but pending messages uses up no room, and cannot hold up the others.
            room -= max(entries, ENTRIES_OF_A_SUBSCRIPTION)
        has_more |= not is_done
        opened.cursor.expired += messages
        expired = added(expired, [Loss(subscription.name, messages)])
    return TtlStep(expired, has_more)


def _last_expired(topic: OpenTopic[ReadView], newest_ms: int, first_ledger: int) -> Position:
    """The last entry within maxReadPosition before the first one, from a ledger on, that is younger than a time."""
    view, topic_id, state = topic.view, topic.topic_id, topic.state
    young = publish_times.first_at(view, topic_id, state, newest_ms + 1, first_ledger)
    return min(log.previous_position(view, topic_id, young), state.max_read)


def _expire(
    opened: OpenSubscription[WriteBatch], through: Position, entries_max: int
) -> tuple[int, int, bool]:
    """Return messages acknowledged, entries examined, and whether nothing is left for another step."""
    before = after = opened.cursor.mark_delete
    messages = entries = 0
    while after < through and entries < entries_max:
        room = entries_max - entries
        if not messages and after > before:
            room = DISPATCH_SCAN_ENTRIES_MAX  # what is pending in front must not keep the rest for ever
        done = forced_acks.acknowledge(opened, after, through, room)
        after, messages, entries = done.position, messages + done.messages, entries + done.entries
    has_moved = messages > 0 or opened.cursor.mark_delete > before
    return messages, entries, after >= through or not has_moved


def note(topic: OpenTopic[WriteBatch], process: ProcessIdentity, *, is_run: bool) -> None:
    """Record expired messages in the audit trail: at the end of a run, and on the way of writes once an hour.

    Writes look at the first subscriptions of a topic; a run looks at all subscriptions.
    """
    batch, expired = topic.view, list[Loss]()
    noted = islice(subscriptions.every(batch, topic.topic_id), None if is_run else FORCED_STEP_SUBSCRIPTIONS)
    for subscription in noted:
        cursor = cursors.load(batch, subscription.subscription_id)
        messages, age_ms = cursor.expired - cursor.expired_noted, batch.now_ms - cursor.expired_noted_ms
        if messages and (is_run or not 0 <= age_ms < EXPIRED_NOTED_MS):
            cursor.expired_noted, cursor.expired_noted_ms = cursor.expired, batch.now_ms
            expired.append(Loss(subscription.name, messages))
    if expired:
        name, effects = with_name(topic).name, MessagesExpired(expired)
        audit_trail.record(batch, process, "messages expired", name, REASON, effects, audit_trail.Kind.EXPIRY)
