"""Abort a transaction on request. The dry run is the same code up to the commit, so its figures are the real ones."""

from __future__ import annotations

from storage import audit_trail
from storage.admin import abort_counts
from storage.admin.abort_counts import Counts, Unblocked
from storage.disk.codec import key1
from storage.disk.reserve import ReserveShare
from storage.disk.schema import PART_TABLE, TXN_PARTS
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.json_form import Flat
from storage.process.identity import ProcessIdentity, descends_from
from storage.reports.timeline import producers_of
from storage.reports.transactions import DELETED
from storage.table import report
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import session as sessions, session_end
from storage.topic.producers.admission import ProducerRegistry
from storage.topic.producers.errors import shown_epoch
from storage.topic.producers.session import ProducerSession
from storage.txn import record as records, uncommitted_entries
from storage.txn.coordinator import Ended
from storage.txn.errors import owner_at_work, too_late_to_fence
from storage.txn.fenced_txns import FencedTransactions
from storage.txn.owner_state import living_process, users_of
from storage.txn.participant import Effect, SubscriptionEffect, TableWorkDone, TopicEffect
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple
from storage.values.names import short_topic_name
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState


class NextBlocker(NamedTuple):
    """The open transaction that blocks a topic after the abort."""

    txn_id: TxnID
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str
    idle_ms: int
    labels: dict[str, str]


class TopicAborted(NamedTuple):
    """The effect on a topic."""

    kind: str
    messages: int
    first_position: Position
    last_position: Position
    max_read_position_before: Position
    max_read_position_after: Position
    topic: str
    name: str
    unblocks: dict[str, Unblocked]
    blocked_next: NextBlocker | None


class SubscriptionAborted(NamedTuple):
    """The effect on a subscription; `messages` are delivered again."""

    kind: str
    subscription: str
    messages: int
    cumulative: Position | None
    mark_delete_position_before: Position
    mark_delete_position_after: Position
    topic: str
    name: str


class TableAborted(NamedTuple):
    """The effect on a table."""

    kind: str
    intents: int
    finalized: bool
    table: str


class ProducerEnded(NamedTuple):
    """The end of a producer's session, with `fence`."""

    kind: str
    topic: str
    name: str
    producer_name: str
    access_mode: str
    owner: ProcessIdentity
    topic_epoch_before: int | None
    topic_epoch_after: int | None
    transactions_aborted: list[TxnID]


AbortEffect = TopicAborted | SubscriptionAborted | TableAborted | ProducerEnded


class TransactionBefore(NamedTuple):
    """The transaction before the abort."""

    txn_id: TxnID
    state_before: TransactionState
    version: int
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str
    idle_ms: int
    deadline_in_ms: int


class AbortResult(NamedTuple):
    """The effects of an abort; `refused` is the reason why it would be refused, of a dry run."""

    before: Flat[TransactionBefore]
    already: bool
    dry_run: bool
    fence: bool
    refused: str | None
    effects: list[AbortEffect]


class OwnAbort(NamedTuple):
    """The effects of an abort by a process that the owner of the transaction has started, for the audit trail."""

    result: Flat[AbortResult]
    by_own_command: bool


class AbortRequest(NamedTuple):
    """An abort as asked for: see `TransactionAdmin.abort_transaction`."""

    reason: str | None
    if_version: int | None
    force: bool
    dry_run: bool
    fence: bool


def abort_transaction(engine: Engine, txn: int, request: AbortRequest) -> AbortResult:
    """Abort a transaction, or return the effects that the abort would have."""
    audit_trail.check_reason(request.reason)
    process, coordinator = engine.process, engine.coordinator
    with engine.connection.view() as view:
        touches = TouchedNames(view, txn)

    def change(batch: WriteBatch) -> AbortResult:
        record = records.open_record(batch, txn)
        before = _before(batch, record)
        is_open, refusal = record.state is TransactionState.OPEN, None
        is_aborted = record.state is TransactionState.ABORTED
        if request.fence and is_aborted and not record.producers_fenced:
            raise too_late_to_fence(record)
        living = living_process(before)
        if is_open and not request.force and living is not None and living.process != process:
            refusal = owner_at_work(batch, record, living)
        if refusal is not None and not request.dry_run:
            raise refusal
        parts = coordinator.parts(batch, txn) if is_open else []
        touched = {part.topic_id for part in parts if not isinstance(part, TableWorkDone)}
        counted = {topic_id: abort_counts.before(batch, topic_id) for topic_id in touched}
        named = [topic for topic_id in touched if (topic := touches.topic(batch, topic_id)) is not None]
        producers = _producers(batch, txn, named) if request.fence else []
        if request.if_version is not None and record.state is not TransactionState.COMMITTED:
            coordinator.check_version(batch, txn, request.if_version)
        if is_open:
            record.producers_fenced = request.fence
        ended = coordinator.abort(batch, txn, process, AbortReason.ASKED, request.reason)
        fencing = FencedTransactions(coordinator, process)
        fenced = [_fence(batch, *producer, fencing, process) for producer in producers]
        effects = _effects(batch, [ended, *fencing.ended, *fencing.ended_owned], counted, touches)
        result = AbortResult(
            before, ended.already, request.dry_run, request.fence,
            refusal.message if refusal is not None else None, [*effects, *fenced],
        )  # fmt: skip
        if not ended.already:
            noted = OwnAbort(result, True) if _is_own_command(process, record.owner) else result
            audit_trail.record(batch, process, "transactions abort", str(record.id), request.reason, noted)
        return result

    if request.dry_run:
        return engine.connection.rehearse(change, naming=txn)
    return engine.connection.write(change, naming=txn, share=ReserveShare.WHOLE)


def _is_own_command(process: ProcessIdentity, owner: ProcessIdentity) -> bool:
    """Whether the owner of the transaction has started this process, as `transactions run` starts its command."""
    is_here = (process.host, process.boot_id) == (owner.host, owner.boot_id)
    return is_here and descends_from(owner.pid, owner.started)


def _before(batch: WriteBatch, record: TransactionRecord) -> TransactionBefore:
    return TransactionBefore(
        record.id, record.state, record.version, *users_of(batch, batch.locks, record),
        record.idle_ms(batch.now_ns), record.left_ms(batch.now_ns),
    )  # fmt: skip


class TouchedNames:
    """The topics and tables that a transaction may have touched, by number.

    A name stays with its number: the catalogues are read in a view, outside the writer gate, and in the batch only for
    what a transaction has touched since.
    """

    __slots__ = ("_tables", "_topics")

    def __init__(self, view: ReadView, txn: int) -> None:
        kinds = {key[8] for key in view.keys(TXN_PARTS, key1(txn))}
        self._topics = _topics_by_id(view) if kinds - {PART_TABLE} else {}
        self._tables = report.table_names(view) if PART_TABLE in kinds else {}

    def topic(self, view: ReadView, topic_id: int) -> Topic | None:
        """The topic of a number; None for a deleted one."""
        if topic_id not in self._topics:
            self._topics = _topics_by_id(view)
        return self._topics.get(topic_id)

    def topic_name(self, view: ReadView, topic_id: int) -> str:
        topic = self.topic(view, topic_id)
        return DELETED if topic is None else topic.full_name

    def table_name(self, view: ReadView, table_id: int) -> str:
        if table_id not in self._tables:
            self._tables = report.table_names(view)
        return self._tables.get(table_id, DELETED)


def _topics_by_id(view: ReadView) -> dict[int, Topic]:
    return {topic.topic_id: topic for topic in topics.every(view)}


def _producers(view: ReadView, txn: int, touched: list[Topic]) -> list[tuple[Topic, ProducerSession]]:
    """The connected sessions that have sent the transaction's messages."""
    senders = []
    for topic in sorted(touched, key=lambda topic: topic.full_name):
        part = uncommitted_entries.part_of(view, txn, topic.topic_id)
        names = producers_of(view, topic.topic_id, part) if part is not None else []
        connected = sessions.every(view, topic.topic_id) if names else ()
        senders += [(topic, one) for one in connected if one.name in names and not one.is_waiting]
    return senders


def _fence(
    batch: WriteBatch,
    topic: Topic,
    session: ProducerSession,
    fencing: FencedTransactions,
    process: ProcessIdentity,
) -> ProducerEnded:
    """End a producer's session. The session of an owner raises the epoch, and the queue of the topic goes on."""
    before, aborted = state.load(batch, topic.topic_id).epoch, list[int]()
    if session.is_owner:
        opened = OpenTopic.load(batch, topic.topic_id, topic.name)
        registry = ProducerRegistry(opened, fencing)
        _, aborted = registry.fence_producers(process, "fence", spares_waiting=True)
    else:
        session_end.leave(batch, session)
    after = state.load(batch, topic.topic_id).epoch
    return ProducerEnded(
        "producer", topic.full_name, topic.name, session.name, session.mode.value, session.owner,
        shown_epoch(before), shown_epoch(after), [TxnID(number) for number in aborted],
    )  # fmt: skip


def _effects(
    batch: WriteBatch, every: list[Ended], before: dict[int, Counts], touches: TouchedNames
) -> list[AbortEffect]:
    """The effects of the first of all aborts part by part, with names; counted after all of them."""
    effects = [effect for ended in every for effect in ended.effects]
    after = {
        topic_id: abort_counts.after(batch, topic_id, counted, effects)
        for topic_id, counted in before.items()
    }
    return [_effect(batch, effect, touches, before, after) for effect in every[0].effects]


def _effect(
    batch: WriteBatch,
    effect: Effect,
    touches: TouchedNames,
    before: dict[int, Counts],
    after: dict[int, Counts],
) -> AbortEffect:
    if isinstance(effect, TopicEffect):
        topic_id = effect.topic_id
        topic = touches.topic_name(batch, topic_id)
        following = uncommitted_entries.first_open(batch, topic_id)
        return TopicAborted(
            "topic", effect.messages, effect.first_position, effect.last_position,
            effect.max_read_position_before, state.load(batch, topic_id).max_read_position,
            topic, short_topic_name(topic), abort_counts.unblocked(before[topic_id], after[topic_id]),
            _next_blocker(batch, records.get(batch, following[0])) if following else None,
        )  # fmt: skip
    if isinstance(effect, SubscriptionEffect):
        topic_id, name = effect.topic_id, effect.subscription
        topic = touches.topic_name(batch, topic_id)
        was, now = before[topic_id][name], after[topic_id][name]
        return SubscriptionAborted(
            "subscription", name, was.pending - now.pending + was.pending_in_view - now.pending_in_view,
            effect.cumulative, effect.mark_delete_position_before, effect.mark_delete_position_after,
            topic, short_topic_name(topic),
        )  # fmt: skip
    table = touches.table_name(batch, effect.table_id)
    return TableAborted("table", effect.intents, effect.finalized, table)


def _next_blocker(batch: WriteBatch, record: TransactionRecord) -> NextBlocker:
    users = users_of(batch, batch.locks, record)
    return NextBlocker(record.id, *users, record.idle_ms(batch.now_ns), record.labels)
