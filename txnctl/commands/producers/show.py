"""`txnctl producers show`: owner, queue and history of a topic on one screen, and the reasons against a new
producer.
"""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.producer import (
    ALIVE,
    AS_OF,
    EPOCH,
    MODE,
    NAMES,
    OWNER,
    PRODUCER,
    PROGRAM,
    ago,
    connected,
    last_publish,
    table,
    where,
)
from txnctl.output.column import Column
from txnctl.output.field import fields_of
from txnctl.output.human import duration, plural
from txnctl.output.screen import heading, next_command
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.json_form import Flat
    from storage.reports.producers import AdmissionAnswer, OwnershipRow, ProducerRow, TopicProducers
    from txnctl.cli.context import Context
    from txnctl.output.table_layout import TextTable

_HISTORY_SHOWN = 10


class ShownProducers(NamedTuple):
    """The producers of a topic, and the command that makes room for others."""

    producers: Flat[TopicProducers]
    next: str | None


SHOWN = fields_of(
    ShownProducers,
    {
        **NAMES,
        **AS_OF,
        "topic_epoch": "The epoch of the last exclusive producer; null if there was none.",
        "owner": "The exclusive producer that has the topic, as `producers list` tells of it, or null.",
        "publishers": "The connected producers, the owner included.",
        "waiting": "Those that wait for their turn, the next one first.",
        "waiting_publishers": "How many wait.",
        "history": (
            "The owners so far, the newest first: topicEpoch, producerName, accessMode (or `fence`, `restore`), owner, "
            "sessionId, waited, grantedAt and -Ms, endedAt and -Ms, endedBy (closed, dead, expired, fenced, restored; "
            "null while it owns), takenOverBy (an epoch), after and through (lastConfirmedEntry at either end), "
            "transactionsAborted."
        ),
        "admission": "For each accessMode what a new producer would meet: result and because.",
        "next": "The command that makes room for others; null if nobody is in the way.",
    },
    part="storage.reports.producers:TopicProducers",
)


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "-n",
    "--count",
    "limit",
    type=WholeNumber(0),
    default=_HISTORY_SHOWN,
    metavar="N",
    help="At most so many owners of the past. [default: 10]",
)
@reads_store
@output(SHOWN, name_field="name")
@example(
    "txnctl producers show orders",
    setup=("txnctl topics create orders", "txnctl producers open orders --producer loader"),
)
@example("txnctl producers show orders -n 100 -o json", setup="txnctl topics create orders")
def show(context: Context, topic: str, limit: int) -> None:
    """Show the owner of a topic, the queue, past owners, and the outcome for a new producer.

    Answers why a producer cannot connect: for each access mode the outcome at this moment, the producers in the way,
    and the command to evict the producers in the way.

    ALIVE is the proven state: `yes`, the process holds a lock; `stopped` (SIGSTOP), which counts as alive;
    `lease`, a session without a process, until the lease ends unused; `DEAD` or `EXPIRED`, out of the way of every
    producer.
    """
    producers = context.store.reports.show_producers(topic)
    history = producers.history
    if limit > len(history):
        history = context.store.reports.ownership_history(topic, limit)
    producers = producers._replace(history=history[:limit])
    shown = ShownProducers(producers, _advice(producers))
    context.show(shown, table=lambda row: _screen(context, row))


def _screen(context: Context, shown: ShownProducers) -> Iterator[str]:
    row = shown.producers
    yield heading(context, row.name, _summary(row), row.as_of_at_ms)
    for section in _tables(context, row):
        if section:
            yield ""
            yield from section.changed(str, indent=2)
    notes = list(_notes(row))
    if notes:
        yield ""
        yield from [f"  {line}" for line in notes]
    if shown.next is not None:
        yield ""
        yield next_command(context, shown.next)


def _tables(context: Context, row: TopicProducers) -> Iterator[TextTable]:
    """Connected producers, the queue, the answer for a new producer, and the owners so far."""
    at_ms = row.as_of_at_ms
    publishers = (PRODUCER, MODE, EPOCH, OWNER, PROGRAM, ALIVE, connected(at_ms), last_publish(at_ms))
    yield table(context, row.publishers, publishers, indent=2)
    place: Column[ProducerRow] = Column("WAITING", "integer", lambda waiting: waiting.place)
    waiting = (place, PRODUCER, OWNER, PROGRAM, ALIVE, connected(at_ms, "FOR"))
    yield table(context, row.waiting, waiting, indent=2)
    admission: tuple[Column[AdmissionAnswer], ...] = (
        Column("A NEW PRODUCER", "text", lambda answer: answer.access_mode),
        Column("WOULD", "text", lambda answer: _would(row, answer.result)),
    )
    yield table(context, row.admission, admission, indent=2)
    yield table(context, row.history, _history_columns(at_ms), indent=2)


def _history_columns(now_ms: int) -> tuple[Column[OwnershipRow], ...]:
    return (
        Column("EPOCH", "integer", lambda tenure: tenure.topic_epoch),
        Column("PRODUCER", "id", lambda tenure: tenure.producer_name),
        Column("MODE", "text", lambda tenure: tenure.access_mode, rank=4),
        Column("OWNER", "list", lambda tenure: where(tenure.owner)),
        Column("OWNER SINCE", "time", lambda tenure: tenure.granted_at_ms, rank=1),
        Column("FOR", "text", lambda tenure: ago(tenure.granted_at_ms, tenure.ended_at_ms or now_ms)),
        Column("ENDED", "text", _ended),
        Column("ENTRIES", "text", _entries, rank=3),
        Column("ABORTED", "integer", lambda tenure: tenure.transactions_aborted, rank=2),
    )


def _advice(row: TopicProducers) -> str | None:
    """The command that frees the topic, as a dry run: only where producers wait or the owner is stopped."""
    living = [publisher for publisher in row.publishers if publisher.alive]
    if living and (row.waiting_publishers or any(publisher.state == "stopped" for publisher in living)):
        return line("producers fence", row.name, dry_run=True)
    if any(producer.state == "stopped" for producer in row.waiting):
        return line("producers fence", row.name, waiting=True, dry_run=True)
    return None


def _notes(row: TopicProducers) -> Iterator[str]:
    """Notes below the tables: the meaning of a state for other producers, and the way out."""
    for producer in (*row.publishers, *row.waiting):
        name, state = producer.producer_name, producer.state
        if state == "stopped":
            yield (
                f"{name} is stopped, and keeps its place all the same: kill -CONT {producer.pid} lets it go on, "
                f"kill -KILL {producer.pid} ends it."
            )
        elif state == "unknown-host":
            yield f"{name} is on {producer.host}; nobody here holds its lock, and it stands in nobody's way."
        elif state == "leased" and producer.lease_ends_in_ms is not None:
            yield (
                f"{name} belongs to no process: its lease ends in {duration(producer.lease_ends_in_ms)}, unless it is "
                f"used. `{line('producers close')}` ends it, by whoever has its token."
            )
        elif not producer.alive:
            yield f"{name} is gone: the next producer that connects removes it."


def _summary(row: TopicProducers) -> str:
    """`topicEpoch 7, owned by loader, 2 wait`."""
    epoch = "no topicEpoch yet" if row.topic_epoch is None else f"topicEpoch {row.topic_epoch}"
    parts = [epoch]
    if row.owner is not None:
        parts.append(f"owned by {row.owner.producer_name}")
    elif living := sum(publisher.alive for publisher in row.publishers):
        parts.append(plural(living, "shared producer"))
    else:
        parts.append("nobody is connected")
    if row.waiting_publishers:
        parts.append(f"{row.waiting_publishers:,} waiting")
    return ", ".join(parts)


def _would(row: TopicProducers, result: str) -> str:
    """`be refused: loader has the topic for itself`."""
    publishers = [publisher for publisher in row.publishers if publisher.alive]
    waiting = sum(producer.alive for producer in row.waiting)
    obstacle = "nobody is there"
    if row.owner is not None:
        obstacle = f"{row.owner.producer_name} has the topic for itself"
    elif publishers:
        obstacle = f"{plural(len(publishers), 'shared producer')} {'is' if len(publishers) == 1 else 'are'} connected"
    elif waiting:
        obstacle = f"{plural(waiting, 'producer')} {'waits' if waiting == 1 else 'wait'} for it"
    if result == "busy":
        return f"be refused: {obstacle}"
    if result == "waits":
        return f"wait: {obstacle}" + (f", {waiting} before it" if waiting and publishers else "")
    if result == "takes over":
        return f"evict {plural(len(publishers) + waiting, 'producer')} and own the topic"
    return {"connects": "connect", "owns": "own the topic"}.get(result, result)


def _ended(tenure: OwnershipRow) -> str | None:
    """`fenced by epoch 8`; None for the present owner."""
    if tenure.taken_over_by is None:
        return tenure.ended_by
    return f"{tenure.ended_by} by epoch {tenure.taken_over_by}"


def _entries(tenure: OwnershipRow) -> str:
    """The entries between the two ends; open-ended for the present owner."""
    if tenure.through == tenure.after:
        return "none"
    return f"after {tenure.after}" + ("" if tenure.through is None else f" to {tenure.through}")
