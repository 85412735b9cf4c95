"""The verdict of a subscription in sentences: slow, stopped or blocked, and the next command."""

from __future__ import annotations

from txnctl.fields.subscription import (
    short_topic,
)
from txnctl.output.human import duration, plural
from txnctl.output.screen import next_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row


def explanation(context: Context, rows: Sequence[Row], blocker: Row | None, as_of_ms: int) -> Iterator[str]:
    """Explain each verdict in a sentence, and name the next command."""
    stopped = []
    for row in rows:
        if row["verdict"] == "no-consumer":
            readable = plural(row["visible"], "message")
            yield f"{row['subscription']}: nobody is attached; {readable} could be read now."
        elif row["visible"]:
            yield f"{row['subscription']}: {_reading(row)}."
            stopped += _stopped(row)
    if stopped:
        yield ""
        yield next_command(context, "kill -CONT " + str(stopped[0]["pid"]))
    held = [*_held_by_keys(context, rows), *_acknowledged(context, rows)]
    if stopped and held:
        yield ""
    yield from held
    waiting = [str(row["subscription"]) for row in rows if row["blocked"] and row["onOpen"] != "skip"]
    if not waiting or blocker is None:
        return
    verb = "waits" if len(waiting) == 1 else "wait"
    owner = str(blocker["owner"]).partition(" (")[0]
    state = (
        "held by no process"
        if blocker["ownerState"] == "detached"
        else f"owner {owner} is {blocker['ownerState']}"
    )
    age = duration(max(0, as_of_ms - blocker["beginMs"]))
    if stopped or held:
        yield ""
    yield (
        f"{', '.join(waiting)} {verb} behind transaction {blocker['txnId']}: open for {age}, {state}; it holds "
        f"everything from {blocker['firstPosition']} on."
    )
    yield ""
    yield next_command(context, "txnctl transactions explain " + blocker["txnId"])


def _stopped(row: Row) -> list[Row]:
    """The stopped consumers: messages in flight there are held back meanwhile."""
    return [consumer for consumer in row["consumers"] if consumer["state"] == "stopped"]


def _reading(row: Row) -> str:
    """`worker-7 is stopped and holds 50 in flight (…)`, or `its consumers are slow; 12 messages could be read now`."""
    stopped, alive = (
        _stopped(row),
        [consumer for consumer in row["consumers"] if consumer["state"] == "alive"],
    )
    evict = f"txnctl subscriptions evict {short_topic(row)} {row['subscription']}"
    facts = [
        f"{consumer['consumerName']} is stopped and holds {consumer['unackedMessages']:,} in flight, which {evict} "
        f"{consumer['consumerName']} gives to others"
        for consumer in stopped
    ]
    ready = row["visible"] - sum(consumer["unackedMessages"] for consumer in (*stopped, *alive))
    if ready:
        facts += [
            *(["its consumers are slow"] if alive else []),
            f"{plural(ready, 'message')} could be read now",
        ]
    working = [consumer for consumer in alive if consumer["unackedMessages"]]
    facts += [
        f"{consumer['unackedMessages']:,} in flight at {consumer['consumerName']}" for consumer in working[:5]
    ]
    if len(working) > 5:
        facts.append(f"more at {plural(len(working) - 5, 'other')}")
    if working and not ready and not stopped:
        most = max(working, key=lambda consumer: int(consumer["unackedMessages"]))
        facts.append(f"if nothing moves, {evict} {most['consumerName']} gives what it holds to others")
    return "; ".join(facts)


def _held_by_keys(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """With on-open skip: the transaction that holds back most messages by key."""
    for row in rows:
        most = max(row["heldBy"], key=lambda holder: holder["blocked"], default=None)
        if most is None or not most["blocked"]:
            continue
        verb = "waits for its key" if most["blocked"] == 1 else "wait for their keys"
        yield (
            f"{row['subscription']}: {most['blocked']:,} of {row['blocked']:,} blocked {verb} behind transaction "
            f"{most['txnId']}."
        )
        yield next_command(context, "txnctl transactions explain " + most["txnId"])


def _acknowledged(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """The open transaction with most pending acknowledgements: the messages are held back until that transaction
    ends.
    """
    for row in rows:
        most = max(row["pendingIn"], key=lambda holder: int(holder["messages"]), default=None)
        if most is None:
            continue
        verb = "is" if most["messages"] == 1 else "are"
        of = f" of {row['pending']:,} pending" if len(row["pendingIn"]) > 1 else ""
        yield (
            f"{row['subscription']}: {most['messages']:,}{of} {verb} acknowledged in transaction {most['txnId']}, "
            "which is open."
        )
        yield next_command(context, "txnctl transactions explain " + most["txnId"])
