"""`txnctl subscriptions lag`: is the consumer slow, or is it blocked, and by whom?"""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.fields.subscription import (
    AS_OF,
    BACKLOG,
    BLOCKED_BY,
    CONSUMERS,
    ENDS,
    HELD_BY,
    MODE,
    NAMES,
    ON_OPEN,
    PENDING_IN,
    VERDICT,
    level_of,
    living,
    short_topic,
)
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

LAG = (
    *NAMES,
    *AS_OF,
    *MODE,
    ON_OPEN,
    Field("markDeletePosition", "position", "Everything up to here is acknowledged."),
    *BACKLOG,
    PENDING_IN,
    HELD_BY,
    VERDICT,
    CONSUMERS,
    *ENDS,
    Field(
        "blockedBy", "map", f"{BLOCKED_BY.help[:-1]}, it blocks nothing here, or the subscription skips it."
    ),
)
_OF_TOPIC = ("topic", "asOfAt", "asOfMs", "maxReadPosition", "lastConfirmedEntry")

_COLUMNS = (
    NAMES[1],
    *MODE,
    *BACKLOG[:5],
    Field("living", "integer", "Consumers.", heading="CONSUMERS"),
    VERDICT,
)


@argument("topic", type=TOPIC, help="The topic.")
@argument(
    "subscription", type=SUBSCRIPTION, required=False, help="Only this one. [default: all of the topic]"
)
@option("--exit-code", is_flag=True, help="End with 8 if a verdict is not ok.")
@reads_store
@output(LAG, name_field="subscription")
@example(
    "txnctl subscriptions lag orders",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
@example(
    "txnctl subscriptions lag orders billing -o json",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
def lag(context: Context, topic: str, subscription: str | None, exit_code: bool) -> None:
    """Say whether consumers are slow, or blocked by an open transaction.

    `visible` can be handed out now: if it stays high, consumers are slow. `blocked` is committed, but waits behind
    an open transaction: no consumer can help, that transaction must end. `uncommitted` belongs to open transactions.

    A subscription with on-open skip has blocked only what waits for its key; heldBy says behind which transaction.
    What is `pending` goes to nobody until the transaction ends in which it is acknowledged; pendingIn says which.

    The verdict is `ok`, `behind` (visible), `blocked`, `mixed` (both), or `no-consumer` (visible, and nobody there).
    """
    rows = _rows(context, topic, subscription)
    if not rows and context.output == "table":
        context.note(f"there are no subscriptions on {topic}")
    if subscription is None:
        context.show_list(rows, table=lambda shown: _report(context, shown))
    else:
        context.show(rows[0], table=lambda shown: _report(context, [shown]))
    if exit_code and any(row["verdict"] != "ok" for row in rows):
        from txnctl.cli import exit_codes

        context.exit(exit_codes.CONDITION_FOUND)


def _rows(context: Context, topic: str, subscription: str | None) -> list[Row]:
    """One row a subscription, all from one view."""
    names = [field.name for field in LAG]
    if subscription is not None:
        whole = [context.store.reports.subscription_stats(topic, subscription)]
    else:
        stats = context.store.reports.topic_stats(topic)
        shared = {name: stats[name] for name in (*_OF_TOPIC, "blockedBy")}
        whole = [{**each, **shared, "subscription": name} for name, each in stats["subscriptions"].items()]
    rows = [{name: row[name] for name in names} for row in whole]
    for row in rows:
        if not row["blocked"] or row["onOpen"] == "skip":
            row["blockedBy"] = None
    return rows


def _report(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    from txnctl.commands.topics.stats import VERDICT_STYLES, heading

    if not rows:
        return
    first = rows[0]
    facts = f"maxReadPosition {first['maxReadPosition']}   lastConfirmedEntry {first['lastConfirmedEntry']}"
    yield heading(context, short_topic(first), facts, first["asOfMs"])
    yield ""
    cells = [{**row, "subscriptionIsolationLevel": level_of(row), "living": living(row)} for row in rows]
    headings, *lines = context.table_of(cells, _COLUMNS, folds=False).splitlines()
    yield f"  {context.style(headings, 'dim')}"
    for row, line in zip(rows, lines, strict=True):
        verdict = row["verdict"]
        yield f"  {line.removesuffix(verdict)}{context.style(verdict, *VERDICT_STYLES.get(verdict, ()))}"
    blockers = [row["blockedBy"] for row in rows if row["blockedBy"] is not None]
    told = list(explanation(context, rows, blockers[0] if blockers else None, first["asOfMs"]))
    if told:
        yield ""
        yield from told


def explanation(context: Context, rows: Sequence[Row], blocker: Row | None, as_of_ms: int) -> Iterator[str]:
    """What the verdicts mean, in a sentence each, and the next command."""
    from txnctl.output.human import duration, plural

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
        yield f"Next: {context.style('kill -CONT ' + str(stopped[0]['pid']), 'cyan')}"
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
    yield f"Next: {context.style('txnctl transactions explain ' + blocker['txnId'], 'cyan')}"


def _stopped(row: Row) -> list[Row]:
    """The consumers that are stopped: what they hold goes to nobody else meanwhile."""
    return [each for each in row["consumers"] if each["state"] == "stopped"]


def _reading(row: Row) -> str:
    """`worker-7 is stopped and holds 50 in flight (…)`, or `its consumers are slow; 12 messages could be read now`."""
    from txnctl.output.human import plural

    stopped, alive = _stopped(row), [each for each in row["consumers"] if each["state"] == "alive"]
    evict = f"txnctl subscriptions evict {short_topic(row)} {row['subscription']}"
    facts = [
        f"{each['consumerName']} is stopped and holds {each['unackedMessages']:,} in flight, which {evict} "
        f"{each['consumerName']} gives to others"
        for each in stopped
    ]
    ready = row["visible"] - sum(each["unackedMessages"] for each in (*stopped, *alive))
    if ready:
        facts += [
            *(["its consumers are slow"] if alive else []),
            f"{plural(ready, 'message')} could be read now",
        ]
    working = [each for each in alive if each["unackedMessages"]]
    facts += [f"{each['unackedMessages']:,} in flight at {each['consumerName']}" for each in working[:5]]
    if len(working) > 5:
        facts.append(f"more at {plural(len(working) - 5, 'other')}")
    if working and not ready and not stopped:
        most = max(working, key=lambda each: int(each["unackedMessages"]))
        facts.append(f"if nothing moves, {evict} {most['consumerName']} gives what it holds to others")
    return "; ".join(facts)


def _held_by_keys(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """With on-open skip: which transaction holds most of what waits for its key."""
    for row in rows:
        most = max(row["heldBy"], key=lambda each: each["blocked"], default=None)
        if most is None or not most["blocked"]:
            continue
        verb = "waits for its key" if most["blocked"] == 1 else "wait for their keys"
        yield (
            f"{row['subscription']}: {most['blocked']:,} of {row['blocked']:,} blocked {verb} behind transaction "
            f"{most['txnId']}."
        )
        yield f"Next: {context.style('txnctl transactions explain ' + most['txnId'], 'cyan')}"


def _acknowledged(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """In which open transaction most of what is pending is acknowledged: it goes to nobody until that one ends."""
    for row in rows:
        most = max(row["pendingIn"], key=lambda each: int(each["messages"]), default=None)
        if most is None:
            continue
        verb = "is" if most["messages"] == 1 else "are"
        of = f" of {row['pending']:,} pending" if len(row["pendingIn"]) > 1 else ""
        yield (
            f"{row['subscription']}: {most['messages']:,}{of} {verb} acknowledged in transaction {most['txnId']}, "
            "which is open."
        )
        yield f"Next: {context.style('txnctl transactions explain ' + most['txnId'], 'cyan')}"
