"""The verdict of a subscription in sentences: slow, stopped or blocked, and the next command."""

from __future__ import annotations

from txnctl.fields.owner import told
from txnctl.fields.subscription import short_topic
from txnctl.output.human import duration, plural
from txnctl.output.screen import next_command
from txnctl.output.shell import command, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.quiet_consumers import QuietConsumer
    from storage.reports.stats import ConsumerRow
    from txnctl.cli.context import Context
    from txnctl.commands.subscriptions.lag_row import LagRow


def explanation(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    """Explain each verdict in a sentence, and name the next command."""
    stopped, quiet = [], _quiet(context, rows)
    for row in rows:
        if row.verdict == "no-consumer":
            readable = plural(row.visible, "message")
            yield f"{row.subscription}: nobody is attached; {readable} could be read now."
        elif row.visible:
            yield f"{row.subscription}: {_reading(row, quiet)}."
            stopped += _stopped(row)
    if stopped:
        yield ""
        yield next_command(context, "kill -CONT " + str(stopped[0].pid))
    held = [*_held_by_keys(context, rows), *_acknowledged(context, rows)]
    if stopped and held:
        yield ""
    yield from held
    waiting = [row for row in rows if row.blocked_by is not None]
    if not waiting:
        return
    if stopped or held:
        yield ""
    yield from _waiting(context, waiting)


def _waiting(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    """The transaction that holds maxReadPosition, and the subscriptions behind this transaction."""
    blocker, as_of_ms = rows[0].blocked_by, rows[0].as_of_at_ms
    if blocker is None:
        return
    verb = "waits" if len(rows) == 1 else "wait"
    age = duration(max(0, as_of_ms - blocker.begin_at_ms))
    yield (
        f"{', '.join([row.subscription for row in rows])} {verb} behind transaction {blocker.txn_id}: open for "
        f"{age}, {told(blocker)}; it holds everything from {blocker.first_position} on."
    )
    yield ""
    yield next_command(context, line("transactions explain", blocker.txn_id))


def _stopped(row: LagRow) -> list[ConsumerRow]:
    """The stopped consumers: messages in flight there are held back meanwhile."""
    return [consumer for consumer in row.consumers if consumer.state == "stopped"]


def _quiet(context: Context, rows: Sequence[LagRow]) -> dict[tuple[str, str, str], QuietConsumer]:
    """The consumers that hold messages and acknowledge none, by topic, subscription and name."""
    if not any(consumer.unacked_messages for row in rows for consumer in row.consumers):
        return {}
    quiet = context.store.reports.list_quiet_consumers()
    return {(row.topic, row.subscription, row.consumer_name): row for row in quiet}


def _reading(row: LagRow, quiet: dict[tuple[str, str, str], QuietConsumer]) -> str:
    """`worker-7 is stopped and holds 50 in flight (…)`, or `its consumers are slow; 12 messages could be read now`."""
    from storage.reports.quiet_findings import behind_its_key, peek_of

    stopped, alive = (
        _stopped(row),
        [consumer for consumer in row.consumers if consumer.state == "alive"],
    )
    facts = [
        f"{consumer.consumer_name} is stopped and holds {consumer.unacked_messages:,} in flight, which "
        f"{_evict(row, consumer)} gives to others"
        for consumer in stopped
    ]
    known = [quiet.get((row.topic, row.subscription, consumer.consumer_name)) for consumer in alive]
    stuck = [consumer for consumer in known if consumer is not None and consumer.key_messages is not None]
    ready = row.visible - sum(consumer.unacked_messages for consumer in (*stopped, *alive))
    ready -= sum(behind_its_key(consumer) for consumer in stuck)
    if ready > 0:
        facts += [
            *(["its consumers are slow"] if alive else []),
            f"{plural(ready, 'message')} could be read now",
        ]
    working = [consumer for consumer in alive if consumer.unacked_messages]
    facts += [_in_flight(row, consumer, quiet) for consumer in working[:5]]
    if len(working) > 5:
        facts.append(f"more at {plural(len(working) - 5, 'other')}")
    if stuck:
        look = command(peek_of(stuck[0]))
        facts.append(f"all of one key, at which the next worker may stick too: `{look}` shows the messages")
    elif working and ready <= 0 and not stopped:
        most = max(working, key=lambda consumer: consumer.unacked_messages)
        facts.append(f"if nothing moves, {_evict(row, most)} gives what it holds to others")
    return "; ".join(facts)


def _in_flight(row: LagRow, consumer: ConsumerRow, quiet: dict[tuple[str, str, str], QuietConsumer]) -> str:
    """`1 of the 200 messages of key k in flight at worker, which has acknowledged none for 3m00s`."""
    from storage.reports.quiet_findings import held

    known = quiet.get((row.topic, row.subscription, consumer.consumer_name))
    if known is None:
        return f"{consumer.unacked_messages:,} in flight at {consumer.consumer_name}"
    what = f"{consumer.unacked_messages:,}" if known.key_messages is None else held(known).rstrip(",")
    text = f"{what} in flight at {consumer.consumer_name}"
    return f"{text}, which has acknowledged none for {duration(known.quiet_ms)}"


def _evict(row: LagRow, consumer: ConsumerRow) -> str:
    """The command in backquotes: it stands inside a sentence, and its end is not the sentence's."""
    return f"`{line('subscriptions evict', short_topic(row), row.subscription, consumer.consumer_name)}`"


def _held_by_keys(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    """With on-open skip: the transaction that holds back most messages by key."""
    for row in rows:
        most = max(row.held_by, key=lambda holder: holder.blocked, default=None)
        if most is None or not most.blocked:
            continue
        verb = "waits for its key" if most.blocked == 1 else "wait for their keys"
        yield (
            f"{row.subscription}: {most.blocked:,} of {row.blocked:,} blocked {verb} behind transaction "
            f"{most.txn_id}."
        )
        yield next_command(context, line("transactions explain", most.txn_id))


def _acknowledged(context: Context, rows: Sequence[LagRow]) -> Iterator[str]:
    """The open transaction with most pending acknowledgements: the messages are held back until that transaction
    ends.
    """
    for row in rows:
        most = max(row.pending_in, key=lambda holder: holder.messages, default=None)
        if most is None:
            continue
        verb = "is" if most.messages == 1 else "are"
        of = f" of {row.pending:,} pending" if len(row.pending_in) > 1 else ""
        yield (
            f"{row.subscription}: {most.messages:,}{of} {verb} acknowledged in transaction {most.txn_id}, "
            "which is open."
        )
        yield next_command(context, line("transactions explain", most.txn_id))
