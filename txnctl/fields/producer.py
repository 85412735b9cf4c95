"""Fields of a producer, and the words of tables about producers."""

from __future__ import annotations

from txnctl.output.field import Field
from txnctl.output.human import UNKNOWN, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from txnctl.output.row import Row
    from txnctl.output.screen import Screen

NAMES = (
    Field("topic", "id", "The topic's full name.", heading=""),
    Field("name", "id", "The same, short in the default namespace.", heading="TOPIC"),
)
AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks."),
    Field("asOfMs", "timeMs", "The same as an integer."),
)

ROW = (
    *NAMES,
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field(
        "accessMode", "text", "Shared, Exclusive, WaitForExclusive or ExclusiveWithFencing.", heading="MODE"
    ),
    Field("sessionId", "id", "The number of its session."),
    Field("epoch", "integer", "The epoch under which it publishes; null if it has none yet."),
    Field("isOwner", "boolean", "Whether it has the topic for itself."),
    Field("isWaiting", "boolean", "Whether it waits for its turn."),
    Field("place", "integer", "Its place among those that wait, 1 is next; null if it does not wait."),
    Field("owner", "text", "Who: user@host:pid (program)."),
    Field("pid", "id", "The process."),
    Field("host", "text", "Its machine."),
    Field("user", "text", "Its user."),
    Field("program", "text", "What it runs."),
    Field(
        "state",
        "text",
        "alive, stopped (SIGSTOP), dead, rebooted or unknown-host of a process; leased or expired of a session "
        "that belongs to none.",
    ),
    Field("alive", "boolean", "Whether it stands in the way of others: a stopped process does, so does a lease."),
    Field("connectedSinceAt", "time", "Since when it is connected, or waits."),
    Field("connectedSinceMs", "timeMs", "The same as an integer."),
    Field("lastPublishAt", "time", "When it published last; null if it has not."),
    Field("lastPublishMs", "timeMs", "The same as an integer."),
    Field("leaseMs", "duration", "How long each use renews its lease; null if a process holds it."),
    Field("leaseEndsInMs", "duration", "Time until its lease ends; null if a process holds it."),
)  # fmt: skip
"""A producer in a list: connected, or waiting."""

SESSION = (
    *ROW,
    Field("session", "id", "The token: for --session and TXNCTL_SESSION."),
)
"""A session, to whoever holds it."""

COLUMNS = (
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("accessMode", "text", "What it asked for.", heading="MODE"),
    Field("epoch", "integer", "Its epoch."),
    Field("who", "text", "Where it runs.", heading="OWNER"),
    Field("alive", "text", "Whether it lives."),
    Field("lastPublish", "text", "How long ago."),
)
"""The connected producers of one topic: the columns of `topics stats`."""

ALARMS = (("DEAD", "bold", "red"), ("EXPIRED", "bold", "red"), ("stopped", "yellow"))

_WORDS = {"alive": "yes", "dead": "DEAD", "rebooted": "DEAD", "unknown-host": "unknown", "expired": "EXPIRED"}


def alive(row: Mapping[str, Any]) -> str:
    """One word on whether the producer is alive; for a lease, the time left."""
    if row["state"] == "leased":
        return f"lease {duration(row['leaseEndsInMs'])}"
    return _WORDS.get(row["state"], str(row["state"]))


def where(row: Mapping[str, Any]) -> str:
    """`db-2:48211`, from `anna@db-2:48211 (txnctl produce)`."""
    process, _, _ = str(row["owner"]).partition(" (")
    return process.rpartition("@")[2]


def cells(row: Row, now_ms: int) -> Row:
    """The row with the words of tables."""
    return {
        **row,
        "who": where(row),
        "alive": alive(row),
        "connected": duration(max(0, now_ms - row["connectedSinceMs"])),
        "lastPublish": ago(row["lastPublishMs"], now_ms),
    }


def ago(at_ms: int | None, now_ms: int) -> str:
    """`46m58s`; `-` for never."""
    return UNKNOWN if at_ms is None else duration(max(0, now_ms - at_ms))


def table(screen: Screen, rows: Sequence[Row], columns: Sequence[Field]) -> str:
    """A table, alarming words in colour."""
    text = screen.table_of(rows, columns)
    # Coloured when the columns are in line: within a cell the codes would be escaped.
    for word, *styles in ALARMS:
        text = text.replace(f"  {word}", f"  {screen.style(word, *styles)}")
    return text
