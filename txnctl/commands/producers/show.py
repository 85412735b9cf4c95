"""`txnctl producers show`: owner, queue and history of a topic on one screen, and the reasons against a new
producer.
"""

from __future__ import annotations

import click

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.producer import AS_OF, NAMES, cells, table, where
from txnctl.output.field import Field
from txnctl.output.human import duration, plural
from txnctl.output.screen import heading, next_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_HISTORY_SHOWN = 10

SHOWN = (
    *NAMES,
    *AS_OF,
    Field("topicEpoch", "integer", "The epoch of the last exclusive producer; null if there was none."),
    Field(
        "owner", "map", "The exclusive producer that has the topic, as `producers list` tells of it, or null."
    ),
    Field("publishers", "list", "The connected producers, the owner included."),
    Field("waiting", "list", "Those that wait for their turn, the next one first."),
    Field("waitingPublishers", "integer", "How many wait."),
    Field(
        "history",
        "list",
        "The owners so far, the newest first: topicEpoch, producerName, accessMode (or `fence`, `restore`), owner, "
        "sessionId, waited, grantedAt and -Ms, endedAt and -Ms, endedBy (closed, dead, expired, fenced, restored; null "
        "while it owns), takenOverBy (an epoch), after and through (lastConfirmedEntry at either end), "
        "transactionsAborted.",
    ),
    Field("admission", "list", "For each accessMode what a new producer would meet: result and because."),
    Field("next", "text", "The command that makes room for others; null if nobody is in the way."),
)

_PUBLISHERS = (
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("accessMode", "text", "What it asked for.", heading="MODE"),
    Field("epoch", "integer", "Its epoch."),
    Field("who", "text", "Where it runs.", heading="OWNER"),
    Field("program", "text", "What it runs."),
    Field("alive", "text", "Whether it lives."),
    Field("connected", "text", "For how long."),
    Field("lastPublish", "text", "How long ago."),
)
_WAITING = (
    Field("place", "integer", "Its place.", heading="WAITING"),
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("who", "text", "Where it runs.", heading="OWNER"),
    Field("program", "text", "What it runs."),
    Field("alive", "text", "Whether it lives."),
    Field("connected", "text", "For how long.", heading="FOR"),
)
_ADMISSION = (
    Field("accessMode", "text", "What it asks for.", heading="A NEW PRODUCER"),
    Field("would", "text", "What it would meet, and why."),
)
_HISTORY = (
    Field("topicEpoch", "integer", "The epoch.", heading="EPOCH"),
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("accessMode", "text", "How it came to it.", heading="MODE"),
    Field("who", "text", "Where it ran.", heading="OWNER"),
    Field("grantedAt", "time", "When.", heading="OWNER SINCE"),
    Field("held", "text", "For how long.", heading="FOR"),
    Field("ended", "text", "How it ended."),
    Field("wrote", "text", "From the first to the last entry of its time.", heading="ENTRIES"),
    Field("transactionsAborted", "integer", "By its coming.", heading="ABORTED"),
)


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "-n",
    "--limit",
    type=click.IntRange(0),
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

    ALIVE is the proven state: `yes`, the process holds a kernel lock; `stopped` (SIGSTOP), which counts as alive;
    `lease`, a session without a process, until the lease ends unused; `DEAD` or `EXPIRED`, out of the way of every
    producer.
    """
    row = to_json(context.store.reports.show_producers(topic))
    if limit > len(row["history"]):
        row["history"] = to_json(context.store.reports.ownership_history(topic, limit))
    row["history"] = row["history"][:limit]
    row["next"] = _advice(row)
    context.show(row, table=lambda shown: _screen(context, shown))


def _screen(context: Context, row: Row) -> Iterator[str]:
    yield heading(context, row["name"], _summary(row), row["asOfMs"])
    for rows, columns in (
        (_cells(row, "publishers"), _PUBLISHERS),
        (_cells(row, "waiting"), _WAITING),
        (_admission(row), _ADMISSION),
        (_history(row), _HISTORY),
    ):
        if rows:
            yield ""
            yield from [f"  {line}" for line in table(context, rows, columns).splitlines()]
    notes = list(_notes(row))
    if notes:
        yield ""
        yield from [f"  {line}" for line in notes]
    if row["next"] is not None:
        yield ""
        yield next_command(context, row["next"])


def _advice(row: Row) -> str | None:
    """The command that frees the topic, as a dry run: only where producers wait or the owner is stopped."""
    living = [publisher for publisher in row["publishers"] if publisher["alive"]]
    if living and (row["waitingPublishers"] or any(publisher["state"] == "stopped" for publisher in living)):
        return f"txnctl producers fence {row['name']} --dry-run"
    if any(producer["state"] == "stopped" for producer in row["waiting"]):
        return f"txnctl producers fence {row['name']} --waiting --dry-run"
    return None


def _notes(row: Row) -> Iterator[str]:
    """Notes below the tables: the meaning of a state for other producers, and the way out."""
    for producer in (*row["publishers"], *row["waiting"]):
        name, state = producer["producerName"], producer["state"]
        if state == "stopped":
            yield (
                f"{name} is stopped, and keeps its place all the same: kill -CONT {producer['pid']} lets it go on, "
                f"kill -KILL {producer['pid']} ends it."
            )
        elif state == "unknown-host":
            yield f"{name} is on {producer['host']}; nobody here holds its lock, and it stands in nobody's way."
        elif state == "leased":
            yield (
                f"{name} belongs to no process: its lease ends in {duration(producer['leaseEndsInMs'])}, unless it is "
                "used. `txnctl producers close` ends it, by whoever has its token."
            )
        elif not producer["alive"]:
            yield f"{name} is gone: the next producer that connects removes it."


def _summary(row: Row) -> str:
    """`topicEpoch 7, owned by loader, 2 wait`."""
    epoch = "no topicEpoch yet" if row["topicEpoch"] is None else f"topicEpoch {row['topicEpoch']}"
    parts = [epoch]
    if row["owner"] is not None:
        parts.append(f"owned by {row['owner']['producerName']}")
    elif living := sum(publisher["alive"] for publisher in row["publishers"]):
        parts.append(plural(living, "shared producer"))
    else:
        parts.append("nobody is connected")
    if row["waitingPublishers"]:
        parts.append(f"{row['waitingPublishers']:,} waiting")
    return ", ".join(parts)


def _cells(row: Row, name: str) -> list[Row]:
    return [cells(producer, row["asOfMs"]) for producer in row[name]]


def _admission(row: Row) -> list[Row]:
    return [{**outcome, "would": _would(row, outcome["result"])} for outcome in row["admission"]]


def _would(row: Row, result: str) -> str:
    """`be refused: loader has the topic for itself`."""
    publishers = [publisher for publisher in row["publishers"] if publisher["alive"]]
    waiting = sum(producer["alive"] for producer in row["waiting"])
    obstacle = "nobody is there"
    if row["owner"] is not None:
        obstacle = f"{row['owner']['producerName']} has the topic for itself"
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


def _history(row: Row) -> Sequence[Row]:
    return [
        {
            **tenure,
            "who": where(tenure),
            "held": duration(max(0, (tenure["endedMs"] or row["asOfMs"]) - tenure["grantedMs"])),
            "ended": _ended(tenure),
            "wrote": _entries(tenure),
        }
        for tenure in row["history"]
    ]


def _ended(tenure: Row) -> str | None:
    """`fenced by epoch 8`; None for the present owner."""
    if tenure["takenOverBy"] is None:
        return tenure["endedBy"]  # type: ignore[no-any-return]
    return f"{tenure['endedBy']} by epoch {tenure['takenOverBy']}"


def _entries(tenure: Row) -> str:
    """The entries between the two ends; open-ended for the present owner."""
    if tenure["through"] == tenure["after"]:
        return "none"
    return f"after {tenure['after']}" + ("" if tenure["through"] is None else f" to {tenure['through']}")
