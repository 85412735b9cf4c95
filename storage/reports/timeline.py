"""The timeline of a topic: ledgers, open transactions, maxReadPosition, cursors, and the messages each blocker holds.

`transactions blocked`, `explain` and `timeline`, and the report page all show this one model. A model is made from one
view, by running counts and without reading blocked messages (`storage/reports/blocking_chain.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.json_form import Flat
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.reports import stats, stats_internal
from storage.reports.blocking_chain import OLDEST_STEPS, Chain, Link, oldest_blocked_ms
from storage.reports.message_scale import MessageScale, Place, Stretch
from storage.reports.stats import Readable, SubscriptionStats
from storage.reports.stats_internal import LedgerRow
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.subscription.isolation import IsolationLevel, OnOpen
from storage.topic import catalogue as topics, log, state as topic_states
from storage.topic.catalogue import Topic
from storage.topic.producers.errors import shown_epoch
from storage.topic.state import TopicState
from storage.txn import record as records, runs
from storage.txn.owner_state import GONE, users_of
from storage.txn.record import TransactionRecord
from storage.txn.uncommitted_entries import TopicPart
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID

DRAWN_MAX = 40
"""The most open transactions and subscriptions of a topic with places for a drawing."""

RUNS_SHOWN = 100
"""The most ranges of neighbouring entries listed for one transaction."""


class Holder(NamedTuple):
    """An open transaction, its process, and its age."""

    txn_id: TxnID
    version: int
    labels: dict[str, str]
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str
    orphaned: bool
    begin_at_ms: int
    age_ms: int
    idle_ms: int
    deadline_in_ms: int
    overdue: bool


class Written(NamedTuple):
    """The messages of a transaction on a topic, with their positions and producers."""

    messages: int
    bytes: int
    first_position: Position
    last_position: Position
    positions: list[str]
    producers: list[str]


class IfEnded(NamedTuple):
    """The effect of ending one transaction now: the new maxReadPosition, and the messages freed."""

    max_read_position_before: Position
    max_read_position_after: Position
    frees: int
    stays_blocked: int


class Blocking(NamedTuple):
    """An open transaction of a topic, with the committed messages held back behind its own.

    Attributes:
        place: rank by first message; 1 for the transaction that holds maxReadPosition.
        unblocks: messages freed once this transaction and all earlier ones have ended, by name of subscription.
        frees_where_skipped: messages that this transaction alone blocks on subscriptions with `--on-open skip`.
    """

    holder: Flat[Holder]
    topic: str
    name: str
    place: int
    written: Flat[Written]
    holds_from: Position
    holds_through: Position
    frees: int
    unblocks: dict[str, int]
    frees_where_skipped: int
    if_ended: IfEnded
    blocked_next: TxnID | None


class BlockingRow(NamedTuple):
    """A blocking transaction, with the number and age of all blocked messages of the topic."""

    blocking: Flat[Blocking]
    as_of_at_ms: int
    blocked_messages: int
    oldest_blocked_at_ms: int | None


class LedgerOnAxis(NamedTuple):
    """A ledger, and the numbers of entries and messages in earlier ledgers: the place of the ledger on an axis."""

    ledger: Flat[LedgerRow]
    entries_before: int
    messages_before: int


class Timeline(NamedTuple):
    """The timeline of one topic. Ledgers and open transactions are in the order of the log, subscriptions by name.

    Attributes:
        places: the positions of a drawing as numbers of messages; empty in a timeline that is not drawn.
        stretches: for each subscription the states of its messages, in the order of the log; empty likewise.
    """

    topic: str
    name: str
    as_of_at_ms: int
    first_position: Position | None
    max_read_position: Position
    last_confirmed_entry: Position
    topic_epoch: int | None
    msg_count: int
    marker_count: int
    ongoing_txn_count: int
    aborted_txn_count: int
    uncommitted_messages: int
    aborted_messages: int
    readable: Flat[Readable]
    ledgers: list[LedgerOnAxis]
    open_transactions: list[Blocking]
    subscriptions: dict[str, SubscriptionStats]
    places: list[Place]
    stretches: dict[str, list[Stretch]]


def topic_timeline(connection: Connection, name: str) -> Timeline:
    """Return the timeline of one topic.

    Raises:
        TopicNotFound
    """
    with connection.view() as view:
        return model(view, connection.environment.locks, topics.get(view, name), drawn=True)


def topic_timelines(connection: Connection) -> list[Timeline]:
    """Return the timelines of all topics, from one view."""
    with connection.view() as view:
        return models(view, connection.environment.locks, drawn=True)


def models(view: ReadView, locks: Locks, *, drawn: bool = False) -> list[Timeline]:
    """Return the timelines of all topics in a view."""
    return [model(view, locks, topic, drawn=drawn) for topic in topics.every(view)]


def list_blocking(connection: Connection, name: str | None = None) -> list[BlockingRow]:
    """Return the open transactions of one topic, or of all topics, in order and from one view.

    Raises:
        TopicNotFound
    """
    rows = []
    with connection.view() as view:
        locks, now_ms = connection.environment.locks, view.clock.wall_ms()
        for topic in [topics.get(view, name)] if name is not None else topics.every(view):
            topic_state = topic_states.load(view, topic.topic_id)
            chain = Chain(view, topic.topic_id, topic_state)
            blocked = sum(link.frees for link in chain.links)
            oldest = oldest_blocked_ms(view, topic.topic_id, topic_state) if blocked else None
            rows += [
                BlockingRow(blocking, now_ms, blocked, oldest)
                for blocking in blocking_in(view, locks, topic, chain)
            ]
    return rows


def model(view: ReadView, locks: Locks, topic: Topic, *, drawn: bool = False) -> Timeline:
    """Return the timeline of one topic in a view.

    Args:
        drawn: with the places of positions and the states of messages that a drawing needs.
    """
    topic_state, topic_id = topic_states.load(view, topic.topic_id), topic.topic_id
    first = log.first_entry(view, topic_id)
    ledgers, attached = _ledgers(view, topic, topic_state), list(subscriptions.every(view, topic_id))
    rows = {
        subscription.name: stats.subscription_of(view, locks, topic_state, subscription)
        for subscription in attached
    }
    blocking = []
    if topic_state.open_txns:
        blocking = blocking_in(view, locks, topic, Chain(view, topic_id, topic_state))
    scale = MessageScale(view, topic_id, topic_state, sum(row.ledger.messages for row in ledgers))
    return Timeline(
        topic=topic.full_name, name=topic.name, as_of_at_ms=view.clock.wall_ms(),
        first_position=first.position if first else None,
        max_read_position=topic_state.max_read_position, last_confirmed_entry=topic_state.last_confirmed_position,
        topic_epoch=shown_epoch(topic_state.epoch),
        msg_count=topic_state.messages - topic_state.messages_trimmed, marker_count=topic_state.markers,
        ongoing_txn_count=topic_state.open_txns, aborted_txn_count=topic_state.aborted_txns,
        uncommitted_messages=topic_state.uncommitted, aborted_messages=topic_state.aborted_messages,
        readable=stats.readable(view, topic, topic_state, OLDEST_STEPS),
        ledgers=ledgers, open_transactions=blocking, subscriptions=rows,
        places=scale.places(_drawn_positions(topic_state, blocking, rows)) if drawn else [],
        stretches={member.name: scale.stretches(member) for member in attached[:DRAWN_MAX]} if drawn else {},
    )  # fmt: skip


def _drawn_positions(
    topic_state: TopicState, blocking: list[Blocking], rows: dict[str, SubscriptionStats]
) -> Iterator[Position]:
    """Yield every position on a drawing of a topic."""
    yield from (topic_state.max_read_position, topic_state.last_confirmed_position)
    for row in list(rows.values())[:DRAWN_MAX]:
        yield from (row.mark_delete_position, row.read_position)
    for item in blocking[:DRAWN_MAX]:
        written = item.written
        yield from (item.holds_from, item.holds_through, written.first_position, written.last_position)
        for run in written.positions:
            first, _, last = run.partition("..")
            yield from (Position.parse(first), Position.parse(last or first))


class Waiting(NamedTuple):
    """The committed messages of a topic that readers wait for, the oldest, and the transaction in front.

    `oldest_at_ms` is None where it is not known.
    """

    messages: int
    oldest_at_ms: int | None
    behind: Blocking | None


def waiting(model: Timeline) -> Waiting:
    """Return the committed messages that readers of a topic wait for.

    So it is with every committed message behind maxReadPosition, unless all subscriptions of the topic pass over open
    transactions, some with `--on-open skip`: of these each waits for messages with a blocked key alone.
    """
    chain, rows = model.open_transactions, model.subscriptions.values()
    skipping = [row for row in rows if row.on_open == OnOpen.SKIP.value]
    levels = {row.subscription_isolation_level for row in rows if row not in skipping}
    if not skipping or levels - {IsolationLevel.READ_UNCOMMITTED.value}:
        messages = model.readable.blocked_messages
        return Waiting(
            messages, model.readable.oldest_blocked_at_ms, chain[0] if chain and messages else None
        )
    messages = max(row.blocked for row in skipping)
    first = max(chain, key=lambda blocking: blocking.frees_where_skipped, default=None) if messages else None
    return Waiting(messages, None, first)


def _ledgers(view: ReadView, topic: Topic, topic_state: TopicState) -> list[LedgerOnAxis]:
    rows, before, messages = [], 0, 0
    for ledger in log.ledgers(view, topic.topic_id, topic_state):
        rows.append(LedgerOnAxis(stats_internal.ledger_row(ledger), before, messages))
        before, messages = before + ledger.entries, messages + ledger.messages
    return rows


def blocking_in(
    view: ReadView, locks: Locks, topic: Topic, chain: Chain, only: int | None = None
) -> list[Blocking]:
    """Return the open transactions of a topic by first message; the first transaction holds maxReadPosition.

    Args:
        only: the number of the one transaction to return; None for all.
    """
    attached = list(subscriptions.every(view, topic.topic_id))
    skipping = [subscription.name for subscription in attached if subscription.skips]
    waiting = {
        subscription.name: chain.unblocks(subscription, cursors.load(view, subscription.subscription_id))
        for subscription in attached
    }
    rows = []
    for index, link in enumerate(chain.links):
        if only not in (None, link.txn):
            continue
        following = chain.links[index + 1 : index + 2]
        rows.append(Blocking(
            holder=holder(view, locks, records.get(view, link.txn)),
            topic=topic.full_name, name=topic.name, place=index + 1,
            written=_written(view, topic, link),
            holds_from=link.first, holds_through=link.through, frees=link.frees,
            unblocks={name: counts[index] for name, counts in waiting.items()},
            frees_where_skipped=sum(waiting[name][index] for name in skipping),
            if_ended=_if_ended(view, chain, index),
            blocked_next=TxnID(following[0].txn) if following else None,
        ))  # fmt: skip
    return rows


def _written(view: ReadView, topic: Topic, link: Link) -> Written:
    part = link.part
    ranges = runs.ranges(view, topic.topic_id, link.txn, RUNS_SHOWN)
    return Written(
        part.messages, part.bytes, link.first, Position(*part.last),
        [f"{a}" if a == b else f"{a}..{b}" for a, b in ranges],
        producers_of(view, topic.topic_id, part),
    )  # fmt: skip


def producers_of(view: ReadView, topic_id: int, part: TopicPart) -> list[str]:
    """Return the known producers of a transaction's messages on a topic, without reading every message.

    Known are the producers with sequence ids, and the producers of the first and the last message.
    """
    names = {name for name, _, _ in part.sequences}
    for position in (part.first, part.last):
        entry = log.stored(view, topic_id, position)
        names.add(entry.producer_name)
    return sorted(names)


def _if_ended(view: ReadView, chain: Chain, index: int) -> IfEnded:
    """Return the effect of ending this transaction alone.

    Only the end of the first transaction moves maxReadPosition: to the entry before the first message of the second,
    or, without a second, to the marker of the end, which becomes the last entry of the topic.
    """
    links, topic_state = chain.links, chain.topic_state
    now, total = topic_state.max_read_position, sum(link.frees for link in links)
    if index:
        after, frees = now, 0
    elif len(links) > 1:
        after, frees = links[0].through, links[0].frees
    else:
        after, frees = log.next_position(topic_state, view.clock.wall_ms()), links[0].frees
    return IfEnded(now, after, frees, total - frees)


def holder(view: ReadView, locks: Locks, record: TransactionRecord) -> Holder:
    """Return an open transaction with the state of its process."""
    users, now_ms = users_of(view, locks, record), view.clock.wall_ms()
    return Holder(
        record.id, record.version, record.labels, *users, orphaned=users[1] in GONE,
        begin_at_ms=record.begun_ms, age_ms=record.age_ms(now_ms),
        idle_ms=record.idle_ms(view.now_ns),
        deadline_in_ms=record.left_ms(view.now_ns), overdue=record.is_overdue(view.now_ns),
    )  # fmt: skip
