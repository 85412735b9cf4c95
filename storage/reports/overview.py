"""The health of a whole store, as `status`, `doctor` and `check` show it, with findings.

Topics, transactions, producers and tables come from one view, by the counts of `timeline.py`: no blocked message is
read. The writer gate, LMDB's readers and the disk are read from the running system. Readers are listed before the view
is opened, because the view would take a slot of the reader table.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.schema import PART_SUBSCRIPTION, PART_TABLE
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.json_form import Flat
from storage.limits import ACTIVE_OWNER_MS, HOLDERS_SHOWN, READERS_MAX
from storage.process.locks import Locks
from storage.reports import (
    backlog,
    findings,
    livelock,
    producers,
    quiet_consumers,
    retention,
    stats,
    store_info,
    timeline,
    transactions,
)
from storage.reports.facts import (
    Facts,
    HolderFacts,
    KeyHolder,
    LaterBlocker,
    MessageHolder,
    Present,
    QueueFacts,
    ReaderFacts,
    StoppedOwner,
    StoreFacts,
    SubscriptionFacts,
    TableFacts,
    TopicFacts,
    TransactionFacts,
)
from storage.reports.finding import Finding
from storage.reports.quiet_consumers import QuietConsumer
from storage.reports.stats import SubscriptionStats
from storage.reports.timeline import Timeline
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.table import catalogue as tables, intent as intents, state as table_states
from storage.table.state import TableState
from storage.topic import catalogue as topics, state as topic_states
from storage.topic.catalogue import Topic
from storage.topic.producers import session_index
from storage.topic.producers.errors import shown_epoch
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches
from storage.txn.owner_state import living_process, users_of
from storage.values.key_text import key_text
from storage.values.named_tuple import NamedTuple

KEYS_SHOWN = 5


class Overview(NamedTuple):
    """The facts of a store, and the findings, the worst first."""

    verdict: str
    facts: Flat[Facts]
    findings: list[Finding]


def store_overview(engine: Engine) -> Overview:
    """Return the health of the store, from a new view."""
    present = present_facts(engine.connection)
    with engine.connection.view() as view:
        return overview_of_view(view, engine, present)


def overview_of_view(view: ReadView, engine: Engine, present: Present) -> Overview:
    """Return the health of the store in a view.

    Args:
        present: the result of `present_facts` from before the view was opened.
    """
    surveyed = [_surveyed(view, engine.locks, topic) for topic in topics.every(view)]
    return _overview(view, engine, surveyed, present, keys_shown=KEYS_SHOWN)


def present_facts(connection: Connection) -> Present:
    """Return the facts outside of any view: LMDB's readers, and the process in the writer gate."""
    rows = store_info.list_readers(connection)
    if not connection.environment.has_directory:
        oldest = max(rows, key=lambda row: row.age_ms or 0, default=None)
        readers = ReaderFacts(None, None, len(rows), oldest)
        return Present(readers, store_info.gate_holder(connection))
    reading = [row for row in rows if row.behind is not None]
    oldest = max(reading, key=lambda row: row.behind or 0, default=None)
    readers = ReaderFacts(len(rows), READERS_MAX, len(reading), oldest)
    return Present(readers, store_info.gate_holder(connection))


def overview_in(view: ReadView, engine: Engine, models: list[Timeline], present: Present) -> Overview:
    """Return the health of the store in a view, without keys of tables.

    Args:
        models: the timelines of all topics, from the same view.
        present: the result of `present_facts` from before the view was opened.
    """
    surveyed = [_Surveyed(_topic(model), model.subscriptions) for model in models]
    return _overview(view, engine, surveyed, present, keys_shown=0)


class _Surveyed(NamedTuple):
    """The facts of a topic, and the figures of its subscriptions by name."""

    facts: TopicFacts
    subscriptions: dict[str, SubscriptionStats]


def _surveyed(view: ReadView, locks: Locks, topic: Topic) -> _Surveyed:
    """Survey a topic. One without open transactions is told by its state: no message of it is blocked."""
    state = topic_states.load(view, topic.topic_id)
    if state.open_txns:
        model = timeline.model(view, locks, topic)
        return _Surveyed(_topic(model), model.subscriptions)
    rows = {
        subscription.name: stats.subscription_of(view, locks, state, subscription)
        for subscription in subscriptions.every(view, topic.topic_id)
    }
    return _Surveyed(TopicFacts(
        topic=topic.full_name, name=topic.name, msg_count=state.messages - state.messages_trimmed,
        max_read_position=state.max_read_position, last_confirmed_entry=state.last_confirmed_position,
        topic_epoch=shown_epoch(state.epoch), ongoing_txn_count=0, blocked_messages=0, oldest_blocked_at_ms=None,
        uncommitted_messages=state.uncommitted, subscriptions=len(rows),
        visible=max((row.visible for row in rows.values()), default=0), blocked_by=None, blocked_by_age_ms=None,
        blocked_next=[],
    ), rows)  # fmt: skip


def _overview(
    view: ReadView, engine: Engine, surveyed: list[_Surveyed], present: Present, keys_shown: int
) -> Overview:
    """As `overview_in`.

    Args:
        keys_shown: the most keys listed for one transaction on one table.
    """
    connection, locks, begun = engine.connection, engine.locks, transactions.open_txns(view)
    facts = Facts(
        as_of_at_ms=view.clock.wall_ms(),
        store=StoreFacts(
            store_info.info_in(view, connection, present.readers.in_use), store_info.disk_space(connection)
        ),
        readers=present.readers, writer_gate=present.writer_gate, clock_skew_ms=_clock_skew_ms(view),
        topics=[topic.facts for topic in surveyed],
        subscriptions=_subscriptions(view, locks, begun, surveyed),
        transactions=_transactions(view, engine, begun), producers=_queues(view, locks),
        tables=_tables(view, locks, begun, keys_shown),
        contended_keys=livelock.contended_keys(view, shows_keys=keys_shown > 0),
        retention_held=retention.held_topics(view),
        forgotten_subscriptions=retention.forgotten_subscriptions(view, locks),
        quiet_consumers=_quiet_consumers(view, connection, surveyed, shows_keys=keys_shown > 0),
    )  # fmt: skip
    judged = findings.judge(facts)
    return Overview(findings.verdict(judged), facts, judged)


def _quiet_consumers(
    view: ReadView, connection: Connection, surveyed: list[_Surveyed], *, shows_keys: bool
) -> list[QuietConsumer]:
    """The consumers that hold messages, of the topics with messages in flight."""
    in_use = [topic for topic, rows in surveyed if any(row.unacked_messages for row in rows.values())]
    named = [topics.get(view, topic.topic) for topic in in_use]
    return quiet_consumers.quiet_consumers(view, connection.environment, named, shows_keys=shows_keys)


def _clock_skew_ms(view: ReadView) -> int | None:
    """The movement of the wall clock against the boot clock; None before the first commit of this boot."""
    if not view.is_clock_running:
        return None
    return (view.clock.wall_ns() - view.now_ns - view.superblock.wall_offset_ns) // 1_000_000


def _topic(model: Timeline) -> TopicFacts:
    waiting = timeline.waiting(model)
    blocker = waiting.behind.holder if waiting.behind is not None else None
    return TopicFacts(
        topic=model.topic, name=model.name, msg_count=model.msg_count,
        max_read_position=model.max_read_position, last_confirmed_entry=model.last_confirmed_entry,
        topic_epoch=model.topic_epoch, ongoing_txn_count=model.ongoing_txn_count,
        blocked_messages=waiting.messages, oldest_blocked_at_ms=waiting.oldest_at_ms,
        uncommitted_messages=model.uncommitted_messages, subscriptions=len(model.subscriptions),
        visible=max((row.visible for row in model.subscriptions.values()), default=0),
        blocked_by=blocker.txn_id if blocker is not None else None,
        blocked_by_age_ms=blocker.age_ms if blocker is not None else None,
        blocked_next=[
            LaterBlocker(link.holder.txn_id, link.frees)
            for link in model.open_transactions
            if blocker is not None and link.holder.txn_id != blocker.txn_id and link.frees
            and link.holder.idle_ms > ACTIVE_OWNER_MS
        ][:HOLDERS_SHOWN],
    )  # fmt: skip


def _subscriptions(
    view: ReadView, locks: Locks, begun: list[int], surveyed: list[_Surveyed]
) -> list[SubscriptionFacts]:
    """The subscriptions of all topics, with the transactions that hold messages."""
    holders: dict[int, list[int]] = {}
    for txn in begun:
        for subscription_id in touches(view, txn, PART_SUBSCRIPTION):
            holders.setdefault(subscription_id, []).append(txn)
    return [
        SubscriptionFacts(
            topic=topic.topic, name=topic.name, subscription=name, type=row.type,
            subscription_isolation_level=row.subscription_isolation_level, on_open=row.on_open,
            visible=row.visible, blocked=row.blocked, delayed=row.delayed, uncommitted=row.uncommitted,
            pending=row.pending,
            unacked_messages=row.unacked_messages, verdict=row.verdict, consumers=row.consumers,
            held_by=_message_holders(view, locks, holders, topic.topic, name) if row.pending else [],
        )
        for topic, rows in surveyed
        for name, row in rows.items()
    ]  # fmt: skip


def _message_holders(
    view: ReadView, locks: Locks, holders: dict[int, list[int]], topic_name: str, name: str
) -> list[MessageHolder]:
    topic = topics.get(view, topic_name)
    subscription = subscriptions.get(view, topic, name)
    topic_state, cursor = (
        topic_states.load(view, topic.topic_id),
        cursors.load(view, subscription.subscription_id),
    )
    return [
        MessageHolder(
            _holder(view, locks, txn), backlog.pending_in(view, topic_state, subscription, cursor, txn)
        )
        for txn in holders.get(subscription.subscription_id, [])
    ]


def _transactions(view: ReadView, engine: Engine, begun: list[int]) -> TransactionFacts:
    locks, names = engine.locks, transactions.topic_names(view)
    orphans = [txn for txn in reaper.orphaned(view, locks) if txn in set(begun)]
    late = sorted({*reaper.overdue(view), *orphans})
    living = {txn: living_process(_holder(view, locks, txn)) for txn in begun}
    stopped = {txn: user.process.pid for txn, user in living.items() if user and user.state == "stopped"}
    rows = {
        txn: transactions.row_of(view, engine, records.get(view, txn), names)
        for txn in {*late, *stopped, *begun[:1]}
    }
    return TransactionFacts(
        open=len(begun), oldest=rows[begun[0]] if begun else None, late=[rows[txn] for txn in late],
        stopped=[StoppedOwner(rows[txn], pid) for txn, pid in stopped.items()],
    )  # fmt: skip


def _queues(view: ReadView, locks: Locks) -> list[QueueFacts]:
    """Topics with a living producer in the queue."""
    queues = []
    for topic in topics.every(view):
        if session_index.waiting(view, topic.topic_id) == 0:
            continue
        living = [row for row in producers.rows_of(view, locks, topic) if row.alive]
        waiting = [row for row in living if row.is_waiting]
        if waiting:
            before = next((row for row in living if not row.is_waiting), None)
            queues.append(QueueFacts(topic.full_name, topic.name, len(waiting), waiting[0], before))
    return queues


def _tables(view: ReadView, locks: Locks, begun: list[int], keys_shown: int) -> list[TableFacts]:
    holders: dict[int, list[KeyHolder]] = {}
    for txn in begun:
        for table_id in touches(view, txn, PART_TABLE):
            keys = [key_text(key) for key in intents.keys_of(view, txn, table_id, keys_shown)]
            count = intents.count_of(view, txn, table_id)
            holders.setdefault(table_id, []).append(KeyHolder(_holder(view, locks, txn), count, keys))
    rows = []
    for table in tables.every(view):
        table_state = table_states.find(view, table.table_id) or TableState()
        held_by = holders.get(table.table_id, [])
        rows.append(
            TableFacts(table.name, table_state.keys, table_state.versions, table_state.intents, held_by)
        )
    return rows


def _holder(view: ReadView, locks: Locks, txn: int) -> HolderFacts:
    record = records.get(view, txn)
    return HolderFacts(
        record.id, *users_of(view, locks, record), record.idle_ms(view.now_ns), record.is_overdue(view.now_ns),
        record.labels, record.priority,
    )  # fmt: skip
