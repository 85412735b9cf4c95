"""The health of a whole store: what `status`, `doctor` and `check` look at, and what is wrong with it.

Topics, transactions, producers and tables are of one view, by the model of `timeline.py`: nothing that is blocked is
read. The writer gate, LMDB's readers and the disk are of the moment; readers are looked at before the view is opened,
so that it is not among them.
"""

from __future__ import annotations

from typing import Any

from storage.disk.connection import Connection
from storage.disk.schema import PART_SUBSCRIPTION, PART_TABLE
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.limits import READERS_MAX
from storage.process.locks import LockFile
from storage.reports import backlog, findings, producers, store_info, timeline, transactions
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.table import catalogue as tables, intent as intents, state as table_states
from storage.table.state import TableState
from storage.topic import catalogue as topics, state as topic_states
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches
from storage.txn.liveness import owner_state
from storage.values.timestamps import both

_TOPIC = (
    "topic", "name", "msgCount", "maxReadPosition", "lastConfirmedEntry", "topicEpoch", "ongoingTxnCount",
    "blockedMessages", "oldestBlockedAt", "oldestBlockedMs", "uncommittedMessages",
)  # fmt: skip
_SUBSCRIPTION = (
    "type", "subscriptionIsolationLevel", "onOpen", "visible", "blocked", "uncommitted", "pending",
    "unackedMessages", "verdict", "consumers",
)  # fmt: skip


KEYS_SHOWN = 5


def run(engine: Engine) -> dict[str, Any]:
    """The store as it is now: `store`, `writerGate`, `readers`, `topics`, `subscriptions`, `transactions`,
    `producers`, `tables`, `clockSkewMs`, and `findings` (what is wrong, the worst first) with their `verdict`."""
    connection = engine.connection
    moment = of_the_moment(connection)
    with connection.view() as view:
        models = timeline.every_in(view, connection.environment.lock_file)
        return in_view(view, engine, models, moment, keys_shown=KEYS_SHOWN)


def of_the_moment(connection: Connection) -> dict[str, Any]:
    """What no view shows: who reads, and who is in the writer gate."""
    return {
        "readers": _readers(store_info.readers(connection)),
        "writerGate": store_info.gate(connection),
    }


def in_view(
    view: ReadView,
    engine: Engine,
    models: list[dict[str, Any]],
    moment: dict[str, Any],
    keys_shown: int = 0,
) -> dict[str, Any]:
    """The same, as a view shows it.

    Args:
        models: of all topics, of this view.
        moment: what `of_the_moment` told before the view was opened.
        keys_shown: of the keys that an open transaction holds of a table, so many are told.
    """
    connection = engine.connection
    locks, begun = connection.environment.lock_file, transactions.open_ones(view)
    found = {
        **both("asOf", view.clock.wall_ms()),
        "store": {
            **store_info.info_in(view, connection, moment["readers"]["inUse"]),
            **store_info.disk(connection),
        },
        **moment,
        "clockSkewMs": _clock_skew_ms(view),
        "topics": [_topic(each) for each in models],
        "subscriptions": _with_holders(
            view, locks, begun, [row for each in models for row in _subscriptions(each)]
        ),
        "transactions": _transactions(view, engine, begun),
        "producers": _producers(view, locks),
        "tables": _tables(view, locks, begun, keys_shown),
    }
    wrong = findings.judge(found)
    return {"verdict": findings.verdict(wrong), **found, "findings": wrong}


def _readers(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How full the table is, and the reader whose view is the oldest."""
    reading = [row for row in rows if row["behind"] is not None]
    return {
        "inUse": len(rows), "max": READERS_MAX, "reading": len(reading),
        "oldest": max(reading, key=lambda row: int(row["behind"]), default=None),
    }  # fmt: skip


def _clock_skew_ms(view: ReadView) -> int | None:
    """By how much the wall clock has moved against the boot clock; None before this boot's first commit."""
    if view.superblock.boot_id != view.clock.boot_id():
        return None
    return (view.clock.wall_ns() - view.now_ns - view.superblock.wall_offset_ns) // 1_000_000


def _topic(model: dict[str, Any]) -> dict[str, Any]:
    """A topic; `blockedBy` is the transaction that holds its maxReadPosition, if anything waits for it, and its age."""
    blocked = model["openTransactions"] if model["blockedMessages"] else []
    return {
        **{name: model[name] for name in _TOPIC},
        "subscriptions": len(model["subscriptions"]),
        "visible": max((each["visible"] for each in model["subscriptions"].values()), default=0),
        "blockedBy": blocked[0]["txnId"] if blocked else None,
        "blockedByAgeMs": blocked[0]["ageMs"] if blocked else None,
    }


def _subscriptions(model: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "topic": model["topic"], "name": model["name"], "subscription": name,
            **{field: each[field] for field in _SUBSCRIPTION},
        }
        for name, each in model["subscriptions"].items()
    ]  # fmt: skip


def _with_holders(
    view: ReadView, locks: LockFile, begun: list[int], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The subscriptions with `heldBy`: the open transactions that have acknowledgements pending there, and how many."""
    holders: dict[int, list[int]] = {}
    for txn in begun:
        for subscription_id in touches(view, txn, PART_SUBSCRIPTION):
            holders.setdefault(subscription_id, []).append(txn)
    found = []
    for row in rows:
        held_by = []
        if row["pending"]:
            topic = topics.get(view, row["topic"])
            mine = subscriptions.get(view, topic, row["subscription"])
            head, cursor = (
                topic_states.load(view, topic.topic_id),
                cursors.load(view, mine.subscription_id),
            )
            held_by = [
                {**_holder(view, locks, txn), "messages": backlog.pending_in(view, head, mine, cursor, txn)}
                for txn in holders.get(mine.subscription_id, [])
            ]
        found.append({**row, "heldBy": held_by})
    return found


def _transactions(view: ReadView, engine: Engine, begun: list[int]) -> dict[str, Any]:
    """How many are open, the oldest of them, those that are late (overdue, or left behind by a dead process), and
    those whose process is stopped."""
    locks = engine.lock_file
    names = {each.topic_id: each.full_name for each in topics.every(view)}
    orphans = [txn for txn in reaper.orphaned(view, locks) if txn in set(begun)]
    late = sorted({*reaper.overdue(view), *orphans})
    stopped = [txn for txn in begun if owner_state(view, locks, records.get(view, txn)) == "stopped"]
    rows = {
        txn: transactions.row(view, engine, records.get(view, txn), names)
        for txn in {*late, *stopped, *begun[:1]}
    }
    return {
        "open": len(begun), "oldest": rows[begun[0]] if begun else None, "late": [rows[txn] for txn in late],
        "stopped": [{**rows[txn], "pid": records.get(view, txn).owner.pid} for txn in stopped],
    }  # fmt: skip


def _producers(view: ReadView, locks: LockFile) -> list[dict[str, Any]]:
    """Topics on which a living producer waits: who owns the topic, and who is next."""
    found = []
    for topic in topics.every(view):
        there = [row for row in producers.rows_of(view, locks, topic) if row["alive"]]
        waiting = [row for row in there if row["isWaiting"]]
        if waiting:
            found.append({
                "topic": topic.full_name, "name": topic.name, "waiting": len(waiting), "next": waiting[0],
                "before": next((row for row in there if not row["isWaiting"]), None),
            })  # fmt: skip
    return found


def _tables(view: ReadView, locks: LockFile, begun: list[int], keys_shown: int) -> list[dict[str, Any]]:
    """Tables, with the open transactions that hold keys of each."""
    holders: dict[int, list[dict[str, Any]]] = {}
    for txn in begun:
        for table_id in touches(view, txn, PART_TABLE):
            keys = {
                "keys": intents.count_of(view, txn, table_id),
                "keyList": [ascii(each)[2:-1] for each in intents.keys_of(view, txn, table_id, keys_shown)],
            }
            holders.setdefault(table_id, []).append({**_holder(view, locks, txn), **keys})
    rows = []
    for each in tables.every(view):
        head = table_states.find(view, each.table_id) or TableState()
        rows.append({
            "table": each.name, "keys": head.keys, "versions": head.versions, "intents": head.intents,
            "heldBy": holders.get(each.table_id, []),
        })  # fmt: skip
    return rows


def _holder(view: ReadView, locks: LockFile, txn: int) -> dict[str, Any]:
    record = records.get(view, txn)
    return {
        "txnId": str(record.id), "owner": str(record.owner), "ownerState": owner_state(view, locks, record),
        "idleMs": record.idle_ms(view.now_ns), "overdue": record.is_overdue(view.now_ns),
        "labels": record.labels, "priority": record.priority,
    }  # fmt: skip
