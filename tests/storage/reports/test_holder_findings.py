"""Findings about blockers: one for each cause, with all its effects."""

from __future__ import annotations

import copy
from typing import Any

from storage.reports.holder_findings import held_objects, stopped_holders
from tests.storage.reports.test_findings import (
    HEALTHY,
    as_facts,
    holder,
    judge,
    late,
    of_first,
    waiting,
    with_,
)

ORDERS = HEALTHY["topics"][0]
BILLING = HEALTHY["subscriptions"][0]


def topic(name: str, messages: int, txn: str) -> dict[str, Any]:
    """A topic with committed messages behind a transaction."""
    return {**ORDERS, "topic": name, "name": name, "blockedMessages": messages, "blockedBy": txn}


def subscription(name: str, of: str, **changed: Any) -> dict[str, Any]:
    """A subscription of a topic."""
    return {**copy.deepcopy(BILLING), "topic": of, "name": of, "subscription": name, **changed}


def held_by(txn: str, state: str = "dead", **changed: Any) -> dict[str, Any]:
    """A transaction that holds a key, and the acknowledgements of three messages."""
    return {**holder(state, 5), "txnId": txn, "labels": {}, **changed}


def stopped_consumer(pid: int, name: str = "c1") -> dict[str, Any]:
    """A consumer of a stopped process that holds four messages."""
    return {**BILLING["consumers"][0], "consumerName": name, "pid": pid, "state": "stopped"}


def owned(txn: str, pid: int) -> dict[str, Any]:
    """An open transaction of a stopped process."""
    return {
        "txnId": txn,
        "pid": pid,
        "ownerState": "stopped",
        "owner": "anna@here:9",
        "topics": [],
        "tables": [],
        "acknowledgements": 0,
    }


def transactions(*stopped: dict[str, Any]) -> dict[str, Any]:
    """Open transactions of stopped processes."""
    return {"open": len(stopped), "oldest": None, "late": [], "stopped": list(stopped)}


def test_a_transaction_that_blocks_several_topics_is_one_finding() -> None:
    """With the messages of all, and what else it holds; another transaction is another."""
    found = judge(with_(
        topics=[topic("a", 500, "0:1"), topic("b", 3, "0:1"), topic("c", 1, "0:2")],
        subscriptions=[
            subscription("billing", "a", blocked=500), subscription("audit", "b", blocked=3),
            subscription("loader", "d", heldBy=[held_by("0:1", "detached", idleMs=70_000)], pending=3),
        ],
    ))  # fmt: skip
    assert [(each.code, each.what) for each in found] == [
        (
            "blocked",
            (
                "503 committed messages of a, b wait behind transaction 0:1; billing of a, audit of b cannot read on; "
                "3 messages of subscription loader of topic d go to nobody: acknowledged in it"
            ),
        ),
        ("blocked", "1 committed message of c waits behind transaction 0:2"),
    ]
    assert [each.about for each in found] == ["transaction 0:1", "topic c"]


def test_a_stopped_process_is_one_finding_whatever_it_holds() -> None:
    """Transactions, consumers and a queue of producers; a second process is a second finding."""
    found = judge(with_(
        topics=[topic("a", 5, "0:3")],
        subscriptions=[
            subscription("billing", "a", blocked=5, consumers=[stopped_consumer(9), stopped_consumer(8, "c2")]),
            subscription("loader", "d", heldBy=[held_by("0:4", "stopped")], pending=3),
        ],
        transactions=transactions(owned("0:3", 9), owned("0:4", 9)),
        producers=waiting("stopped")["producers"],
    ))  # fmt: skip
    assert [(each.code, each.what) for each in found] == [
        (
            "owner-stopped",
            (
                "open transactions 0:3, 0:4 belong to process 9, which is stopped; 5 committed messages of a wait behind "
                "them; billing cannot read on; 3 messages of subscription loader of topic d go to nobody: acknowledged in "
                "them; consumer c1 of subscription billing of topic a is stopped and holds 4 messages; 2 producers of "
                "orders cannot go on: who is connected is stopped"
            ),
        ),
        (
            "consumer-stopped",
            "consumer c2 of subscription billing of topic a is stopped and holds 4 messages",
        ),
    ]


def test_what_late_transactions_hold_is_told_with_them() -> None:
    """And no second time."""
    facts = late(True, False)
    facts["topics"] = [topic("a", 5, "0:1")]
    facts["tables"] = [{**HEALTHY["tables"][0], "heldBy": [held_by("0:2", overdue=True)], "intents": 1}]
    (found,) = judge(facts)
    assert found.what == (
        "2 open transactions are late: 0:1, 0:2; 5 committed messages of a wait behind them; 1 key of table balances "
        "(B2) is held by them"
    )


def test_no_writer_is_promised_that_the_policy_forbids() -> None:
    """The sentence follows the store's reap policy, and which of them are past the deadline."""
    said = {}
    for policy in ("all", "overdue", "manual"):
        for kinds in ((True,), (False,), (True, False)):
            facts = late(*kinds)
            facts["store"]["reapPolicy"] = policy
            (found,) = judge(facts)
            said[policy, kinds] = found.why.partition(". ")[2]
    aborts = "The next writer aborts {}, and so does this."
    forbids = "The store's reap policy ({}) has no writer abort {} on its way: this does."
    assert said == {
        ("all", (True,)): aborts.format("it"),
        ("all", (False,)): aborts.format("it"),
        ("all", (True, False)): aborts.format("them"),
        ("overdue", (True,)): forbids.format("overdue", "it"),
        ("overdue", (False,)): aborts.format("it"),
        ("overdue", (True, False)): (
            "The next writer aborts those past the deadline, by the store's reap policy; this aborts all."
        ),
        ("manual", (True,)): forbids.format("manual", "it"),
        ("manual", (False,)): forbids.format("manual", "it"),
        ("manual", (True, False)): forbids.format("manual", "them"),
    }


def test_holders_of_the_same_objects_are_one_finding() -> None:
    """Two that share a table, one of which holds messages too; a third elsewhere is a second finding."""
    found = judge(with_(
        subscriptions=[subscription("loader", "d", heldBy=[held_by("0:8")], pending=3)],
        tables=[
            {**HEALTHY["tables"][0], "table": "x", "heldBy": [held_by("0:7"), held_by("0:8")], "intents": 2},
            {**HEALTHY["tables"][0], "table": "y", "heldBy": [held_by("0:9")], "intents": 1},
        ],
    ))  # fmt: skip
    assert [(each.code, each.what) for each in found] == [
        (
            "acknowledgements-held",
            (
                "3 messages of subscription loader of topic d go to nobody: acknowledged in transactions 0:8, 0:7; 2 keys "
                "of table x (B2, B2) are held by transactions 0:8, 0:7"
            ),
        ),
        ("intents-held", "1 key of table y (B2) is held by transaction 0:9"),
    ]


def test_subscriptions_that_skip_wait_for_keys_alone() -> None:
    """They read on, and maxReadPosition is not their reason."""
    (found,) = judge(with_(
        topics=[topic("a", 1, "0:1")],
        subscriptions=[subscription("billing", "a", blocked=1, onOpen="skip")],
    ))  # fmt: skip
    assert found.what == "1 committed message of a waits behind transaction 0:1"
    assert "same keys" in found.why


def test_every_holder_is_named() -> None:
    """For `check`: the stopped ones, and the objects that transactions without a process hold."""
    facts = of_first("subscriptions", consumers=[stopped_consumer(9), stopped_consumer(8, "c2")])
    facts["transactions"] = transactions(owned("0:3", 9))
    facts["producers"] = waiting("stopped")["producers"]
    assert stopped_holders(as_facts(facts)) == [
        "transaction 0:3 of process 9", "consumer c1 of subscription billing of topic orders",
        "producer loader of orders", "consumer c2 of subscription billing of topic orders",
    ]  # fmt: skip
    facts = of_first("tables", heldBy=[held_by("0:7"), held_by("0:8", "alive")])
    assert held_objects(as_facts(facts)) == ["table balances"]
    assert held_objects(as_facts(HEALTHY)) == stopped_holders(as_facts(HEALTHY)) == []


def test_unused_transactions_that_come_next_are_one_finding() -> None:
    """Those of a stopped process, late ones, and the first of a topic have findings of their own."""
    first = {**topic("a", 5, "0:1"), "blockedNext": [
        {"txnId": "0:2", "messages": 3}, {"txnId": "0:3", "messages": 1}, {"txnId": "0:4", "messages": 1},
    ]}  # fmt: skip
    found = judge(with_(
        topics=[first, topic("b", 1, "0:4")],
        transactions=transactions(owned("0:3", 9)),
    ))  # fmt: skip
    (each,) = [each for each in found if each.code == "blocked-next"]
    assert each.what == "open transaction 0:2 comes next: 3 committed messages of a stay blocked behind it"
    assert str(each.action) == "store.reports.explain_transaction('0:2')"
