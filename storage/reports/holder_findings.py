"""Findings about blockers: open transactions, consumers and producers that hold up messages, keys or producers.

Each rule is a pure function from the facts of the store to findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.actions import Action, Hint
from storage.limits import ACTIVE_OWNER_MS
from storage.reports.advice import next_write
from storage.reports.facts import Facts, HolderFacts, SubscriptionFacts
from storage.reports.finding import Finding, several, some, warning
from storage.table.push import RANKS
from storage.txn.owner_state import GONE
from storage.values.names import short_topic_name
from storage.values.txn_id import TxnID


def _blocked(facts: Facts) -> Iterator[Finding]:
    """Topics with committed messages behind an open transaction."""
    for topic in facts.topics:
        if topic.blocked_by is None:
            continue
        txn, name = topic.blocked_by, topic.name
        waiting = [
            row.subscription for row in facts.subscriptions if row.topic == topic.topic and row.blocked
        ]
        stuck = f"; {some(waiting)} cannot read on" if waiting else ""
        count = several(topic.blocked_messages, "committed message")
        verb = "waits" if topic.blocked_messages == 1 else "wait"
        what = f"{count} of {name} {verb} behind transaction {txn}{stuck}"
        why = "It is open, and READ_COMMITTED stops before its first message until it commits or aborts."
        yield warning("blocked", f"topic {name}", what, why, _explain(txn))


def _owners(facts: Facts) -> Iterator[Finding]:
    """Open transactions of stopped processes, on every place of a topic's chain: the first is not always the cause."""
    for stopped in facts.transactions.stopped:
        row, txn = stopped.row, stopped.row.txn_id
        what = f"open transaction {txn} belongs to process {stopped.pid}, which is stopped"
        held = []
        if row.topics:
            held.append(f"messages of {some([short_topic_name(topic) for topic in row.topics])}")
        if row.acknowledgements:
            held.append("acknowledgements")
        if row.tables:
            held.append(f"keys of {some(row.tables)}")
        holds = f"It holds {', '.join(held)} until it ends. " if held else ""
        why = Hint(
            "{}{} goes on where it was when it is continued; or end it with {}.",
            holds,
            row.owner,
            Action("store.admin.transactions.abort_transaction", txn, force=True),
        )
        yield warning("owner-stopped", f"transaction {txn}", what, why, Action("resume_process", stopped.pid))


def _consumers(facts: Facts) -> Iterator[Finding]:
    """Consumers whose process is stopped: messages in flight stay assigned to the stopped consumer."""
    for row in facts.subscriptions:
        for consumer in row.consumers:
            if consumer.state == "stopped":
                name = consumer.consumer_name
                what = f"consumer {name} of {_subscription(row)} is stopped"
                if consumer.unacked_messages:
                    what += f" and holds {several(consumer.unacked_messages, 'message')}"
                why = Hint(
                    "{} keeps the messages it was handed. Continue it; if nothing moves then, take them from it "
                    "with {}.",
                    consumer.owner,
                    Action("store.admin.subscriptions.evict_consumers", row.name, row.subscription, name),
                )
                resume = Action("resume_process", consumer.pid)
                yield warning("consumer-stopped", _subscription(row), what, why, resume)


def _pending(facts: Facts) -> Iterator[Finding]:
    """Pending acknowledgements of abandoned transactions: the acknowledged messages are delivered to no consumer."""
    for row in facts.subscriptions:
        idle = [held for held in row.held_by if is_abandoned(held.holder)]
        if idle:
            count = several(sum(held.messages for held in idle), "message")
            holders = [held.holder for held in idle]
            what = f"{count} of {_subscription(row)} go to nobody: acknowledged in {_named(holders)}"
            why = f"{_nobody(holders)} An abort gives them back, a commit settles them."
            yield warning("acknowledgements-held", _subscription(row), what, why, _explain(holders[0].txn_id))


def _producers(facts: Facts) -> Iterator[Finding]:
    """Queues of producers behind a stopped process, either the connected producer or the next in the queue."""
    for topic in facts.producers:
        standing = topic.before or topic.next
        if standing.state != "stopped":
            continue
        doing = "is connected" if topic.before else "is next"
        what = f"{several(topic.waiting, 'producer')} of {topic.name} cannot go on: who {doing} is stopped"
        why = "{}, {}, keeps its place. Continue it; "
        if topic.before:
            why += "if the topic stays taken, fence it with {}: who waits keeps its place."
            fence = Action("store.admin.producers.fence_producers", topic.name)
        else:
            why += "if it does not take the topic then, evict all that wait with {}."
            fence = Action("store.admin.producers.fence_producers", topic.name, waiting=True)
        yield warning(
            "producers-waiting",
            f"topic {topic.name}",
            what,
            Hint(why, standing.producer_name, standing.owner, fence),
            Action("resume_process", standing.pid),
        )


def _tables(facts: Facts) -> Iterator[Finding]:
    """Keys of tables with a write intent of an abandoned transaction."""
    for table in facts.tables:
        idle = [held for held in table.held_by if is_abandoned(held.holder)]
        if idle:
            keys, holders = [key for held in idle for key in held.key_list], [held.holder for held in idle]
            number, named = sum(held.keys for held in idle), f" ({some(keys)})" if keys else ""
            verb = "is" if number == 1 else "are"
            what = f"{several(number, 'key')} of table {table.table}{named} {verb} held by {_named(holders)}"
            why = f"{_nobody(holders)} {next_write(max(holders, key=_rank).priority)}"
            yield warning("intents-held", f"table {table.table}", what, why, _explain(holders[0].txn_id))


def is_abandoned(holder: HolderFacts) -> bool:
    """Whether a transaction has a dead or stopped process, a passed deadline, or no use within `ACTIVE_OWNER_MS`."""
    gone = holder.owner_state in (*GONE, "stopped") or holder.overdue
    return gone or holder.idle_ms > ACTIVE_OWNER_MS


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
    return f"Nobody is at work in {'it' if len(holders) == 1 else 'them'}."


def _subscription(row: SubscriptionFacts) -> str:
    return f"subscription {row.subscription} of topic {row.name}"


RULES = (_blocked, _owners, _consumers, _producers, _pending, _tables)
"""The rules, in the order in which findings are shown."""
