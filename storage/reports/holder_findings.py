"""Findings about blockers: open transactions, consumers and producers that hold up messages, keys or producers.

One finding for each cause, with all effects: a stopped process, the late transactions together, a transaction that
blocks topics, and transactions without a working process that hold messages or keys. Each rule is a pure function from
the facts of the store to findings; the effects of transactions are worded by `effects.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.actions import Action, Hint, resume
from storage.reports import advice
from storage.reports.effects import Effects, is_abandoned, subscription_name
from storage.reports.facts import Facts, HolderFacts, QueueFacts, StoppedOwner, SubscriptionFacts
from storage.reports.finding import Finding, listed, several, some, warning
from storage.reports.producers import ProducerRow
from storage.reports.stats import ConsumerRow
from storage.table.push import RANKS
from storage.txn.owner_state import living_process
from storage.values.names import short_topic_name
from storage.values.txn_id import TxnID


class _Stopped:
    """A stopped process: its open transactions, its consumers, and the queues of producers behind it."""

    __slots__ = ("consumers", "owned", "pid", "queues")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.owned: list[StoppedOwner] = []
        self.consumers: list[tuple[SubscriptionFacts, ConsumerRow]] = []
        self.queues: list[QueueFacts] = []


def _stopped_processes(facts: Facts) -> list[_Stopped]:
    """The stopped processes in the way of work, processes with transactions first."""
    by_pid: dict[int, _Stopped] = {}

    def process_of(pid: int) -> _Stopped:
        return by_pid.setdefault(pid, _Stopped(pid))

    for owned in facts.transactions.stopped:
        process_of(owned.pid).owned.append(owned)
    for row in facts.subscriptions:
        for consumer in row.consumers:
            if consumer.state == "stopped":
                process_of(consumer.pid).consumers.append((row, consumer))
    for queue in facts.producers:
        standing = _standing(queue)
        if standing.state == "stopped":
            process_of(standing.pid).queues.append(queue)
    return list(by_pid.values())


def stopped_holders(facts: Facts) -> list[str]:
    """Name each transaction, consumer and producer of a stopped process in the way of work."""
    named = []
    for process in _stopped_processes(facts):
        named += [f"transaction {owned.row.txn_id} of process {process.pid}" for owned in process.owned]
        named += [f"consumer {row.consumer_name} of {subscription_name(of)}" for of, row in process.consumers]
        named += [f"producer {_standing(queue).producer_name} of {queue.name}" for queue in process.queues]
    return named


def held_objects(facts: Facts) -> list[str]:
    """Name each subscription and table of which a transaction without a working process holds messages or keys."""
    named = [
        subscription_name(row)
        for row in facts.subscriptions
        if any(is_abandoned(held.holder) for held in row.held_by)
    ]
    return named + [
        f"table {table.table}"
        for table in facts.tables
        if any(is_abandoned(held.holder) for held in table.held_by)
    ]


def _processes(facts: Facts) -> Iterator[Finding]:
    """Stopped processes with all effects, since continuing the process ends all effects at once.

    Late transactions have a finding of their own: the process cannot finish a late transaction any more.
    """
    late = {str(row.txn_id) for row in facts.transactions.late}
    for process in _stopped_processes(facts):
        process.owned = [owned for owned in process.owned if str(owned.row.txn_id) not in late]
        parts = [*_owner(facts, process), *_consumers(process), *_queues(process)]
        if parts:
            code, about, what, why = parts[0]
            what = "; ".join([what, *[further for _, _, further, _ in parts[1:]]])
            yield warning(code, about, what, why, resume(process.pid))


_Part = tuple[str, str, str, str]
"""A finding about a stopped process without its action: code, about, what, why."""


def _owner(facts: Facts, process: _Stopped) -> Iterator[_Part]:
    """The open transactions of the process, on every place of a chain: the first is not always the cause."""
    if not process.owned:
        return
    rows = [owned.row for owned in process.owned]
    txns = [row.txn_id for row in rows]
    ids, one = some([str(txn) for txn in txns]), len(txns) == 1
    verb = "belongs to" if one else "belong to"
    if not all(row.owner_state == "stopped" for row in rows):
        verb = "was last used by" if one else "were last used by"
    what = f"open transaction{_s(txns)} {ids} {verb} process {process.pid}, which is stopped"
    effects = Effects.gather(facts, txns)
    what = "; ".join([what, *effects.clauses("it" if len(txns) == 1 else "them")])
    topics = dict.fromkeys(topic for row in rows for topic in row.topics)
    tables = list(dict.fromkeys(table for row in rows for table in row.tables))
    held = [f"messages of {some([short_topic_name(topic) for topic in topics])}"] if topics else []
    if any(row.acknowledgements for row in rows):
        held.append("acknowledgements")
    if tables:
        held.append(f"keys of {some(tables)}")
    subject, end = ("It holds", "it ends") if len(txns) == 1 else ("They hold", "they end")
    why = Hint(
        "{}{} goes on where it was when it is continued; or end it with `{}`.",
        f"{subject} {listed(held)} until {end}. " if held else "",
        rows[0].owner if rows[0].owner_state == "stopped" else rows[0].last_user,
        Action("store.admin.transactions.abort_transaction", txns[0], force=True),
    )
    yield "owner-stopped", f"transaction {txns[0]}", what, why


def _consumers(process: _Stopped) -> Iterator[_Part]:
    """The consumers of the process: messages in flight stay assigned to a stopped consumer."""
    for row, consumer in process.consumers:
        name = consumer.consumer_name
        what = f"consumer {name} of {subscription_name(row)} is stopped"
        if consumer.unacked_messages:
            what += f" and holds {several(consumer.unacked_messages, 'message')}"
        why = Hint(
            "{} keeps the messages it was handed. Continue it; if nothing moves then, take them from it with `{}`.",
            consumer.owner,
            Action("store.admin.subscriptions.evict_consumers", row.name, row.subscription, name),
        )
        yield "consumer-stopped", subscription_name(row), what, why


def _queues(process: _Stopped) -> Iterator[_Part]:
    """Queues of producers behind the process, either the connected producer or the next in the queue."""
    for queue in process.queues:
        doing = "is connected" if queue.before else "is next"
        what = f"{several(queue.waiting, 'producer')} of {queue.name} cannot go on: who {doing} is stopped"
        why = "{}, {}, keeps its place. Continue it; "
        if queue.before:
            why += "if the topic stays taken, fence it with `{}`: who waits keeps its place."
            fence = Action("store.admin.producers.fence_producers", queue.name)
        else:
            why += "if it does not take the topic then, evict all that wait with `{}`."
            fence = Action("store.admin.producers.fence_producers", queue.name, waiting=True)
        standing = _standing(queue)
        hint = Hint(why, standing.producer_name, standing.owner, fence)
        yield "producers-waiting", f"topic {queue.name}", what, hint


def _standing(queue: QueueFacts) -> ProducerRow:
    """The producer that a queue waits for: the connected one, else the first in the queue."""
    return queue.before or queue.next


def _late(facts: Facts) -> Iterator[Finding]:
    late = facts.transactions.late
    if not late:
        return
    orphaned = sum(bool(row.orphaned) for row in late)
    kinds = [f"{orphaned} left behind by a process that is gone"] if orphaned else []
    if len(late) > orphaned:
        kinds.append(f"{len(late) - orphaned} past the deadline")
    verb, names = "is" if len(late) == 1 else "are", some([str(row.txn_id) for row in late])
    what = f"{several(len(late), 'open transaction')} {verb} late: {names}"
    effects = Effects.gather(facts, [row.txn_id for row in late])
    what = "; ".join([what, *effects.clauses("it" if len(late) == 1 else "them")])
    ends = advice.next_writer(facts.store.info.reap_policy, [bool(row.overdue) for row in late])
    reap = Action("store.admin.transactions.reap_transactions")
    yield warning("late-transactions", "transactions", what, f"{' and '.join(kinds)}. {ends}", reap)


def _blocked(facts: Facts) -> Iterator[Finding]:
    """Open transactions with committed messages behind, whatever number of topics."""
    explained = _explained(facts)
    blockers = dict.fromkeys(topic.blocked_by for topic in facts.topics if topic.blocked_by is not None)
    for txn in blockers:
        if str(txn) in explained:
            continue
        effects = Effects.gather(facts, [txn])
        what = "; ".join([f"{effects.blocked()} behind transaction {txn}", *effects.further("it")])
        names = [topic.name for topic in effects.topics]
        about = f"topic {names[0]}" if len(names) == 1 else f"transaction {txn}"
        yield warning("blocked", about, what, effects.blocked_because(), _explain(txn))


def _next(facts: Facts) -> Iterator[Finding]:
    """Open transactions without use that block as soon as those before them have ended, in one finding."""
    explained = _explained(facts) | {str(topic.blocked_by) for topic in facts.topics}
    links = [
        (topic.name, link)
        for topic in facts.topics
        for link in topic.blocked_next
        if str(link.txn_id) not in explained
    ]
    if not links:
        return
    txns = list(dict.fromkeys(link.txn_id for _, link in links))
    number, topics = sum(link.messages for _, link in links), list(dict.fromkeys(name for name, _ in links))
    one, messages = len(txns) == 1, several(number, "committed message")
    what = (
        f"open transaction{_s(txns)} {some([str(txn) for txn in txns])} {'comes' if one else 'come'} next: "
        f"{messages} of {some(topics)} {'stays' if number == 1 else 'stay'} blocked behind {'it' if one else 'them'}"
    )
    why = f"Idle for more than a minute. The transaction before {'it' if one else 'them'} comes first."
    yield warning("blocked-next", f"transaction {txns[0]}", what, why, _explain(txns[0]))


def _held(facts: Facts) -> Iterator[Finding]:
    """Messages and keys held by transactions without a working process and without blocked messages.

    Transactions that hold parts of the same subscriptions and tables are one finding.
    """
    explained = _explained(facts) | {str(topic.blocked_by) for topic in facts.topics}
    for holders in _together(facts, explained):
        effects = Effects.gather(facts, [holder.txn_id for holder in holders])
        if not effects.pending and not effects.tables:
            continue
        what = "; ".join(effects.held(_named(holders)))
        code, ending = "intents-held", advice.next_write(max(holders, key=_rank).priority)
        if effects.pending:
            code, ending = "acknowledgements-held", "An abort gives them back, a commit settles them."
        why = f"{_nobody(holders)} {ending}"
        yield warning(code, effects.first_held(), what, why, _explain(holders[0].txn_id))


def _explained(facts: Facts) -> set[str]:
    """The transactions whose effects stand in the finding of a process, or of the late transactions."""
    rows = [*facts.transactions.late, *[owned.row for owned in facts.transactions.stopped]]
    return {str(row.txn_id) for row in rows}


def _together(facts: Facts, explained: set[str]) -> list[list[HolderFacts]]:
    """Abandoned holders in groups: two that hold parts of one subscription or table are in the same group."""
    groups: list[tuple[set[str], dict[str, HolderFacts]]] = []
    held = [
        (subscription_name(row), [held_part.holder for held_part in row.held_by])
        for row in facts.subscriptions
        if row.held_by
    ]
    held += [(f"table {row.table}", [held_part.holder for held_part in row.held_by]) for row in facts.tables]
    for name, every in held:
        holders = {
            str(holder.txn_id): holder
            for holder in every
            if is_abandoned(holder) and str(holder.txn_id) not in explained
        }
        if not holders:
            continue
        objects = {name}
        for group in [group for group in groups if group[1].keys() & holders.keys()]:
            groups.remove(group)
            objects, holders = objects | group[0], {**group[1], **holders}
        groups.append((objects, holders))
    return [list(holders.values()) for _, holders in groups]


def _explain(txn: TxnID) -> Action:
    return Action("store.reports.explain_transaction", txn)


def _rank(holder: HolderFacts) -> int:
    return -RANKS[holder.priority]


def _named(holders: Sequence[HolderFacts]) -> str:
    """Join ids and labels of transactions: `transactions 0:7 (who=bob), 0:9`."""
    named = []
    for holder in holders:
        labels = " ".join([f"{key}={value}" for key, value in holder.labels.items()])
        named.append(f"{holder.txn_id} ({labels})" if labels else str(holder.txn_id))
    return f"transaction{'' if len(holders) == 1 else 's'} {some(named)}"


def _nobody(holders: Sequence[HolderFacts]) -> str:
    used = [(holder, living) for holder in holders if (living := living_process(holder)) is not None]
    for holder, living in used:
        if living.state == "alive":
            it = "it" if len(holders) == 1 else str(holder.txn_id)
            who = f"Process {living.process.place} ({living.process.program})"
            return f"{who} lives, and has not used {it} for a minute."
    return f"Nobody is at work in {'it' if len(holders) == 1 else 'them'}."


def _s(names: Sequence[object]) -> str:
    return "" if len(names) == 1 else "s"


RULES = (_processes, _late, _blocked, _next, _held)
"""The rules, in the order in which findings are shown."""
