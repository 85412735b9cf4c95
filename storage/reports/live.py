"""The facts of a live screen: health, open transactions, and the counters whose differences are rates, from one view.

Rates are not stored: two looks at the counters, each with the time of the look, give them (`rates_between`, pure). A
counter that went back belongs to an object that was deleted and created anew, and counts from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TypeVar

from storage.engine import Engine
from storage.reports import overview, transactions
from storage.reports.overview import Overview
from storage.reports.transactions import TransactionRow
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics, state as topic_states
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple

K = TypeVar("K")


class LiveCounters(NamedTuple):
    """Stored counters at one moment.

    Attributes:
        at_ns: the boot clock.
        commits: durable commits of the store.
        conflicts: lost conflicts between transactions over keys of tables.
        messages_in: messages appended, by the full name of the topic.
        messages_out: messages delivered, by full name of the topic and name of the subscription.
        aborts: aborted transactions with messages, by the full name of the topic.
    """

    at_ns: int
    commits: int
    conflicts: int
    messages_in: dict[str, int]
    messages_out: dict[tuple[str, str], int]
    aborts: dict[str, int]


class Rates(NamedTuple):
    """Numbers a second, as the fields of `LiveCounters`."""

    commits: float
    conflicts: float
    messages_in: dict[str, float]
    messages_out: dict[tuple[str, str], float]
    aborts: dict[str, float]


class LiveFacts(NamedTuple):
    """Health, the oldest open transactions, and the counters."""

    overview: Overview
    transactions: list[TransactionRow]
    counters: LiveCounters


def live_facts(engine: Engine, transactions_max: int) -> LiveFacts:
    """Return the facts from a new view, which is closed before the return."""
    connection = engine.connection
    present = overview.present_facts(connection)
    messages_in, messages_out, aborts = {}, {}, {}
    with connection.view() as view:
        for topic in topics.every(view):
            state, name = topic_states.load(view, topic.topic_id), topic.full_name
            messages_in[name], aborts[name] = state.messages, state.aborted_txns
            for subscription in subscriptions.every(view, topic.topic_id):
                cursor = cursors.load(view, subscription.subscription_id)
                messages_out[name, subscription.name] = cursor.delivered
        names = transactions.topic_names(view)
        oldest = islice(transactions.open_txns(view), transactions_max)
        return LiveFacts(
            overview.overview_of_view(view, engine, present),
            [transactions.row_of(view, engine, records.get(view, txn), names) for txn in oldest],
            LiveCounters(
                connection.clock.boot_ns(), view.superblock.commits, view.superblock.last_conflict,
                messages_in, messages_out, aborts,
            ),
        )  # fmt: skip


def rates_between(before: LiveCounters, now: LiveCounters) -> Rates | None:
    """Return the rates between two looks; None where no time has passed."""
    seconds = (now.at_ns - before.at_ns) / 1e9
    if seconds <= 0:
        return None
    return Rates(
        (now.commits - before.commits) / seconds,
        (now.conflicts - before.conflicts) / seconds,
        _rates(before.messages_in, now.messages_in, seconds),
        _rates(before.messages_out, now.messages_out, seconds),
        _rates(before.aborts, now.aborts, seconds),
    )


def _rates(before: Mapping[K, int], now: Mapping[K, int], seconds: float) -> dict[K, float]:
    """A new object has appended or delivered all of its count since the look before."""
    rates = {}
    for name, count in now.items():
        start = before.get(name, 0)
        rates[name] = (count - start if count >= start else count) / seconds
    return rates
