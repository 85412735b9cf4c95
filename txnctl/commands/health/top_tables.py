"""The tables of `txnctl top`: topics, transactions and subscriptions with their rates, and the orders to sort by."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.fields.owner import alive, deadline, process_state, users
from txnctl.fields.subscription import living
from txnctl.output.column import Column
from txnctl.output.human import UNKNOWN, labels_text
from txnctl.output.screen import VERDICTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from storage.reports.facts import SubscriptionFacts, TopicFacts
    from storage.reports.finding import Finding
    from storage.reports.live import LiveFacts, Rates
    from storage.reports.transactions import TransactionRow


class TopicLine(NamedTuple):
    """A topic, the producers that wait for their turn, and the messages appended in a second."""

    facts: TopicFacts
    waiting: int
    rate: float | None


class TransactionLine(NamedTuple):
    """An open transaction, and the committed messages that wait behind it."""

    row: TransactionRow
    blocks: int


class SubscriptionLine(NamedTuple):
    """A subscription, and the messages delivered in a second."""

    facts: SubscriptionFacts
    rate: float | None


class Order(NamedTuple):
    """An order of rows: the largest key first."""

    name: str
    key: Callable[[Any], Any]


class LiveTable(NamedTuple):
    """A table of the screen.

    Attributes:
        name: shown in the line of tables.
        short: the same where there is little room.
        columns: nothing for problems, which are sentences.
        orders: the first is the one at the start.
        identity: what stays the same of a row from one look to the next.
    """

    name: str
    short: str
    columns: tuple[Column[Any], ...]
    orders: tuple[Order, ...]
    identity: Callable[[Any], object]


def rate_text(rate: float | None) -> str:
    """`1,203`, or `0.4` where small; `-` before the second look."""
    if rate is None:
        return UNKNOWN
    return f"{rate:,.1f}" if 0 < rate < 10 else f"{rate:,.0f}"


def _problem_identity(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.about, str(finding.action)


def _name_order(name: str) -> tuple[int, ...]:
    """A key by which the first name of the alphabet is the largest."""
    return tuple([-ord(char) for char in name] + [1])


def _topic_attention(line: TopicLine) -> tuple[float, ...]:
    facts = line.facts
    return facts.blocked_messages, line.waiting, facts.uncommitted_messages, facts.visible, line.rate or 0


def _transaction_attention(line: TransactionLine) -> tuple[int, ...]:
    row = line.row
    return bool(row.orphaned), bool(row.overdue), line.blocks, process_state(row) == "stopped", row.age_ms


def _subscription_attention(line: SubscriptionLine) -> tuple[int, ...]:
    facts = line.facts
    return -VERDICTS.index(facts.verdict), facts.visible + facts.blocked


def _rate(line: TopicLine | SubscriptionLine) -> float:
    return -1 if line.rate is None else line.rate


PROBLEMS = LiveTable("problems", "problems", (), (Order("severity", lambda _: 0),), _problem_identity)
TOPICS = LiveTable(
    "topics",
    "topics",
    (
        Column("TOPIC", "id", lambda line: line.facts.name),
        Column("MESSAGES", "integer", lambda line: line.facts.msg_count, rank=3),
        Column("IN/S", "number", lambda line: rate_text(line.rate)),
        Column("BLOCKED", "integer", lambda line: line.facts.blocked_messages),
        Column("BY", "id", lambda line: line.facts.blocked_by, rank=1),
        Column("UNCOMMITTED", "integer", lambda line: line.facts.uncommitted_messages, rank=2),
        Column("LAG", "integer", lambda line: line.facts.visible, rank=4),
        Column("WAITING", "integer", lambda line: line.waiting, rank=5),
    ),
    (
        Order("attention", _topic_attention),
        Order("in/s", _rate),
        Order("messages", lambda line: line.facts.msg_count),
        Order("name", lambda line: _name_order(line.facts.name)),
    ),
    lambda line: line.facts.topic,
)
TRANSACTIONS = LiveTable(
    "transactions",
    "txns",
    (
        Column("TXN", "id", lambda line: line.row.txn_id),
        Column("AGE", "duration", lambda line: line.row.age_ms),
        Column("ALIVE", "text", lambda line: alive(line.row)),
        Column("BLOCKS", "integer", lambda line: line.blocks),
        Column("MESSAGES", "integer", lambda line: line.row.messages, rank=3),
        Column("IDLE", "duration", lambda line: line.row.idle_ms, rank=4),
        Column("DEADLINE", "list", lambda line: deadline(line.row), rank=2),
        Column("LABELS", "text", lambda line: labels_text(line.row.labels) or None, rank=5),
        Column("OWNER", "list", lambda line: users(line.row), rank=1),
    ),
    (
        Order("attention", _transaction_attention),
        Order("age", lambda line: line.row.age_ms),
        Order("blocks", lambda line: line.blocks),
        Order("messages", lambda line: line.row.messages),
    ),
    lambda line: line.row.txn_id,
)
SUBSCRIPTIONS = LiveTable(
    "consumers",
    "consumers",
    (
        Column("SUBSCRIPTION", "id", lambda line: line.facts.subscription),
        Column("TOPIC", "id", lambda line: line.facts.name, rank=2),
        Column("OUT/S", "number", lambda line: rate_text(line.rate), rank=1),
        Column("VISIBLE", "integer", lambda line: line.facts.visible),
        Column("BLOCKED", "integer", lambda line: line.facts.blocked),
        Column("IN FLIGHT", "integer", lambda line: line.facts.unacked_messages, rank=4),
        Column("CONSUMERS", "integer", lambda line: living(line.facts), rank=3),
        Column("VERDICT", "text", lambda line: line.facts.verdict),
    ),
    (
        Order("attention", _subscription_attention),
        Order("visible", lambda line: line.facts.visible),
        Order("blocked", lambda line: line.facts.blocked),
        Order("out/s", _rate),
        Order("name", lambda line: _name_order(line.facts.subscription)),
    ),
    lambda line: (line.facts.topic, line.facts.subscription),
)
TABLES = (PROBLEMS, TOPICS, TRANSACTIONS, SUBSCRIPTIONS)


def rows_of(live: LiveFacts, rates: Rates | None) -> tuple[list[Any], ...]:
    """The rows of each of `TABLES`, not yet sorted."""
    facts = live.overview.facts
    waiting = {queue.topic: queue.waiting for queue in facts.producers}
    blocked: dict[object, int] = {}
    for topic in facts.topics:
        if topic.blocked_by is not None:
            blocked[topic.blocked_by] = blocked.get(topic.blocked_by, 0) + topic.blocked_messages
    ins = rates.messages_in if rates is not None else {}
    outs = rates.messages_out if rates is not None else {}
    return (
        list(live.overview.findings),
        [TopicLine(topic, waiting.get(topic.topic, 0), ins.get(topic.topic)) for topic in facts.topics],
        [TransactionLine(row, blocked.get(row.txn_id, 0)) for row in live.transactions],
        [SubscriptionLine(row, outs.get((row.topic, row.subscription))) for row in facts.subscriptions],
    )
