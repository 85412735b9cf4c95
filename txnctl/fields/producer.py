"""Fields of a producer, and the words and columns of tables about producers."""

from __future__ import annotations

from typing import TypeVar

from txnctl.output.column import Column
from txnctl.output.field import Help
from txnctl.output.human import UNKNOWN, duration
from txnctl.output.screen import alarmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.process.identity import ProcessIdentity
    from storage.reports.producers import ProducerRow
    from txnctl.output.screen import Screen
    from txnctl.output.table_layout import TextTable

R = TypeVar("R")

NAMES = {
    "topic": Help("The topic's full name.", kind="id", heading=""),
    "name": Help("The same, short in the default namespace.", kind="id", heading="TOPIC"),
}
AS_OF = {"as_of_at_ms": Help("The moment of which the report speaks.", ms_heading=None)}

ROW = {
    **NAMES,
    "producer_name": Help("The producer.", kind="id", heading="PRODUCER"),
    "access_mode": Help("Shared, Exclusive, WaitForExclusive or ExclusiveWithFencing.", heading="MODE"),
    "session_id": Help("The number of its session.", kind="id"),
    "epoch": Help("The epoch under which it publishes; null if it has none yet."),
    "is_owner": Help("Whether it has the topic for itself."),
    "is_waiting": Help("Whether it waits for its turn."),
    "place": Help("Its place among those that wait, 1 is next; null if it does not wait."),
    "owner": Help("Who: user@host:pid (program)."),
    "pid": Help("The process.", kind="id"),
    "host": Help("Its machine."),
    "user": Help("Its user."),
    "program": Help("What it runs."),
    "state": Help(
        "alive, stopped (SIGSTOP), dead, rebooted or unknown-host of a process; leased or expired of a session "
        "that belongs to none."
    ),
    "alive": Help("Whether it stands in the way of others: a stopped process does, so does a lease."),
    "connected_since_at_ms": Help("Since when it is connected, or waits.", ms_heading=None),
    "last_publish_at_ms": Help("When it published last; null if it has not.", ms_heading=None),
    "lease_ms": Help("How long each use renews its lease; null if a process holds it."),
    "lease_ends_in_ms": Help("Time until its lease ends; null if a process holds it."),
}
"""A producer in a list: connected, or waiting."""

ALARMS = (("DEAD", "bold", "red"), ("EXPIRED", "bold", "red"), ("stopped", "yellow"))

_WORDS = {"alive": "yes", "dead": "DEAD", "rebooted": "DEAD", "unknown-host": "unknown", "expired": "EXPIRED"}


def alive(row: ProducerRow) -> str:
    """One word on whether the producer is alive; for a lease, the time left."""
    if row.lease_ends_in_ms is not None and row.state == "leased":
        return f"lease {duration(row.lease_ends_in_ms)}"
    return _WORDS.get(row.state, row.state)


def where(owner: ProcessIdentity) -> str:
    """`db-2:48211`: host and pid of a process."""
    return f"{owner.host}:{owner.pid}"


def ago(at_ms: int | None, now_ms: int) -> str:
    """`46m58s`; `-` for never."""
    return UNKNOWN if at_ms is None else duration(max(0, now_ms - at_ms))


PRODUCER: Column[ProducerRow] = Column("PRODUCER", "id", lambda row: row.producer_name)
MODE: Column[ProducerRow] = Column("MODE", "text", lambda row: row.access_mode, rank=3)
EPOCH: Column[ProducerRow] = Column("EPOCH", "integer", lambda row: row.epoch, rank=2)
OWNER: Column[ProducerRow] = Column("OWNER", "list", lambda row: where(row.owner))
PROGRAM: Column[ProducerRow] = Column("PROGRAM", "text", lambda row: row.program, rank=5)
ALIVE: Column[ProducerRow] = Column("ALIVE", "text", alive)


def connected(now_ms: int, heading: str = "CONNECTED") -> Column[ProducerRow]:
    """The time since the producer connected, or began to wait."""
    return Column(heading, "text", lambda row: ago(row.connected_since_at_ms, now_ms), rank=4)


def last_publish(now_ms: int, heading: str = "LAST PUBLISH") -> Column[ProducerRow]:
    """The time since the last message."""
    return Column(heading, "text", lambda row: ago(row.last_publish_at_ms, now_ms), rank=1)


def columns(now_ms: int) -> tuple[Column[ProducerRow], ...]:
    """The connected producers of one topic, as `topics stats` lists them."""
    return (PRODUCER, MODE, EPOCH, OWNER, ALIVE, last_publish(now_ms))


def table(screen: Screen, rows: Sequence[R], columns: Sequence[Column[R]], *, indent: int = 0) -> TextTable:
    """A table, alarming words in colour."""
    return alarmed(screen, screen.table_of(rows, columns, indent=indent), ALARMS)
