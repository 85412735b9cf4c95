"""Fields of a subscription, and the words of tables about subscriptions."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.output.row import Row

NAMES = (
    Field("topic", "id", "The topic's full name.", heading=""),
    Field("subscription", "id", "The subscription."),
)
AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks.", heading=""),
    Field("asOfMs", "timeMs", "The same as an integer.", heading=""),
)
MODE = (
    Field("type", "text", "Exclusive, Failover, Shared or Key_Shared."),
    Field(
        "subscriptionIsolationLevel", "text", "READ_COMMITTED or READ_UNCOMMITTED.", heading="ISOLATION LEVEL"
    ),
)
ON_OPEN = Field(
    "onOpen",
    "text",
    "What an open transaction does to READ_COMMITTED: block all behind it, or skip its own messages alone.",
    heading="",
)
HELD_BY = Field(
    "heldBy",
    "list",
    "With onOpen skip, the first open transactions of the topic: txnId, uncommitted (messages of its own) and blocked "
    "(committed messages that wait behind its messages of their key).",
)
BACKLOG = (
    Field("visible", "integer", "Messages that its consumers may be handed now; in flight included."),
    Field("blocked", "integer", "Committed messages that wait behind an open transaction, or for their key."),
    Field("uncommitted", "integer", "Messages of open transactions."),
    Field("pending", "integer", "Messages acknowledged in transactions that are still open."),
    Field(
        "unackedMessages", "integer", "Messages in flight: handed out, not acknowledged.", heading="IN FLIGHT"
    ),
    Field("msgBacklog", "integer", "visible + blocked + uncommitted.", heading="BACKLOG"),
)
PENDING_IN = Field(
    "pendingIn", "list", "The open transactions that these are acknowledged in: txnId, messages."
)
VERDICT = Field(
    "verdict",
    "text",
    "ok; behind: its consumers are slow; blocked: they wait for a transaction; mixed: both; no-consumer.",
)
CONSUMERS = Field(
    "consumers",
    "list",
    "Who is attached: consumerName, owner, state, unackedMessages (in flight there), connectedSinceAt and -Ms.",
)
BLOCKED_BY = Field(
    "blockedBy",
    "map",
    "The open transaction that holds maxReadPosition: txnId, firstPosition, beginAt, beginMs, ageMs, owner, "
    "ownerState; null if there is none.",
)
ENDS = (
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads on the topic."),
    Field("lastConfirmedEntry", "position", "The last entry written to the topic, markers included."),
)

ROW = (
    *NAMES,
    *AS_OF,
    *MODE,
    ON_OPEN,
    Field("markDeletePosition", "position", "Everything up to here is acknowledged.", heading="MARK-DELETE"),
    Field("readPosition", "position", "Everything up to here has been handed out."),
    *BACKLOG,
    PENDING_IN,
    Field("acknowledgedAhead", "integer", "Messages acknowledged beyond markDeletePosition."),
    Field("abortedAhead", "integer", "Aborted messages beyond it, which READ_COMMITTED skips."),
    Field("backlogSize", "size", "Bytes stored beyond markDeletePosition."),
    Field("msgOutCounter", "integer", "Messages ever handed out."),
    Field("msgRedeliverCounter", "integer", "Of these, handed out again."),
    Field(
        "deadLetterTopic",
        "text",
        "Where messages go that were redelivered too often; null is the default name.",
    ),
    Field("maxRedeliverCount", "integer", "Redeliveries after which they go there; null is never."),
    HELD_BY,
    VERDICT,
    Field("createdAt", "time", "When it was created."),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
    CONSUMERS,
)
"""A subscription in a list."""

STATS = (*ROW, *ENDS, BLOCKED_BY)
"""All that is known of one."""


def short_topic(row: Row) -> str:
    """The topic under the short name."""
    from storage.values.names import short_topic_name

    return short_topic_name(row["topic"])


def living(row: Row) -> int:
    """How many consumers are attached and alive; a stopped one counts."""
    return sum(consumer["state"] in ("alive", "stopped") for consumer in row["consumers"])


def name_of(row: Row) -> str:
    """`billing on orders`."""
    return f"{row['subscription']} on {short_topic(row)}"


def mode_of(row: Row) -> str:
    """`Shared, READ_COMMITTED`, with `on-open skip` where set."""
    return f"{row['type']}, {level_of(row)}"


def level_of(row: Row) -> str:
    """The isolation level in tables, with on-open skip."""
    level = str(row["subscriptionIsolationLevel"])
    return f"{level}, on-open skip" if row["onOpen"] == "skip" else level
