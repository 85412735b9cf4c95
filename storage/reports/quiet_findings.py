"""Findings about quiet consumers: a living process that holds messages of subscriptions and acknowledges none.

One finding for each cause: the consumers of one process, and those of several processes on the same subscription, which
mostly wait for the same thing. Each rule is a pure function from the facts of the store to findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from storage.actions import Action, Hint, inspect
from storage.limits import QUIET_CONSUMER_MS
from storage.reports.finding import Finding, several, some, warning
from storage.reports.quiet_consumers import QuietConsumer
from storage.values.durations import short_duration
from storage.values.key_text import key_text
from storage.values.timestamps import rfc3339

if TYPE_CHECKING:
    from storage.reports.facts import Facts


def too_quiet(rows: Sequence[QuietConsumer]) -> list[QuietConsumer]:
    """The consumers that have acknowledged nothing for so long that it is worth a finding."""
    return [row for row in rows if row.quiet_ms > QUIET_CONSUMER_MS]


def quiet(facts: Facts) -> Iterator[Finding]:
    """Consumers that hold messages and acknowledge none."""
    for rows in _by_cause(too_quiet(facts.quiet_consumers)):
        first = rows[0]
        what = "; ".join([sentence(row) for row in rows[:3]])
        if len(rows) > 3:
            what += f"; and {several(len(rows) - 3, 'more consumer')} like it"
        stuck = next((row for row in rows if row.key_messages is not None), None)
        why, action = (_why(rows), _evict(first)) if stuck is None else (why_one_key(stuck), peek_of(stuck))
        yield warning("consumer-quiet", subscription_of(first), what, why, action)


def peek_of(row: QuietConsumer) -> Action:
    """A look at the messages of the key that a consumer is stuck with, or at the first ones of its subscription."""
    if row.key is None:
        return Action("store.reports.peek_messages", row.name, subscription=row.subscription)
    return Action("store.reports.peek_key", row.name, subscription=row.subscription, key=row.key)


def _evict(row: QuietConsumer) -> Action:
    return Action(
        "store.admin.subscriptions.evict_consumers",
        row.name,
        row.subscription,
        row.consumer_name,
        dry_run=True,
    )


def why_one_key(row: QuietConsumer) -> Hint:
    """The ways out of a key with a message that its consumer does not get over."""
    assert row.first_message_id is not None, "a consumer that holds messages of a key holds a first one"
    published = rfc3339(row.first_published_at_ms or 0)
    return Hint(
        "All of them are of one key, so that the next worker gets the same message first and may stick at it too: do "
        "not evict the consumer before you have looked at {}, published {}. Then acknowledge the message with `{}`, or "
        "have messages that were redelivered too often moved aside: `{}`.",
        row.first_message_id,
        published,
        Action(
            "store.admin.acknowledgements.acknowledge_messages", row.name, row.subscription,
            str(row.first_message_id),
        ),
        Action(
            "store.admin.subscriptions.update_subscription", row.name, row.subscription, max_redeliver_count="3"
        ),
    )  # fmt: skip


def subscription_of(row: QuietConsumer) -> str:
    """`subscription settle of topic payments`."""
    return f"subscription {row.subscription} of topic {row.name}"


def sentence(row: QuietConsumer) -> str:
    """`subscription S of topic T: consumer NAME (pid 7 on HOST, since TIME) holds 5 messages …`."""
    pid = f"pid {row.pid} on {row.owner.host}, since {rfc3339(row.connected_since_at_ms)}"
    return (
        f"{subscription_of(row)}: consumer {row.consumer_name} ({pid}) holds {held(row)} "
        f"and has acknowledged none for {short_duration(row.quiet_ms)}"
    )


def held(row: QuietConsumer) -> str:
    """`5 messages`, `200 messages, all of key k,` or `20 of the 200 messages of key k`."""
    if row.key_messages is None:
        return several(row.messages, "message")
    key = "one key" if row.key is None else f"key {key_text(row.key)}"
    if row.key_messages > row.messages:
        return f"{row.messages:,} of the {several(row.key_messages, 'message')} of {key}"
    return f"{several(row.messages, 'message')}, all of {key},"


def behind_its_key(row: QuietConsumer) -> int:
    """Count the messages of the key that wait until those in flight are acknowledged."""
    return 0 if row.key_messages is None else max(0, row.key_messages - row.messages)


def _why(rows: Sequence[QuietConsumer]) -> Hint:
    processes = {row.pid: row.owner for row in rows}
    owner = next(iter(processes.values()))
    lives = (
        f"Process {owner.place} ({owner.program}) lives" if len(processes) == 1 else "Their processes live"
    )
    return Hint(
        "{}: see with `{}` what it does; it may wait for something else. If it will not go on, end it, or take "
        "the messages from it: others are handed them, some a second time, and its next call fails.",
        lives,
        inspect(owner.pid, owner.host),
    )


def _by_cause(rows: Sequence[QuietConsumer]) -> list[list[QuietConsumer]]:
    """The consumers in groups: two of one process, or of one subscription, are in the same group."""
    groups: list[list[QuietConsumer]] = []
    for row in rows:
        joined = [row]
        for group in [group for group in groups if any(_is_together(row, other) for other in group)]:
            groups.remove(group)
            joined = group + joined
        groups.append(joined)
    return groups


def _is_together(one: QuietConsumer, other: QuietConsumer) -> bool:
    same_place = (one.topic, one.subscription) == (other.topic, other.subscription)
    return one.owner == other.owner or same_place


def quiet_names(facts: Facts) -> str | None:
    """The quiet consumers by name; None without one."""
    rows = too_quiet(facts.quiet_consumers)
    return some([f"{row.consumer_name} of {subscription_of(row)}" for row in rows]) if rows else None
