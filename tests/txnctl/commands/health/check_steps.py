"""Steps that the tests of check share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from storage.process.identity import ProcessIdentity
from storage.reports.activity import RecentEnds
from storage.reports.facts import (
    Facts,
    HolderFacts,
    KeyHolder,
    MessageHolder,
    QueueFacts,
    ReaderFacts,
    StoreFacts,
    SubscriptionFacts,
    TableFacts,
    TopicFacts,
    TransactionFacts,
)  # fmt: skip
from storage.reports.overview import Overview
from storage.reports.producers import ProducerRow
from storage.reports.stats import ConsumerRow
from storage.reports.store_info import DiskSpace, StoreInfo
from storage.values.position import Position
from storage.values.txn_id import TxnID

NO_ENDS = RecentEnds(0, 0, 0, None)
"""Of a store without transactions."""

Run = Callable[..., Any]


_VALUE = r"-?\d+(?:\.\d+)?"


PARTS = ("bucket", "sum", "count")


PERFORMANCE = re.compile(rf"([a-z_]+)=({_VALUE})(s|B|%)?;({_VALUE}:?)?;({_VALUE}:?)?;({_VALUE})?")


SAMPLE = re.compile(rf"([a-z_]+)(?:\{{(.*)\}})? ({_VALUE})")


LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What Prometheus reads: every metric has HELP and TYPE once, and its samples stand together below them."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    types = {"counter": "_total", "gauge": "", "histogram": ""}
    lines = text.splitlines()
    assert text.endswith("\n")
    while lines:
        _, keyword, name, _ = lines.pop(0).split(" ", 3)
        _, then, again, type = lines.pop(0).split(" ")
        assert (keyword, then, again) == ("HELP", "TYPE", name)
        assert name not in found
        assert name.endswith(types[type])
        assert name.endswith("_total") == (type == "counter")
        found[name] = []
        while lines and not lines[0].startswith("#"):
            match = SAMPLE.fullmatch(lines.pop(0))
            assert match is not None
            assert match[1] in ([f"{name}_{part}" for part in PARTS] if type == "histogram" else [name])
            labels = LABEL.findall(match[2] or "")
            assert ",".join([f'{label}="{value}"' for label, value in labels]) == (match[2] or "")
            found.setdefault(match[1], []).append((dict(labels), float(match[3])))
        assert type == "histogram" or found[name]
    return found


def performance(line: str) -> dict[str, tuple[str, ...]]:
    """The performance data of a plugin's first line: value, unit, warn, critical by name."""
    text, bar, data = line.partition(" | ")
    assert bar
    assert "|" not in text
    matches = [PERFORMANCE.fullmatch(word) for word in data.split(" ")]
    assert all(matches)
    return {match[1]: match.groups()[1:5] for match in matches if match is not None}


def overview_of(**changed: Any) -> Overview:
    """The overview of a store that is well, with the given facts."""
    facts = Facts(
        as_of_at_ms=1_000_000, store=disk_left(1 << 40), readers=readers_of(1), writer_gate=None, clock_skew_ms=None,
        topics=[], subscriptions=[], transactions=TransactionFacts(0, None, [], []), producers=[], tables=[],
        contended_keys=[], retention_held=[], forgotten_subscriptions=[], quiet_consumers=[],
    )  # fmt: skip
    return Overview("ok", facts._replace(**changed), [])


def disk_left(free_bytes: int) -> StoreFacts:
    """A store on a disk with so many free bytes."""
    info = StoreInfo(
        path="/bank.store", format=1, store_id="", created_at_ms=0, incarnation=1, commits=0, topics=0, tables=0,
        open_transactions=0, transactions=0, last_timestamp_ns=0, reap_policy="all", table_retention_ms=0,
        retention_time_ms=None, retention_bytes=None, retention_hard="off", ttl_ms=None, expire_after_ms=None,
        data_bytes=0, used_bytes=0, map_bytes=0, readers_in_use=1, readers_max=512,
        in_use_bytes=0, free_bytes=0,
    )  # fmt: skip
    return StoreFacts(info, DiskSpace(free_bytes, 1 << 50))


def readers_of(in_use: int) -> ReaderFacts:
    """LMDB's reader table with so many slots in use."""
    return ReaderFacts(in_use, 512, 0, None)


def blocked_topic(name: str, blocked_by: int, age_ms: int, oldest_ms: int | None) -> TopicFacts:
    """A topic with messages behind a transaction of that age; the oldest message may be unknown."""
    return TopicFacts(
        topic=name, name=name, msg_count=1, max_read_position=Position(1, -1), last_confirmed_entry=Position(1, 0),
        topic_epoch=None, ongoing_txn_count=1, blocked_messages=1, oldest_blocked_at_ms=oldest_ms,
        uncommitted_messages=1, subscriptions=0, visible=0, blocked_by=TxnID(blocked_by), blocked_by_age_ms=age_ms, blocked_next=[],
    )  # fmt: skip


def queue(topic: str, waiting: int) -> QueueFacts:
    """A topic for which so many producers wait."""
    following = ProducerRow(
        topic=topic, name=topic, producer_name="next", access_mode="WaitForExclusive", session_id=1, epoch=None,
        is_owner=False, is_waiting=True, place=1, owner=ProcessIdentity("db-2", b"", 7, 0, "anna", "load"), pid=7,
        host="db-2", user="anna", program="load", state="alive", alive=True, connected_since_at_ms=0,
        last_publish_at_ms=None, lease_ms=None, lease_ends_in_ms=None,
    )  # fmt: skip
    return QueueFacts(topic, topic, waiting, next=following, before=None)


def stopped_queue(topic: str) -> QueueFacts:
    """A topic for which producers wait, the first of them a stopped process."""
    waiting = queue(topic, 2)
    return waiting._replace(next=waiting.next._replace(state="stopped"))


def billing(stopped: Sequence[str] = (), held_by: int = 0) -> SubscriptionFacts:
    """A subscription with stopped consumers, or with messages held by that transaction of a dead process."""
    owner = ProcessIdentity("db-2", b"", 7, 0, "anna", "load")
    return SubscriptionFacts(
        topic="a", name="a", subscription="billing", type="Shared", subscription_isolation_level="READ_COMMITTED",
        on_open="block", visible=1, blocked=0, delayed=0, uncommitted=0, pending=1, unacked_messages=1, verdict="behind",
        consumers=[ConsumerRow(name, owner, pid, "stopped", 1, 0) for pid, name in enumerate(stopped, 7)],
        held_by=[MessageHolder(dead_holder(held_by), 1)] if held_by else [],
    )  # fmt: skip


def held_table(name: str, held_by: int) -> TableFacts:
    """A table with a key held by that transaction of a dead process."""
    return TableFacts(name, 1, 0, 1, [KeyHolder(dead_holder(held_by), 1, ["B1"])])


def dead_holder(txn: int) -> HolderFacts:
    """A transaction of a dead process."""
    owner = ProcessIdentity("db-2", b"", 7, 0, "anna", "load")
    return HolderFacts(TxnID(txn), owner, "dead", owner, "dead", 0, False, {}, "medium")
