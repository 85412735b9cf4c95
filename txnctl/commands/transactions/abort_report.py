"""The report of an abort for people: verbs, numbers and places, then the next command."""

from __future__ import annotations

from typing import NamedTuple

from storage.values.timestamps import rfc3339
from txnctl.fields.owner import about, process_state, told
from txnctl.output.human import duration
from txnctl.output.screen import dry_run_heading
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage import Store
    from storage.admin.abort import AbortResult, NextBlocker, ProducerEnded, TopicAborted, TransactionBefore
    from storage.json_form import Flat
    from storage.process.identity import ProcessIdentity
    from txnctl.cli.context import Context


class AbortReport(NamedTuple):
    """The effects of an abort; time, author and reason are None in a dry run."""

    result: Flat[AbortResult]
    ended_at_ms: int | None = None
    ended_by: ProcessIdentity | None = None
    reason: str | None = None
    reason_text: str | None = None


_SUPERVISOR = "txnctl transactions run "

_Line = tuple[str, int | None, str, str]
"""A line of the report: verb, number, noun, place."""


def effect_lines(aborted: AbortReport) -> Iterator[str]:
    """The transaction of one abort, and what the abort changes."""
    result, txn = aborted.result, aborted.result.before.txn_id
    if result.already:
        fenced = " Its producers were fenced then." if result.fence else ""
        yield f"{txn} was aborted already{_end(aborted)}.{fenced} Nothing was changed."
        return
    yield f"{'Abort' if result.dry_run else 'Aborted'} {txn} ({_state(result.before)})"
    yield from _aligned([*_effects(result), *_survivor(result.before), *_warnings(result)])


def run_many(context: Context, reports: Sequence[AbortReport]) -> Iterator[str]:
    """The command that aborts all transactions of a dry run that are open still."""
    txns = [report.result.before.txn_id for report in reports if not report.result.already]
    if txns:
        is_fencing = reports[0].result.fence
        yield f"Run: {line('transactions abort', *txns, fence=is_fencing, force=context.force, reason=...)}"


def with_end(store: Store, result: AbortResult) -> AbortReport:
    """Add time, reason and author of the end."""
    if result.dry_run and not result.already:
        return AbortReport(result)
    row = store.reports.show_transaction(result.before.txn_id).row
    return AbortReport(result, row.ended_at_ms, row.ended_by, row.reason, row.reason_text)


def report_lines(context: Context, aborted: AbortReport) -> Iterator[str]:
    """The lines of the report of one abort, with the next command."""
    result = aborted.result
    yield from dry_run_heading(context, result.dry_run and not result.already)
    yield from effect_lines(aborted)
    if result.already:
        return
    advice = _advice(result, context.force)
    if advice:
        yield ""
        yield from _content(result) if result.dry_run else ()
        yield advice


def _end(aborted: AbortReport) -> str:
    """` at 2026-11-22T20:55:00.000Z by anna@db-2:48211 (txnctl), asked: wrong file`."""
    if aborted.ended_at_ms is None:
        return ""
    why = f", {aborted.reason}" if aborted.reason else ""
    text = f": {aborted.reason_text}" if aborted.reason_text else ""
    return f" at {rfc3339(aborted.ended_at_ms)} by {aborted.ended_by}{why}{text}"


def _state(before: TransactionBefore) -> str:
    """`OPEN, version 18, idle 46m58s; owner anna@db-2:48211 is alive, deadline in 12m48s`."""
    left = before.deadline_in_ms
    until = f"deadline in {duration(left)}" if left > 0 else f"overdue {duration(-left)}"
    now = f"{before.state_before.value}, version {before.version}, idle {duration(before.idle_ms)}"
    return f"{now}; {told(before)}, {until}"


def _warnings(result: AbortResult) -> Iterator[_Line]:
    """Warnings against the abort."""
    from storage.limits import ACTIVE_OWNER_MS
    from storage.txn.owner_state import living_process

    before = result.before
    if result.refused is not None:
        yield "refused", None, "", f"without --force: {result.refused}"
    elif (
        before.owner_state == "detached"
        and before.idle_ms < ACTIVE_OWNER_MS
        and living_process(before) is None
    ):
        is_at_work = "may be" if result.dry_run else "may have been"
        yield "careful", None, "", f"used {duration(before.idle_ms)} ago: somebody {is_at_work} at work in it"


def _survivor(before: TransactionBefore) -> Iterator[_Line]:
    """The process that holds the transaction and lives on: an abort ends no process."""
    from os import getpid

    from storage.process.identity import descends_from
    from storage.txn.owner_state import living_process

    living = living_process(before)
    if living is None or living.process.pid == getpid():
        return
    owner = living.process
    runs_command = owner.program.startswith(_SUPERVISOR)
    if runs_command and descends_from(owner.pid, owner.started):
        yield (
            "survives",
            None,
            "",
            f"process {owner.pid} ({owner.program}), whose command this is part of: it goes on",
        )
        return
    goes = "ends its command within 11 s, unless run with --on-abort continue" if runs_command else "goes on"
    yield "survives", None, "", f"process {owner.pid} ({owner.program}), which {goes}"
    if living.state == "stopped":
        yield "", None, "", f"it is stopped, and learns of the abort after kill -CONT {owner.pid}"
    elif not runs_command:
        yield "", None, "", f"its next use of the transaction fails; kill {owner.pid} ends it"


def _effects(result: AbortResult) -> Iterator[_Line]:
    """Lines of the report, verb by verb."""
    from storage.admin.abort import ProducerEnded, SubscriptionAborted, TableAborted, TopicAborted

    topics = [effect for effect in result.effects if isinstance(effect, TopicAborted)]
    if not result.effects:
        yield "changes", None, "", "nothing: it has touched no topic, no subscription and no table"
    for topic in topics:
        where = f"{topic.name} {topic.first_position}"
        if topic.last_position != topic.first_position:
            where += f"..{topic.last_position}"
        yield "discards", topic.messages, _messages(topic.messages), where
    for effect in result.effects:
        if isinstance(effect, SubscriptionAborted):
            where = f"{effect.name} to subscription {effect.subscription}"
            if effect.cumulative is not None:
                where += f" (through {effect.cumulative})"
            yield "redelivers", effect.messages, _messages(effect.messages), where
    for effect in result.effects:
        if isinstance(effect, TableAborted):
            noun = "write intent" if effect.intents == 1 else "write intents"
            yield "releases", effect.intents, noun, effect.table
    producers = [effect for effect in result.effects if isinstance(effect, ProducerEnded)]
    for producer in producers:
        yield "fences", None, "", _fenced(producer)
    if result.fence and not producers:
        yield "fences", None, "", "nobody: no producer of its messages is connected"
    for topic in topics:
        yield from _released(topic)


def _fenced(producer: ProducerEnded) -> str:
    """`loader (Exclusive, anna@db-2:48211) on orders, epoch 7 -> 8; aborts 0:9 too`."""
    text = f"{producer.producer_name} ({producer.access_mode}, {producer.owner.address}) on {producer.name}"
    if producer.topic_epoch_before != producer.topic_epoch_after:
        text += f", epoch {producer.topic_epoch_before} -> {producer.topic_epoch_after}"
    if producer.transactions_aborted:
        text += f"; aborts {', '.join([str(aborted) for aborted in producer.transactions_aborted])} too"
    return text


def _released(topic: TopicAborted) -> Iterator[_Line]:
    """The messages of a topic that the abort unblocks, and the messages that stay blocked."""
    before, after = topic.max_read_position_before, topic.max_read_position_after
    if before != after:
        yield "moves", None, "", f"{topic.name} maxReadPosition {before} -> {after}"
    remaining = 0
    for name, change in topic.unblocks.items():
        remaining = max(remaining, change.blocked_after)
        freed = change.blocked_before - change.blocked_after
        if freed:
            seen = f"{name} {change.visible_before:,} -> {change.visible_after:,} visible"
            yield "unblocks", freed, f"of {change.blocked_before:,}", seen
    following = topic.blocked_next
    if following is not None:
        behind = f"behind {following.txn_id} ({_who(following)})"
        if remaining:
            yield "then", remaining, "stay blocked", behind
        else:
            yield "then", None, "", f"{topic.name} stops {behind}"


def _who(blocker: NextBlocker) -> str:
    return f"{about(blocker)}, {process_state(blocker)}, active {duration(blocker.idle_ms)} ago"


def _messages(number: int) -> str:
    return "message" if number == 1 else "messages"


def _aligned(lines: list[_Line]) -> Iterator[str]:
    numbers = max([len(f"{number:,}") for _, number, _, _ in lines if number is not None], default=0)
    nouns = max([len(noun) for _, _, noun, _ in lines], default=0)
    previous = None
    for what, number, noun, where in lines:
        label, previous = ("" if what == previous else what), what
        if number is None:
            yield f"  {label:11}  {where}"
        else:
            yield f"  {label:11}  {number:>{numbers},} {noun:{nouns}}   {where}"


def _content(result: AbortResult) -> Iterator[str]:
    """Commands that show the content to be dropped."""
    from storage.admin.abort import TableAborted, TopicAborted
    from txnctl.commands.topics.peek import PEEK_MAX

    for effect in result.effects:
        if isinstance(effect, TopicAborted):
            level, first = "read-uncommitted", effect.first_position
            peek = line(
                "topics peek",
                effect.name,
                isolation_level=level,
                **{"from": first},
                n=str(min(effect.messages, PEEK_MAX)),
            )
            yield f"See: {peek}"
        elif isinstance(effect, TableAborted):
            yield f"See: {line('tables intents', effect.table)}"


def _advice(result: AbortResult, force: bool) -> str | None:
    from storage.admin.abort import TopicAborted
    from storage.txn.owner_state import living_process

    before = result.before
    if result.dry_run:
        needs_force = bool(result.refused) or (force and living_process(before) is not None)
        version, fence = str(before.version), result.fence
        run = line(
            "transactions abort",
            before.txn_id,
            if_version=version,
            fence=fence,
            force=needs_force,
            reason=...,
        )
        return f"Run: {run}"
    for effect in result.effects:
        if not isinstance(effect, TopicAborted) or effect.blocked_next is None:
            continue
        if any(change.blocked_after for change in effect.unblocks.values()):
            return f"Next: {line('transactions explain', effect.blocked_next.txn_id)}"
    return None
