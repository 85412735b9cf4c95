"""The facts of a store, collected by `overview.py`: the input of the rules that make findings."""

from __future__ import annotations

from storage.disk.environment import HolderProcess
from storage.json_form import Flat
from storage.process.identity import ProcessIdentity
from storage.reports.producers import ProducerRow
from storage.reports.quiet_consumers import QuietConsumer
from storage.reports.stats import ConsumerRow
from storage.reports.store_info import DiskSpace, ReaderRow, StoreInfo
from storage.reports.transactions import TransactionRow
from storage.subscription.trimming import Hold
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID


class StoreFacts(NamedTuple):
    """The store and its disk."""

    info: Flat[StoreInfo]
    disk: Flat[DiskSpace]


class ReaderFacts(NamedTuple):
    """LMDB's reader table: slots in use, all slots, readers with an open view, and the reader with the oldest view.

    A server has no such slots; its readers are transactions.
    """

    in_use: int | None
    max: int | None
    reading: int
    oldest: ReaderRow | None


class Present(NamedTuple):
    """The facts outside of any view: LMDB's readers, and the process in the writer gate."""

    readers: ReaderFacts
    writer_gate: HolderProcess | None


class HolderFacts(NamedTuple):
    """An open transaction with pending acknowledgements or with write intents, and the state of its process."""

    txn_id: TxnID
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str
    idle_ms: int
    overdue: bool
    labels: dict[str, str]
    priority: str


class MessageHolder(NamedTuple):
    """An open transaction, and the number of its pending acknowledgements on one subscription."""

    holder: Flat[HolderFacts]
    messages: int


class KeyHolder(NamedTuple):
    """An open transaction, and the number and the first of its write intents on one table."""

    holder: Flat[HolderFacts]
    keys: int
    key_list: list[str]


class LaterBlocker(NamedTuple):
    """An open transaction behind the first of a topic, and the committed messages of the stretch up to the next."""

    txn_id: TxnID
    messages: int


class TopicFacts(NamedTuple):
    """A topic.

    Attributes:
        blocked_messages: committed messages that readers wait for (`timeline.waiting`).
        blocked_by: the transaction in front of these messages; None without such messages.
        blocked_next: idle transactions further back in the chain of the topic.
    """

    topic: str
    name: str
    msg_count: int
    max_read_position: Position
    last_confirmed_entry: Position
    topic_epoch: int | None
    ongoing_txn_count: int
    blocked_messages: int
    oldest_blocked_at_ms: int | None
    uncommitted_messages: int
    subscriptions: int
    visible: int
    blocked_by: TxnID | None
    blocked_by_age_ms: int | None
    blocked_next: list[LaterBlocker]


class SubscriptionFacts(NamedTuple):
    """A subscription.

    Attributes:
        held_by: the open transactions with pending acknowledgements on the subscription.
    """

    topic: str
    name: str
    subscription: str
    type: str
    subscription_isolation_level: str
    on_open: str
    visible: int
    blocked: int
    delayed: int
    uncommitted: int
    pending: int
    unacked_messages: int
    verdict: str
    consumers: list[ConsumerRow]
    held_by: list[MessageHolder]


class StoppedOwner(NamedTuple):
    """An open transaction whose process is stopped: the last user, or the owner."""

    row: Flat[TransactionRow]
    pid: int


class TransactionFacts(NamedTuple):
    """Open transactions.

    Attributes:
        open: the number of open transactions.
        late: overdue or orphaned transactions.
        stopped: transactions of stopped processes.
    """

    open: int
    oldest: TransactionRow | None
    late: list[TransactionRow]
    stopped: list[StoppedOwner]


class QueueFacts(NamedTuple):
    """A topic with a queue of producers.

    Attributes:
        waiting: living producers in the queue.
        next: the first of the queue.
        before: the connected producer that the queue waits for; None if the topic is free.
    """

    topic: str
    name: str
    waiting: int
    next: ProducerRow
    before: ProducerRow | None


class TableFacts(NamedTuple):
    """A table, with the open transactions that have write intents on its keys."""

    table: str
    keys: int
    versions: int
    intents: int
    held_by: list[KeyHolder]


class LosingJob(NamedTuple):
    """The transactions of one program with the same labels that lost conflicts over a key."""

    labels: dict[str, str]
    program: str
    losses: int


class ContendedKey(NamedTuple):
    """A key of a table that transactions keep losing to each other.

    Attributes:
        key: as text; None in a report that shows no content.
        losses: lost conflicts, from `first_at_ms` to `last_at_ms`.
        commits: committed versions of the key since the first of these conflicts.
    """

    table: str
    key: str | None
    losses: int
    commits: int
    first_at_ms: int
    last_at_ms: int
    jobs: list[LosingJob]


class RetentionHeld(NamedTuple):
    """A topic with messages past its retention that a subscription or an open transaction holds back."""

    topic: str
    name: str
    messages: int
    bytes: int
    held_by: Hold


class ForgottenSubscription(NamedTuple):
    """A subscription that keeps messages, and has had no consumer for long.

    Attributes:
        messages, bytes: those behind its cursor.
        next_message_at_ms: the publish time of the first of them.
        without_consumer_since_at_ms: when the last consumer left; None if that is not known.
    """

    topic: str
    name: str
    subscription: str
    messages: int
    bytes: int
    next_message_at_ms: int
    without_consumer_since_at_ms: int | None


class Facts(NamedTuple):
    """All facts of a store.

    Attributes:
        clock_skew_ms: movement of the wall clock against the boot clock; None before the first commit of this boot.
        quiet_consumers: living consumers that hold messages, the one that acknowledges none for longest first.
    """

    as_of_at_ms: int
    store: StoreFacts
    readers: ReaderFacts
    writer_gate: HolderProcess | None
    clock_skew_ms: int | None
    topics: list[TopicFacts]
    subscriptions: list[SubscriptionFacts]
    transactions: TransactionFacts
    producers: list[QueueFacts]
    tables: list[TableFacts]
    contended_keys: list[ContendedKey]
    retention_held: list[RetentionHeld]
    forgotten_subscriptions: list[ForgottenSubscription]
    quiet_consumers: list[QuietConsumer]
