"""Fields of a subscription, and the words and columns of tables about subscriptions."""

from __future__ import annotations

from typing import Protocol, TypeVar

from txnctl.output.column import Column
from txnctl.output.field import Help
from txnctl.output.table_layout import Short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.reports.stats import ConsumerRow

R = TypeVar("R")

NAMES = {
    "topic": Help("The topic's full name.", kind="id", heading=""),
    "subscription": Help("The subscription.", kind="id"),
}
AS_OF = {"as_of_at_ms": Help("The moment of which the report speaks.", heading="")}
MODE = {
    "type": Help("Exclusive, Failover, Shared or Key_Shared."),
    "subscription_isolation_level": Help("READ_COMMITTED or READ_UNCOMMITTED.", heading="ISOLATION LEVEL"),
}
ON_OPEN = {
    "on_open": Help(
        "What an open transaction does to READ_COMMITTED: block all behind it, or skip its own messages alone.",
        heading="",
    )
}
HELD_BY = {
    "held_by": Help(
        "With onOpen skip, the first open transactions of the topic: txnId, uncommitted (messages of its own) and "
        "blocked (committed messages that wait behind its messages of their key)."
    )
}
BACKLOG = {
    "visible": Help("Messages that its consumers may be handed now; in flight included."),
    "blocked": Help("Committed messages that wait behind an open transaction, or for their key."),
    "delayed": Help("Messages before their delivery time (Shared and Key_Shared)."),
    "uncommitted": Help("Messages of open transactions."),
    "pending": Help("Messages acknowledged in transactions that are still open."),
    "unacked_messages": Help("Messages in flight: handed out, not acknowledged.", heading="IN FLIGHT"),
    "msg_backlog": Help("visible + blocked + delayed + uncommitted.", heading="BACKLOG"),
}
PENDING_IN = {
    "pending_in": Help("The open transactions that these are acknowledged in: txnId, messages."),
}
VERDICT = {
    "verdict": Help(
        "ok; behind: its consumers are slow; stopped: stopped consumers keep "
        "them; blocked: they wait for a transaction; mixed: both; no-consumer."
    )
}
CONSUMERS = {
    "consumers": Help(
        "Who is attached: consumerName, owner, state, unackedMessages (in flight there), connectedSinceAt and -Ms."
    )
}
ENDS = {
    "max_read_position": Help("How far READ_COMMITTED reads on the topic."),
    "last_confirmed_entry": Help("The last entry written to the topic, markers included."),
}
BLOCKER = (
    "The open transaction that holds maxReadPosition: txnId, firstPosition, beginAt, beginMs, ageMs, owner, "
    "ownerState, lastUser, lastUserState; null if there is none"
)

ROW = {
    **NAMES,
    **AS_OF,
    **MODE,
    **ON_OPEN,
    "mark_delete_position": Help("Everything up to here is acknowledged.", heading="MARK-DELETE"),
    "read_position": Help("Everything up to here has been handed out."),
    **BACKLOG,
    **PENDING_IN,
    "acknowledged_ahead": Help("Messages acknowledged beyond markDeletePosition."),
    "aborted_ahead": Help("Aborted messages beyond it, which READ_COMMITTED skips."),
    "backlog_size": Help("Bytes stored beyond markDeletePosition.", kind="size"),
    "msg_out_counter": Help("Messages ever handed out."),
    "msg_redeliver_counter": Help("Of these, handed out again."),
    "msg_aborted_drop_counter": Help(
        "Messages of aborted transactions, redelivered too often: acknowledged without a dead letter."
    ),
    "msg_lost_counter": Help("Messages not acknowledged that hard retention has let go.", heading="LOST"),
    "msg_expired_counter": Help("Messages acknowledged for their age (ttl).", heading="EXPIRED"),
    "dead_letter_topic": Help("Where messages go that were redelivered too often; null is the default name."),
    "max_redeliver_count": Help("Redeliveries after which they go there; null is never."),
    **HELD_BY,
    **VERDICT,
    "created_at_ms": Help("When it was created."),
    "without_consumer_since_at_ms": Help(
        "When the last consumer left, or an operator used it; null while one is attached, or if not known.",
        heading="NO CONSUMER SINCE",
    ),
    **CONSUMERS,
}
"""A subscription in a list."""


SHORT_LEVEL = Short(
    "LEVEL",
    {
        "READ_COMMITTED": "committed",
        "READ_UNCOMMITTED": "uncommitted",
        "READ_COMMITTED, on-open skip": "committed, skip",
    },
)
"""The isolation level on a narrow terminal."""


class Named(Protocol):
    """A row with the names of a subscription and its topic."""

    @property
    def topic(self) -> str: ...
    @property
    def subscription(self) -> str: ...


class Mode(Protocol):
    """A row with type, isolation level and on-open of a subscription."""

    @property
    def type(self) -> str: ...
    @property
    def subscription_isolation_level(self) -> str: ...
    @property
    def on_open(self) -> str: ...


class Attached(Protocol):
    """A row with the consumers of a subscription."""

    @property
    def consumers(self) -> Sequence[ConsumerRow]: ...


class Figures(Attached, Protocol):
    """A row with the backlog and the consumers of a subscription."""

    @property
    def visible(self) -> int: ...
    @property
    def blocked(self) -> int: ...
    @property
    def delayed(self) -> int: ...
    @property
    def uncommitted(self) -> int: ...
    @property
    def pending(self) -> int: ...
    @property
    def unacked_messages(self) -> int: ...


def short_topic(row: Named) -> str:
    """The topic under the short name."""
    from storage.values.names import short_topic_name

    return short_topic_name(row.topic)


def living(row: Attached) -> int:
    """How many consumers are attached and alive; a stopped one counts."""
    return sum(consumer.state in ("alive", "stopped") for consumer in row.consumers)


def name_of(row: Named) -> str:
    """`billing on orders`."""
    return f"{row.subscription} on {short_topic(row)}"


def mode_of(row: Mode) -> str:
    """`Shared, READ_COMMITTED`, with `on-open skip` where set."""
    return mode_in_words(row.type, row.subscription_isolation_level, row.on_open)


def mode_in_words(type_: str, level: str, on_open: str) -> str:
    """The same from type, isolation level and on-open."""
    return f"{type_}, {_level(level, on_open)}"


def level_of(row: Mode) -> str:
    """The isolation level in tables, with on-open skip."""
    return _level(row.subscription_isolation_level, row.on_open)


def _level(level: str, on_open: str) -> str:
    return f"{level}, on-open skip" if on_open == "skip" else level


def mode_columns(mode: Callable[[R], Mode]) -> tuple[Column[R], ...]:
    """Type and isolation level."""
    return (
        Column("TYPE", "text", lambda row: mode(row).type, rank=8),
        Column("ISOLATION LEVEL", "text", lambda row: level_of(mode(row)), rank=7, short=SHORT_LEVEL),
    )


def backlog_columns(figures: Callable[[R], Figures]) -> tuple[Column[R], ...]:
    """The backlog by class, and the number of consumers."""
    return (
        Column("VISIBLE", "integer", lambda row: figures(row).visible),
        Column("BLOCKED", "integer", lambda row: figures(row).blocked),
        Column("DELAYED", "integer", lambda row: figures(row).delayed, rank=5),
        Column("UNCOMMITTED", "integer", lambda row: figures(row).uncommitted, rank=2),
        Column("PENDING", "integer", lambda row: figures(row).pending, rank=4),
        Column("IN FLIGHT", "integer", lambda row: figures(row).unacked_messages, rank=3),
        Column("CONSUMERS", "integer", lambda row: living(figures(row)), rank=1),
    )
