"""Who holds others up: open transactions, consumers and producers, found in the facts of `overview.py`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from storage.limits import ACTIVE_OWNER_MS
from storage.reports.advice import next_write
from storage.reports.finding import Facts, Row, finding, several, some
from storage.table.push import RANKS
from storage.txn.liveness import GONE
from storage.values.names import short_topic_name


def _blocked(facts: Facts) -> Iterator[Row]:
    for topic in facts["topics"]:
        if topic["blockedBy"] is None:
            continue
        txn, name = topic["blockedBy"], topic["name"]
        waiting = [
            row["subscription"]
            for row in facts["subscriptions"]
            if row["topic"] == topic["topic"] and row["blocked"]
        ]
        who = f"; {some(waiting)} cannot read on" if waiting else ""
        count = several(topic["blockedMessages"], "committed message")
        verb = "waits" if topic["blockedMessages"] == 1 else "wait"
        what = f"{count} of {name} {verb} behind transaction {txn}{who}"
        why = "It is open, and READ_COMMITTED stops before its first message until it commits or aborts."
        yield finding("blocked", f"topic {name}", what, why, f"txnctl transactions explain {txn}")


def _owners(facts: Facts) -> Iterator[Row]:
    """Wherever in a chain they are: what they hold waits for them, and the first of a chain is not always the cause."""
    for row in facts["transactions"]["stopped"]:
        what = f"open transaction {row['txnId']} belongs to process {row['pid']}, which is stopped"
        held = [
            *[f"messages of {some([short_topic_name(each) for each in row['topics']])}"][
                : len(row["topics"])
            ],
            *["acknowledgements"][: row["acknowledgements"]],
            *[f"keys of {some(row['tables'])}"][: len(row["tables"])],
        ]
        holds = f"It holds {', '.join(held)} until it ends. " if held else ""
        why = f"{holds}{row['owner']} goes on where it was when it is continued; or end it with "
        why += f"txnctl transactions abort {row['txnId']} --force."
        yield finding("owner-stopped", f"transaction {row['txnId']}", what, why, f"kill -CONT {row['pid']}")


def _consumers(facts: Facts) -> Iterator[Row]:
    for row in facts["subscriptions"]:
        for each in row["consumers"]:
            if each["state"] == "stopped":
                what = f"consumer {each['consumerName']} of {_subscription(row)} is stopped"
                if each["unackedMessages"]:
                    what += f" and holds {several(each['unackedMessages'], 'message')}"
                evict = (
                    f"txnctl subscriptions evict {row['name']} {row['subscription']} {each['consumerName']}"
                )
                why = (
                    f"{each['owner']} keeps the messages it was handed. Continue it; if nothing moves then, "
                    f"take them from it with {evict}."
                )
                command = f"kill -CONT {each['pid']}"
                yield finding("consumer-stopped", _subscription(row), what, why, command)


def _pending(facts: Facts) -> Iterator[Row]:
    """Acknowledgements of a transaction that nobody works in: those messages go to nobody."""
    for row in facts["subscriptions"]:
        idle = [each for each in row["heldBy"] if nobody_at_work(each)]
        if idle:
            count = several(sum(each["messages"] for each in idle), "message")
            what = f"{count} of {_subscription(row)} go to nobody: acknowledged in {_holders(idle)}"
            why = f"{_nobody(idle)} An abort gives them back, a commit settles them."
            command = f"txnctl transactions explain {idle[0]['txnId']}"
            yield finding("acknowledgements-held", _subscription(row), what, why, command)


def _producers(facts: Facts) -> Iterator[Row]:
    for topic in facts["producers"]:
        standing = topic["before"] or topic["next"]
        if standing["state"] != "stopped":
            continue
        doing = "is connected" if topic["before"] else "is next"
        what = (
            f"{several(topic['waiting'], 'producer')} of {topic['name']} cannot go on: who {doing} is stopped"
        )
        why = f"{standing['producerName']}, {standing['owner']}, keeps its place. Continue it; "
        fence = f"txnctl producers fence {topic['name']}"
        if topic["before"]:
            why += f"if the topic stays taken, fence it with {fence}: who waits keeps its place."
        else:
            why += f"if it does not take the topic then, evict all that wait with {fence} --waiting."
        yield finding(
            "producers-waiting", f"topic {topic['name']}", what, why, f"kill -CONT {standing['pid']}"
        )


def _tables(facts: Facts) -> Iterator[Row]:
    for table in facts["tables"]:
        idle = [row for row in table["heldBy"] if nobody_at_work(row)]
        if idle:
            keys = [key for row in idle for key in row["keyList"]]
            number, named = sum(row["keys"] for row in idle), f" ({some(keys)})" if keys else ""
            verb = "is" if number == 1 else "are"
            what = (
                f"{several(number, 'key')} of table {table['table']}{named} {verb} held by {_holders(idle)}"
            )
            why = f"{_nobody(idle)} {next_write(max(idle, key=_rank)['priority'])}"
            command = f"txnctl transactions explain {idle[0]['txnId']}"
            yield finding("intents-held", f"table {table['table']}", what, why, command)


def nobody_at_work(holder: Row) -> bool:
    """Whether the owner of an open transaction is gone or stopped, its time is over, or it was idle for a minute."""
    gone = holder["ownerState"] in (*GONE, "stopped") or holder["overdue"]
    return bool(gone or holder["idleMs"] > ACTIVE_OWNER_MS)


def _rank(holder: Row) -> int:
    return -RANKS[holder["priority"]]


def _holders(rows: list[Row]) -> str:
    """`0:7 (who=bob, idle 46m58s), 0:9`."""
    named = []
    for row in rows:
        labels = " ".join([f"{key}={value}" for key, value in row["labels"].items()])
        named.append(f"{row['txnId']} ({labels})" if labels else str(row["txnId"]))
    return f"transaction{'' if len(rows) == 1 else 's'} {some(named)}"


def _nobody(rows: list[Row]) -> str:
    return f"Nobody is at work in {'it' if len(rows) == 1 else 'them'}."


def _subscription(row: Row) -> str:
    return f"subscription {row['subscription']} of topic {row['name']}"


RULES = (_blocked, _owners, _consumers, _producers, _pending, _tables)
"""In the order in which they are told."""
