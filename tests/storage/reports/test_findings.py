"""What is wrong with a store is decided from its facts alone: one case for each rule, at its bounds."""

from __future__ import annotations

import copy
import os
import re
from types import SimpleNamespace
from typing import Any

import pytest

from storage.disk.environment import HolderProcess
from storage.disk.schema import FORMAT_NUMBER
from storage.reports import findings
from storage.reports.finding import Finding
from storage.reports.findings import verdict
from txnctl.output import shell


class Facts(SimpleNamespace):
    """Facts by their names in the engine; rows within rows are the same object, since the JSON has them in one."""

    @property
    def row(self) -> Facts:
        return self

    @property
    def place(self) -> str:
        return str(self.pid)

    info = disk = holder = row
    server = None


def as_facts(value: Any) -> Any:
    """Facts from their JSON form."""
    if isinstance(value, list):
        return [as_facts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return Facts(**{
        re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[1].lower()}", name): (
            each if name == "labels" else as_facts(each)
        )
        for name, each in value.items()
    })  # fmt: skip


def judge(facts: dict[str, Any]) -> list[Finding]:
    """The findings about facts in their JSON form."""
    return findings.judge(as_facts(facts))


HEALTHY: dict[str, Any] = {
    "store": {"format": FORMAT_NUMBER, "diskFreeBytes": 50 << 30, "diskBytes": 100 << 30, "reapPolicy": "all"},
    "writerGate": HolderProcess(7, "process 7", "held"),
    "readers": {"inUse": 3, "max": 512, "reading": 0, "oldest": None},
    "clockSkewMs": 40,
    "topics": [
        {"topic": "persistent://public/default/orders", "name": "orders", "blockedMessages": 0, "blockedBy": None,
         "blockedNext": []}
    ],
    "subscriptions": [
        {
            "topic": "persistent://public/default/orders", "name": "orders", "subscription": "billing", "visible": 4,
            "blocked": 0, "verdict": "behind", "onOpen": "block", "heldBy": [],
            "consumers": [
                {"consumerName": "c1", "owner": "anna@here:9", "pid": 9, "state": "alive", "unackedMessages": 4}
            ],
        }
    ],
    "transactions": {"open": 1, "oldest": None, "late": [], "stopped": []},
    "producers": [],
    "tables": [{"table": "balances", "keys": 10, "versions": 99_999, "intents": 0, "heldBy": []}],
    "contendedKeys": [],
    "retentionHeld": [],
    "forgottenSubscriptions": [],
    "quietConsumers": [],
}  # fmt: skip
"""A store in use: somebody writes, consumers are at work, one transaction is open."""


def with_(**changed: Any) -> dict[str, Any]:
    """The healthy facts, some of them changed."""
    return {**copy.deepcopy(HEALTHY), **changed}


def of_first(name: str, **changed: Any) -> dict[str, Any]:
    """The healthy facts, the first row of one list changed."""
    facts = with_()
    facts[name][0].update(changed)
    return facts


def reader(behind: int, state: str = "reading") -> dict[str, Any]:
    """One reader whose view is some commits old."""
    oldest = {"pid": 8, "holder": "backup", "behind": behind, "state": state}
    return with_(readers={"inUse": 1, "max": 512, "reading": 1, "oldest": oldest})


def disk(free: int, whole: int) -> dict[str, Any]:
    """A disk with so many bytes left."""
    return with_(
        store={"format": FORMAT_NUMBER, "diskFreeBytes": free, "diskBytes": whole, "reapPolicy": "all"}
    )


def held(state: str, idle_ms: int, overdue: bool = False) -> dict[str, Any]:
    """A table one of whose keys a transaction holds."""
    return of_first("tables", heldBy=[holder(state, idle_ms, overdue)], intents=1)


def holder(state: str, idle_ms: int, overdue: bool = False) -> dict[str, Any]:
    """A transaction that holds a key, and the acknowledgements of three messages."""
    return {
        "txnId": "0:7", "owner": {"pid": 7, "program": "x"}, "ownerState": state, "lastUser": "x", "lastUserState": "dead",
        "idleMs": idle_ms, "overdue": overdue, "priority": "medium",
        "labels": {"who": "bob"}, "keys": 1, "keyList": ["B2"], "messages": 3,
    }  # fmt: skip


def pending(state: str, idle_ms: int) -> dict[str, Any]:
    """A subscription of which a transaction has acknowledged messages."""
    return of_first("subscriptions", heldBy=[holder(state, idle_ms)], pending=3)


def stopped_owner(**held: Any) -> dict[str, Any]:
    """An open transaction whose process is stopped."""
    row = {
        "txnId": "0:9",
        "pid": 9,
        "owner": "anna@here:9",
        "ownerState": "stopped",
        "topics": [],
        "tables": [],
        "acknowledgements": 0,
    }
    return with_(transactions={"open": 1, "oldest": None, "late": [], "stopped": [{**row, **held}]})


def waiting(state: str, owned: bool = True) -> dict[str, Any]:
    """Two producers wait for a topic."""
    row = {"producerName": "loader", "owner": "anna@here:9", "pid": 9, "state": state}
    before = row if owned else None
    return with_(producers=[{"topic": "t", "name": "orders", "waiting": 2, "next": row, "before": before}])


def late(*orphaned: bool) -> dict[str, Any]:
    """Open transactions that are past their deadline, or left behind."""
    rows = [
        {"txnId": f"0:{number}", "orphaned": each, "overdue": not each}
        for number, each in enumerate(orphaned, 1)
    ]
    return with_(transactions={"open": len(rows), "oldest": None, "late": rows, "stopped": []})


BLOCKED = with_(
    topics=[{**HEALTHY["topics"][0], "blockedMessages": 3, "blockedBy": "0:1"}],
    subscriptions=[{**HEALTHY["subscriptions"][0], "blocked": 3, "verdict": "mixed"}],
)


def test_a_healthy_store_in_use_has_no_findings() -> None:
    """Who writes, reads, lags or works in a transaction is no reason to wake anybody."""
    assert judge(HEALTHY) == []
    assert verdict([]) == "ok"


@pytest.mark.parametrize(
    ("facts", "code", "command"),
    [
        (with_(store={**HEALTHY["store"], "format": 1}), "old-format", "txnctl store upgrade"),
        (
            with_(writerGate=HolderProcess(7, "x", "stopped")),
            "gate-stopped",
            "kill -CONT 7",
        ),
        (
            with_(writerGate=HolderProcess(7, "x", "held", "db-2", session=77, held_ms=1000)),
            "gate-held",
            "ssh db-2 kill -CONT 7",
        ),
        (
            with_(writerGate=HolderProcess(7, "x", "held", os.uname().nodename, session=77, held_ms=1000)),
            "gate-held",
            "ps -fp 7",
        ),
        (
            with_(writerGate=HolderProcess(None, "x", "held", session=77, held_ms=1000)),
            "gate-held",
            "psql -c 'SELECT pg_terminate_backend(77)'",
        ),
        (disk((1 << 30) - 1, 100 << 30), "disk-low", "txnctl store space --freeable"),
        (disk(100 << 20, 100 << 30), "disk-full", "txnctl store space --freeable"),
        (
            with_(readers={"inUse": 461, "max": 512, "reading": 0, "oldest": None}),
            "readers-nearly-full",
            "txnctl store gc",
        ),
        (reader(1001), "reader-long", "txnctl store readers"),
        (reader(1, "stopped"), "reader-stopped", "kill -CONT 8"),
        (late(True, False), "late-transactions", "txnctl transactions reap"),
        (BLOCKED, "blocked", "txnctl transactions explain 0:1"),
        (
            of_first("subscriptions", verdict="no-consumer", consumers=[]),
            "no-consumer",
            "txnctl subscriptions list orders",
        ),
        (
            of_first(
                "subscriptions",
                consumers=[{**HEALTHY["subscriptions"][0]["consumers"][0], "state": "stopped"}],
            ),
            "consumer-stopped",
            "kill -CONT 9",
        ),
        (stopped_owner(), "owner-stopped", "kill -CONT 9"),
        (pending("stopped", 5), "acknowledgements-held", "txnctl transactions explain 0:7"),
        (pending("detached", 60_001), "acknowledgements-held", "txnctl transactions explain 0:7"),
        (waiting("stopped"), "producers-waiting", "kill -CONT 9"),
        (waiting("stopped", owned=False), "producers-waiting", "kill -CONT 9"),
        (held("alive", 60_001), "intents-held", "txnctl transactions explain 0:7"),
        (held("dead", 5), "intents-held", "txnctl transactions explain 0:7"),
        (held("detached", 5, overdue=True), "intents-held", "txnctl transactions explain 0:7"),
        (of_first("tables", versions=100_000), "versions-kept", "txnctl store gc --dry-run"),
        (
            with_(
                forgottenSubscriptions=[
                    {
                        "name": "orders",
                        "subscription": "audit",
                        "messages": 5,
                        "bytes": 400,
                        "nextMessageAtMs": 0,
                        "withoutConsumerSinceAtMs": 86_400_000,
                    }
                ]
            ),
            "subscription-forgotten",
            "txnctl subscriptions delete orders audit",
        ),
        (with_(clockSkewMs=60_001), "clocks-disagree", "txnctl store gc --trust-clock"),
        (with_(clockSkewMs=-60_001), "clocks-disagree", "txnctl store gc --trust-clock"),
    ],
)
def test_each_rule_finds_what_it_is_for(facts: dict[str, Any], code: str, command: str) -> None:
    """One finding, with the command to type next."""
    (found,) = judge(facts)
    assert (found.code, shell.command(found.action)) == (code, command)
    assert found.what
    assert found.why.endswith(".")


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        (
            of_first(
                "subscriptions",
                consumers=[{**HEALTHY["subscriptions"][0]["consumers"][0], "state": "stopped"}],
            ),
            "Continue it; if nothing moves then, take them from it with `txnctl subscriptions evict ",
        ),
        (
            waiting("stopped"),
            "Continue it; if the topic stays taken, fence it with `txnctl producers fence orders`: who waits keeps ",
        ),
        (
            waiting("stopped", owned=False),
            "if it does not take the topic then, evict all that wait with `txnctl producers fence orders --waiting`.",
        ),
    ],
)
def test_a_process_that_does_nothing_once_it_is_continued_has_a_second_way(
    facts: dict[str, Any], way: str
) -> None:
    """SIGCONT does not mend a process that hangs: the reason names what takes its place."""
    (found,) = judge(facts)
    assert way in shell.spell(found.why)


@pytest.mark.parametrize(
    "facts",
    [
        disk(1 << 30, 100 << 30),
        disk(100 << 20, 1 << 30),
        with_(readers={"inUse": 460, "max": 512, "reading": 0, "oldest": None}),
        reader(1000),
        reader(0, "stopped"),
        waiting("alive"),
        held("alive", 60_000),
        pending("alive", 60_000),
        of_first("tables", versions=100_000, keys=100_000),
        with_(clockSkewMs=None),
        with_(clockSkewMs=60_000),
    ],
)
def test_at_its_bound_a_rule_is_silent(facts: dict[str, Any]) -> None:
    """A small disk with a tenth free is not low; a stopped reader of the last commit pins nothing."""
    assert judge(facts) == []


def test_the_critical_come_first() -> None:
    """Whatever the order of the rules, and the verdict is theirs."""
    found = judge({**late(True), "readers": {"inUse": 512, "max": 512, "reading": 0, "oldest": None}})
    assert [row.severity for row in found] == ["critical", "warning"]
    assert verdict(found) == "critical"


def test_sentences_name_a_few_and_count_the_rest() -> None:
    """Late ones by kind; who is blocked, and by whom."""
    (found,) = judge(late(*[True] * 3, *[False] * 4))
    assert found.what.endswith("are late: 0:1, 0:2, 0:3, 0:4, 0:5 and 2 more")
    assert found.why.startswith("3 left behind by a process that is gone and 4 past the deadline.")
    (found,) = judge(BLOCKED)
    expected = "3 committed messages of orders wait behind transaction 0:1; billing cannot read on"
    assert found.what == expected


def test_what_a_stopped_owner_holds_is_said() -> None:
    """Wherever in a chain it is: messages, acknowledgements, keys."""
    topic = "persistent://public/default/orders"
    (found,) = judge(stopped_owner(topics=[topic], tables=["accounts"], acknowledgements=2))
    assert found.what == "open transaction 0:9 belongs to process 9, which is stopped"
    assert found.why.startswith(
        "It holds messages of orders, acknowledgements and keys of accounts until it ends. "
    )


def test_who_holds_what_is_named() -> None:
    """The label, the first keys, and what the next write comes to; several holders are they."""
    (found,) = judge(held("dead", 5))
    assert found.what == "1 key of table balances (B2) is held by transaction 0:7 (who=bob)"
    assert found.why == (
        "Nobody is at work in it. The next write of a key that it holds aborts it, a plain one too, unless its "
        "priority is lower."
    )
    two = [holder("dead", 5), {**holder("stopped", 5), "txnId": "0:9", "labels": {}}]
    (found,) = judge(of_first("subscriptions", heldBy=two, pending=6))
    assert found.what == (
        "6 messages of subscription billing of topic orders go to nobody: acknowledged in transactions 0:7 (who=bob), "
        "0:9"
    )
    assert found.why.startswith("Nobody is at work in them.")


def test_subscriptions_without_a_consumer_are_one_note() -> None:
    """However many there are; it comes last, and the verdict is ok if nothing else is there."""
    row = {**HEALTHY["subscriptions"][0], "verdict": "no-consumer", "consumers": []}
    rows = [{**row, "subscription": f"s{number}", "visible": number} for number in range(1, 8)]
    (found,) = judge(with_(subscriptions=rows))
    assert found.what == (
        "7 subscriptions have messages to read and no consumer: s1 of topic orders (1), s2 of topic orders (2), s3 of "
        "topic orders (3), s4 of topic orders (4), s5 of topic orders (5) and 2 more"
    )
    assert (found.severity, verdict([found])) == ("info", "ok")
    found = judge({**held("dead", 5), "subscriptions": rows})
    assert [each.code for each in found] == ["intents-held", "no-consumer"]
    assert verdict(found) == "warning"
